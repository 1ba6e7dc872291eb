use super::super::epilogue::{Activation, Epilogue};
use super::super::tests::{Random, bits, owned, reference};
use super::*;
use crate::array::view;
use crate::dtype::{DType, Float};
use crate::machine::amx::{Processor, model::Model};
use crate::machine::needs;
use crate::machine::threads::set_num_threads;

fn product<U: Unit>(x: &Array, w: &Array, end: Epilogue<BF16>, weights: Option<&Array>) -> Array {
    let (m, k, n) = (x.shape()[0], x.shape()[1], w.shape()[1]);
    let mut out = Array::uninit(DType::BF16, &[m, n]).unwrap();
    let matrix = |x: &Array| Matrix::new(x.ptr::<BF16>().cast_mut(), (x.strides()[0], x.strides()[1]));
    let c = Matrix::new(out.mut_ptr::<BF16>(), (n as isize, 1));
    let call = Call { size: (m, k, n), a: matrix(x), b: matrix(w), c, end };
    // SAFETY: matrices that fit, and a fresh result; the caller chose a unit that is there.
    unsafe { multiply::<U>(&call, true, weights).unwrap() };
    out
}

/// By the model of the unit, and by the unit where there is one.
fn products(x: &Array, w: &Array, end: Epilogue<BF16>, weights: Option<&Array>) -> Vec<Array> {
    let mut out = vec![product::<Model>(x, w, end, weights)];
    if needs::tiles() {
        out.push(product::<Processor>(x, w, end, weights));
    }
    out
}

/// A matrix whose rows are runs, whose columns are, that has gaps in both, or whose rows lie backwards.
fn laid(random: &mut Random, rows: usize, cols: usize, layout: usize) -> Array {
    let part = |x: &Array, step| view::slice(x, &[1, 2], &[rows, cols], &[step, step]).unwrap();
    match layout {
        0 => part(&random.dense::<BF16>(&[rows + 1, cols + 3]), 1),
        1 => view::permute_dims(&laid(random, cols, rows, 0), &[1, 0]).unwrap(),
        2 => part(&random.dense::<BF16>(&[2 * rows + 1, 2 * cols + 2]), 2),
        _ => view::flip(&laid(random, rows, cols, 0), &[0]).unwrap(),
    }
}

fn close(got: &Array, want: &[f64], k: usize, what: &str) {
    for (i, (got, want)) in got.to_vec::<BF16>().unwrap().iter().zip(want).enumerate() {
        let got = f64::from(got.widen());
        assert!((got - want).abs() <= 8e-3 * want.abs() + 1e-5 * k as f64, "{what} at {i}: {got} {want}");
    }
}

const SIZES: [(usize, usize, usize); 9] = [
    (1, 8, 8),
    (5, 32, 40),
    (16, 33, 31),
    (17, 64, 32),
    (33, 31, 70),
    (64, 1100, 65),
    (70, 96, 64),
    (300, 70, 96),
    (290, 600, 33),
];

#[test]
fn products_of_every_layout() {
    let mut random = Random(21);
    for (round, (m, k, n)) in SIZES.into_iter().enumerate().filter(|_| needs::packs_pairs()) {
        set_num_threads(1 + round % 4);
        for layouts in 0..16 {
            let (x, w) = (laid(&mut random, m, k, layouts % 4), laid(&mut random, k, n, layouts / 4));
            let want = reference::<BF16>(&x, &w);
            for got in products(&x, &w, Epilogue::default(), None) {
                close(&got, &want, k, &format!("{m} {k} {n}, layouts {layouts}"));
            }
        }
    }
}

#[test]
fn what_follows_a_product() {
    let mut random = Random(22);
    for (m, k, n) in SIZES.into_iter().filter(|_| needs::packs_pairs()) {
        let (x, w) = (laid(&mut random, m, k, 0), laid(&mut random, k, n, 0));
        let (bias, residual) = (random.dense::<BF16>(&[n]), random.dense::<BF16>(&[m, n]));
        let end = Epilogue {
            scale: 0.5,
            bias: Some(Matrix::new(bias.ptr::<BF16>().cast_mut(), (0, 1))),
            residual: Some(Matrix::new(residual.ptr::<BF16>().cast_mut(), (n as isize, 1))),
            activation: Activation::Relu,
            adds: false,
        };
        let wide =
            |x: &Array| x.to_vec::<BF16>().unwrap().into_iter().map(|x| f64::from(x.widen())).collect::<Vec<_>>();
        let (bias, residual) = (wide(&bias), wide(&residual));
        let finished = |(i, sum): (usize, f64)| (0.5 * sum + bias[i % n] + residual[i]).max(0.0);
        let want: Vec<f64> = reference::<BF16>(&x, &w).into_iter().enumerate().map(finished).collect();
        for got in products(&x, &w, end, None) {
            close(&got, &want, k, &format!("{m} {k} {n}"));
        }
    }
}

#[test]
fn neither_threads_nor_kept_weights_change_a_bit() {
    let mut random = Random(23);
    for (m, k, n) in SIZES.into_iter().filter(|_| needs::packs_pairs()) {
        for layout in 0..2 {
            let (x, w) = (laid(&mut random, m, k, layout), laid(&mut random, k, n, layout));
            set_num_threads(1);
            let fresh: Vec<_> = products(&x, &w, Epilogue::default(), None).iter().map(bits::<BF16>).collect();
            let kept = owned::<BF16>(&w, layout == 1);
            for threads in [1, 2, 3, 64] {
                set_num_threads(threads);
                for weights in [None, Some(&kept)] {
                    let again = products(&x, weights.unwrap_or(&w), Epilogue::default(), weights);
                    let again: Vec<_> = again.iter().map(bits::<BF16>).collect();
                    assert!(again == fresh, "{m} {k} {n}, {threads} threads");
                }
            }
            assert_eq!(kept.storage().packed().count(), usize::from(k * n > 1 << 12), "{m} {k} {n}");
        }
    }
}

#[test]
fn what_is_not_finite_stays_in_its_row_and_column() {
    let (m, k, n) = (35, 33, 37);
    let at = |x: f64| BF16::narrow(x as f32);
    let mut left = vec![at(1.0); m * k];
    (left[k], left[34 * k]) = (at(f64::NAN), at(f64::INFINITY));
    let mut right = vec![at(1.0); k * n];
    right[36] = at(f64::NEG_INFINITY);
    let (x, w) = (Array::from_slice(&left, &[m, k]).unwrap(), Array::from_slice(&right, &[k, n]).unwrap());
    for got in needs::packs_pairs().then(|| products(&x, &w, Epilogue::default(), None)).into_iter().flatten() {
        for (place, got) in got.to_vec::<BF16>().unwrap().into_iter().enumerate() {
            let (i, j, got) = (place / n, place % n, got.widen());
            let right = match (i, j) {
                (1, _) => got.is_nan(),
                (_, 36) => got == f32::NEG_INFINITY,
                (34, _) => got == f32::INFINITY,
                _ => got == 33.0,
            };
            assert!(right, "{i} {j}: {got}");
        }
    }
}

#[test]
fn tasks_are_cut_evenly() {
    let sizes: [(usize, usize, usize); 12] = [
        (2048, 2048, 2048),
        (1024, 1024, 1024),
        (256, 1024, 4096),
        (64, 1024, 8192),
        (4096, 512, 256),
        (1024, 8192, 1024),
        (1024, 32768, 1024),
        (256, 4096, 256),
        (256, 8192, 256),
        (128, 50000, 128),
        (64, 65536, 64),
        (256, 32768, 256),
    ];
    for (m, k, n) in sizes {
        let (steps, work) = (k.div_ceil(DEEP), m * k * n);
        let parts = grid::parts((m, n), steps);
        for threads in [1, 2, 3, 8, 16, 64] {
            set_num_threads(threads);
            for lies in [false, true] {
                let grid = Grid::new((m, n), steps.div_ceil(parts), (work, parts), lies, true);
                let (high, wide) = (m.div_ceil(grid.rows), n.div_ceil(SIDE).div_ceil(grid.panels));
                // A part is never cut along rows, so more threads than this have nothing to do.
                let threads = if parts > 1 { threads.min(parts * n / SIDE) } else { threads };
                // The thread that has most to do, against an even share of all.
                let most = (parts * high * wide).div_ceil(threads) * grid.rows * grid.panels * SIDE;
                let share = most as f64 * threads as f64 / (parts * m * n) as f64;
                let tasks = format!("{parts}x{high}x{wide} tasks on {threads} threads");
                assert!(share <= 1.7, "{m}x{k}x{n}: {tasks}, {share:.2} of an even share");
            }
        }
    }
}

/// Long sums keep to the second-level cache, and rows of a task stay many: each reads a panel once.
#[test]
fn what_tasks_pack_is_bounded() {
    let sizes: [(usize, usize, usize); 5] =
        [(32, 200_000, 1024), (256, 32768, 8192), (300, 100_000, 40), (1024, 32768, 1024), (5000, 5000, 5000)];
    for (m, k, n) in sizes {
        for threads in [1, 8] {
            set_num_threads(threads);
            let steps = k.div_ceil(DEEP);
            let grid = Grid::new((m, n), steps, (m * k * n, 1), false, true);
            let (rows, panels) = (grid.rows.min(m.next_multiple_of(SIDE)), grid.panels);
            assert!(rows >= m.min(64), "{m}x{k}x{n}: {rows} rows");
            assert!(
                rows * grid.block * LINE <= (second_level() / 2).max(1 << 19),
                "{m}x{k}x{n}: {rows} {}",
                grid.block
            );
            let sums = grid.under_way(steps, rows / SIDE, panels) * SUMS;
            assert!(sums <= second_level().max(rows * LINE * 2), "{m}x{k}x{n}: {sums} bytes of sums");
        }
    }
}

/// Sizes whose tasks go along the depth in blocks, and whose depth is cut in parts.
const DEEP_SIZES: [(usize, usize, usize); 4] = [(258, 4190, 40), (33, 4129, 70), (5, 6500, 9), (20, 4096, 256)];

#[test]
fn long_sums() {
    let mut random = Random(24);
    for (m, k, n) in DEEP_SIZES.into_iter().filter(|_| needs::packs_pairs()) {
        let steps = k.div_ceil(DEEP);
        let (parts, grid) = (grid::parts((m, n), steps), Grid::new((m, n), steps, (m * k * n, 1), false, true));
        assert!(if m > 256 { grid.block < steps } else { parts > 1 }, "{m}x{k}x{n} in {parts}, {}", grid.block);
        let w = laid(&mut random, k, n, 0);
        for layout in 0..2 {
            let x = laid(&mut random, m, k, layout);
            let bias = random.dense::<BF16>(&[n]);
            let end =
                || Epilogue { bias: Some(Matrix::new(bias.ptr::<BF16>().cast_mut(), (0, 1))), ..Epilogue::default() };
            let add = bias.to_vec::<BF16>().unwrap();
            let want = reference::<BF16>(&x, &w);
            let want: Vec<_> = want.iter().enumerate().map(|(i, sum)| sum + f64::from(add[i % n].widen())).collect();
            set_num_threads(1);
            let fresh = products(&x, &w, end(), None);
            for got in &fresh {
                close(got, &want, k, &format!("{m} {k} {n}, layout {layout}"));
            }
            let kept = owned::<BF16>(&w, false);
            for (threads, weights) in [(2, None), (3, Some(&kept)), (8, Some(&kept)), (8, Some(&kept))] {
                set_num_threads(threads);
                for (got, fresh) in products(&x, weights.unwrap_or(&w), end(), weights).iter().zip(&fresh) {
                    assert!(bits::<BF16>(got) == bits::<BF16>(fresh), "{m} {k} {n}, {threads} threads");
                }
            }
        }
    }
}
