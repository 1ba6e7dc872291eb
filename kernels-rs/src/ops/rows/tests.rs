use super::*;
use crate::dtype::DType;
use crate::machine::threads::set_num_threads;
use crate::ops::elementwise::convert::cast;

struct Random(u64);

impl Random {
    fn next(&mut self, below: usize) -> usize {
        self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (self.0 >> 33) as usize % below
    }

    /// Random values; every third array is a transposed view.
    fn array(&mut self, dtype: DType, shape: &[usize]) -> Array {
        let mut value = |_| self.next(4001) as f64 / 1000.0 - 2.0;
        let rank = shape.len();
        let make =
            |shape: &[usize], values: Vec<f64>| cast(&Array::from_slice(&values, shape).unwrap(), dtype).unwrap();
        let values: Vec<f64> = (0..numel(shape)).map(&mut value).collect();
        if rank < 2 || !shape[rank - 1].is_multiple_of(3) {
            return make(shape, values);
        }
        let mut swapped = shape.to_vec();
        swapped.swap(rank - 1, rank - 2);
        let mut axes: Vec<usize> = (0..rank).collect();
        axes.swap(rank - 1, rank - 2);
        view::permute_dims(&make(&swapped, values), &axes).unwrap()
    }
}

fn values(x: &Array) -> Vec<f64> {
    cast(x, DType::F64).unwrap().to_vec::<f64>().unwrap()
}

/// Relative to the largest value, as the errors of a row are.
fn close(what: &str, got: &Array, expected: &[f64], epsilon: f64) {
    let got = values(got);
    assert_eq!(got.len(), expected.len(), "{what}");
    let top = expected.iter().filter(|x| x.is_finite()).fold(1.0f64, |top, x| top.max(x.abs()));
    for (i, (&a, &b)) in got.iter().zip(expected).enumerate() {
        let same = a == b || a.is_nan() && b.is_nan() || (a - b).abs() <= epsilon * top;
        assert!(same, "{what} {i}: got {a}, expected {b}");
    }
}

const KINDS: [(DType, f64); 4] = [(DType::F32, 4e-6), (DType::F64, 1e-13), (DType::F16, 3e-3), (DType::BF16, 2e-2)];

/// A result computed with `axis` last, as a view with `axis` back in its place.
fn restored(out: &Array, axis: usize) -> Array {
    let rank = out.rank();
    let mut back: Vec<usize> = (0..rank - 1).collect();
    back.insert(axis, rank - 1);
    view::permute_dims(out, &back).unwrap()
}

/// Row-major data with `axis` last, as rows, and back.
fn by_rows(x: &Array, axis: usize, f: impl Fn(&[f64]) -> Vec<f64>) -> Vec<f64> {
    let rows = Rows::along("test", &cast(x, DType::F64).unwrap(), &[axis]).unwrap();
    let data: Vec<f64> = rows.view.to_vec::<f64>().unwrap().chunks(rows.len).flat_map(f).collect();
    let out = Array::from_slice(&data, rows.view.shape()).unwrap();
    values(&restored(&out, axis))
}

fn softmax_of(row: &[f64]) -> Vec<f64> {
    let top = row.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let e: Vec<f64> = row.iter().map(|x| (x - top).exp()).collect();
    e.iter().map(|x| x / e.iter().sum::<f64>()).collect()
}

#[test]
fn softmax_and_its_gradients_agree_with_the_definition() {
    let mut random = Random(1);
    for round in 0..60 {
        set_num_threads(1 + round % 4);
        let shape = [1 + random.next(5), 1 + random.next(90), 1 + random.next(30)];
        let axis = random.next(3);
        for (dtype, epsilon) in KINDS {
            let (x, g) = (random.array(dtype, &shape), random.array(dtype, &shape));
            let what = format!("{dtype:?} {shape:?} {axis}");
            close(&what, &softmax(&x, axis).unwrap(), &by_rows(&x, axis, softmax_of), epsilon);
            let log = |row: &[f64]| softmax_of(row).into_iter().map(f64::ln).collect();
            close(&what, &log_softmax(&x, axis).unwrap(), &by_rows(&x, axis, log), epsilon);
            let (gs, xs) = (values(&g), values(&x));
            let product =
                Array::from_slice(&gs.iter().zip(&xs).map(|(g, y)| g * y).collect::<Vec<_>>(), &shape).unwrap();
            let total = |row: &[f64]| vec![row.iter().sum::<f64>(); row.len()];
            let inner = by_rows(&product, axis, total);
            let expected: Vec<f64> = (0..gs.len()).map(|i| xs[i] * (gs[i] - inner[i])).collect();
            close(&what, &softmax_backward(&g, &x, axis).unwrap(), &expected, epsilon);
            let sums = by_rows(&g, axis, total);
            let expected: Vec<f64> = (0..gs.len()).map(|i| gs[i] - xs[i].exp() * sums[i]).collect();
            close(&what, &log_softmax_backward(&g, &x, axis).unwrap(), &expected, epsilon);
        }
    }
}

#[test]
fn exponentials_below_one_are_good_to_two_ulp() {
    use crate::math::{Fused, Split};
    for step in 0..200_000 {
        let x = step as f32 * -0.000_436_682_7;
        let exact = (x as f64).exp();
        for y in [x.exp_below::<Fused>(), x.exp_below::<Split>()] {
            assert!((y as f64 - exact).abs() <= exact * 2.0f64.powi(-22), "{x}: got {y}, expected {exact}");
        }
    }
    for (x, y) in [(0.0, 1.0), (-0.0, 1.0), (-87.4, 0.0), (-1e30, 0.0), (f32::NEG_INFINITY, 0.0)] {
        assert_eq!((x.exp_below::<Fused>(), x.exp_below::<Split>()), (y, y), "{x}");
    }
    for bits in [0x7fc0_0000, 0x7f80_0001, 0xffff_ffff, 0x7fc0_01ff] {
        assert!(f32::from_bits(bits).exp_below::<Fused>().is_nan());
    }
}

#[test]
fn special_rows() {
    let (inf, nan) = (f32::INFINITY, f32::NAN);
    let rows = [[-inf; 3], [-inf, 0.0, -inf], [inf, 0.0, 1.0], [nan, 0.0, 1.0], [3e38, -3e38, 3e38]];
    let x = Array::from_slice(rows.as_flattened(), &[5, 3]).unwrap();
    let all = [0.0, 0.0, 0.0, 0.0, 1.0, 0.0, f64::NAN, f64::NAN, f64::NAN, f64::NAN, f64::NAN, f64::NAN, 0.5, 0.0, 0.5];
    close("softmax", &softmax(&x, 1).unwrap(), &all, 1e-7);
    let low = f64::NEG_INFINITY;
    let logs = log_softmax(&view::slice(&x, &[0, 0], &[2, 3], &[1, 1]).unwrap(), 1).unwrap();
    close("log_softmax", &logs, &[low, low, low, low, 0.0, low], 1e-7);
    close(
        "logsumexp",
        &logsumexp(&x, &[1], false).unwrap(),
        &[low, 0.0, f64::INFINITY, f64::NAN, 3e38f32.into()],
        1e-7,
    );
    let zero = Array::zeros(DType::F32, &[5, 3]).unwrap();
    close("gradient", &softmax_backward(&zero, &softmax(&zero, 1).unwrap(), 1).unwrap(), &[0.0; 15], 0.0);
}

fn mean_and_var(row: &[f64]) -> (f64, f64) {
    let mean = row.iter().sum::<f64>() / row.len() as f64;
    (mean, row.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / row.len() as f64)
}

#[test]
fn moments_agree_with_the_definition() {
    let mut random = Random(2);
    for round in 0..40 {
        set_num_threads(1 + round % 4);
        let shape = [1 + random.next(5), 1 + random.next(40), 1 + random.next(50)];
        for (dtype, epsilon) in KINDS {
            let x = random.array(dtype, &shape);
            for axes in [&[0][..], &[1], &[2], &[0, 2], &[1, 2], &[0, 1, 2], &[]] {
                let rows = Rows::along("test", &cast(&x, DType::F64).unwrap(), axes).unwrap();
                let each = |f: &dyn Fn(&[f64]) -> f64| {
                    rows.view.to_vec::<f64>().unwrap().chunks(rows.len).map(f).collect::<Vec<_>>()
                };
                let n = rows.len as f64;
                let expected = each(&|row| mean_and_var(row).1 * n / (n - 1.0).max(0.0));
                close(
                    &format!("var {dtype:?} {shape:?} {axes:?}"),
                    &var(&x, axes, 1.0, false).unwrap(),
                    &expected,
                    epsilon,
                );
                let expected = each(&|row| row.iter().map(|x| x.exp()).sum::<f64>().ln());
                let got = logsumexp(&x, axes, true).unwrap();
                assert_eq!(got.rank(), 3);
                close(&format!("logsumexp {dtype:?} {shape:?} {axes:?}"), &got, &expected, epsilon);
            }
        }
    }
    let long = random.array(DType::F32, &[3, 100_001]);
    let turned = by_order(&long, &[1, 0]);
    // Runs of memory inside a row, shorter and longer than a piece.
    let (short, wide) = (random.array(DType::F32, &[40, 3, 700]), random.array(DType::F32, &[7, 3, 9000]));
    let cut = view::slice(&wide, &[0, 0, 3], &[7, 3, 8500], &[1, 1, 1]).unwrap();
    assert!(!turned.is_contiguous() && !cut.is_contiguous());
    let in_long_runs = [(&short, &[0, 2][..]), (&wide, &[0, 2]), (&cut, &[0, 1, 2]), (&cut, &[2])];
    let rows = [(&long, &[1][..]), (&long, &[0, 1]), (&turned, &[1]), (&turned, &[0, 1]), (&turned, &[0])];
    for (long, axes) in rows.into_iter().chain(in_long_runs) {
        let all = |threads| {
            set_num_threads(threads);
            [var(long, axes, 0.0, false).unwrap(), logsumexp(long, axes, false).unwrap()].map(|x| values(&x))
        };
        assert_eq!(all(1), all(3));
        let rows = Rows::along("test", &cast(long, DType::F64).unwrap(), axes).unwrap();
        let expected: Vec<f64> =
            rows.view.to_vec::<f64>().unwrap().chunks(rows.len).map(|row| mean_and_var(row).1).collect();
        close("long var", &var(long, axes, 0.0, false).unwrap(), &expected, 1e-5);
    }
    // Far from 0 the difference of squares would have no digit left.
    let far: Vec<f32> = (0..1000).map(|i| 1e6 + (i % 2) as f32).collect();
    close("far", &var(&Array::from_slice(&far, &[1000]).unwrap(), &[0], 0.0, false).unwrap(), &[0.25], 1e-6);
}

#[test]
fn layer_norm_agrees_with_the_definition() {
    let mut random = Random(3);
    for round in 0..60 {
        set_num_threads(1 + round % 4);
        let (rows, len) = (1 + random.next(200), 8 + random.next(100));
        for (dtype, epsilon) in KINDS {
            let (x, g) = (random.array(dtype, &[rows, len]), random.array(dtype, &[rows, len]));
            let (w, b) = (random.array(dtype, &[len]), random.array(dtype, &[len]));
            let (xs, gs, ws, bs) = (values(&x), values(&g), values(&w), values(&b));
            let (weighted, shifted) = (random.next(2) == 0, random.next(2) == 0);
            let w_at = |j: usize| if weighted { ws[j] } else { 1.0 };
            let (mut y, mut dx, mut dw, mut db) = (vec![], vec![], vec![0.0; len], vec![0.0; len]);
            for (row, g) in xs.chunks(len).zip(gs.chunks(len)) {
                let (mean, var) = mean_and_var(row);
                let scale = 1.0 / (var + 1e-5).sqrt();
                let normal: Vec<f64> = row.iter().map(|x| (x - mean) * scale).collect();
                let inner: Vec<f64> = (0..len).map(|j| g[j] * w_at(j)).collect();
                let total = inner.iter().sum::<f64>() / len as f64;
                let product = inner.iter().zip(&normal).map(|(i, n)| i * n).sum::<f64>() / len as f64;
                y.extend((0..len).map(|j| normal[j] * w_at(j) + if shifted { bs[j] } else { 0.0 }));
                dx.extend((0..len).map(|j| scale * (inner[j] - total - normal[j] * product)));
                (0..len).for_each(|j| (dw[j], db[j]) = (dw[j] + g[j] * normal[j], db[j] + g[j]));
            }
            let what = format!("{dtype:?} {rows} {len} {weighted} {shifted}");
            let (weight, bias) = (weighted.then_some(&w), shifted.then_some(&b));
            close(&what, &layer_norm(&x, weight, bias, 1e-5).unwrap(), &y, epsilon);
            let (got_dx, got_dw, got_db) = layer_norm_backward(&g, &x, weight, 1e-5).unwrap();
            close(&format!("dx {what}"), &got_dx, &dx, 8.0 * epsilon);
            close(&format!("dw {what}"), &got_dw, &dw, 8.0 * epsilon);
            close(&format!("db {what}"), &got_db, &db, epsilon);
        }
    }
}

#[test]
fn rms_norm_agrees_with_the_definition() {
    let mut random = Random(6);
    for round in 0..60 {
        set_num_threads(1 + round % 4);
        let (rows, len) = (1 + random.next(200), 8 + random.next(100));
        for (dtype, epsilon) in KINDS {
            let (x, g) = (random.array(dtype, &[rows, len]), random.array(dtype, &[rows, len]));
            let w = random.array(dtype, &[len]);
            let (xs, gs, ws) = (values(&x), values(&g), values(&w));
            let weighted = random.next(2) == 0;
            let w_at = |j: usize| if weighted { ws[j] } else { 1.0 };
            let (mut y, mut dx, mut dw) = (vec![], vec![], vec![0.0; len]);
            for (row, g) in xs.chunks(len).zip(gs.chunks(len)) {
                let scale = 1.0 / (row.iter().map(|x| x * x).sum::<f64>() / len as f64 + 1e-5).sqrt();
                let product = (0..len).map(|j| g[j] * w_at(j) * row[j] * scale).sum::<f64>() / len as f64;
                y.extend((0..len).map(|j| row[j] * scale * w_at(j)));
                dx.extend((0..len).map(|j| scale * (g[j] * w_at(j) - row[j] * scale * product)));
                (0..len).for_each(|j| dw[j] += g[j] * row[j] * scale);
            }
            let what = format!("{dtype:?} {rows} {len} {weighted}");
            let weight = weighted.then_some(&w);
            close(&what, &rms_norm(&x, weight, 1e-5).unwrap(), &y, epsilon);
            let (got_dx, got_dw) = rms_norm_backward(&g, &x, weight, 1e-5).unwrap();
            close(&format!("dx {what}"), &got_dx, &dx, 8.0 * epsilon);
            close(&format!("dw {what}"), &got_dw, &dw, 8.0 * epsilon);
        }
    }
}

#[test]
fn cross_entropy_agrees_with_the_definition() {
    let mut random = Random(7);
    for round in 0..24 {
        set_num_threads(1 + round % 4);
        let (rows, len) = (1 + random.next(20), [1, 3, 7, 10, 15, 16, 40, 1000, 5000][random.next(9)]);
        let places: Vec<i64> = (0..rows).map(|_| random.next(2 * len) as i64 - len as i64).collect();
        let target = Array::from_slice(&places, &[rows]).unwrap();
        for (dtype, epsilon) in KINDS {
            let (x, g) = (random.array(dtype, &[rows, len]), random.array(dtype, &[rows]));
            let (xs, gs) = (values(&x), values(&g));
            let (mut losses, mut dx) = (vec![], vec![]);
            for ((row, g), &at) in xs.chunks(len).zip(&gs).zip(&places) {
                let (all, at) = (softmax_of(row), at.rem_euclid(len as i64) as usize);
                losses.push(-all[at].ln());
                dx.extend(all.iter().enumerate().map(|(j, y)| g * (y - f64::from(u8::from(j == at)))));
            }
            let what = format!("{dtype:?} {rows} {len}");
            close(&what, &cross_entropy(&x, &target).unwrap(), &losses, epsilon);
            close(&format!("dx {what}"), &cross_entropy_backward(&g, &x, &target).unwrap(), &dx, epsilon);
        }
    }
    let (inf, x) = (f32::INFINITY, |row: &[f32]| Array::from_slice(row, &[row.len()]).unwrap());
    let target = |at: i64| Array::from_slice(&[at], &[]).unwrap();
    let loss = |row: &[f32], at| values(&cross_entropy(&x(row), &target(at)).unwrap())[0];
    assert_eq!(loss(&[1e4, -1e4], 1), 2e4);
    assert_eq!(loss(&[1e4, -1e4], -2), 0.0);
    assert_eq!((loss(&[-inf, -inf], 0), loss(&[0.0, -inf], 1)), (f64::INFINITY, f64::INFINITY));
    assert!(loss(&[f32::NAN, 0.0], 1).is_nan());
    for at in [2, -3] {
        assert!(cross_entropy(&x(&[0.0, 0.0]), &target(at)).is_err());
        assert!(cross_entropy_backward(&x(&[0.0]), &x(&[0.0, 0.0]), &target(at)).is_err());
    }
    assert!(cross_entropy(&x(&[0.0]), &x(&[0.0])).is_err());
}

#[test]
fn a_short_row_has_the_same_loss_by_itself() {
    let mut random = Random(9);
    for len in [1, 2, 7, 8, 10, 15, 16] {
        for (dtype, _) in KINDS {
            let (x, g) = (random.array(dtype, &[37, len]), random.array(dtype, &[37]));
            let places: Vec<i64> = (0..37).map(|_| random.next(len) as i64).collect();
            let target = Array::from_slice(&places, &[37]).unwrap();
            let all = values(&cross_entropy(&x, &target).unwrap());
            let slopes = values(&cross_entropy_backward(&g, &x, &target).unwrap());
            for row in 0..37 {
                let x = view::slice(&x, &[row, 0], &[1, len], &[1, 1]).unwrap();
                let [g, target] = [&g, &target].map(|x| view::slice(x, &[row], &[1], &[1]).unwrap());
                assert_eq!(values(&cross_entropy(&x, &target).unwrap()), [all[row]], "{len} {row}");
                let own = values(&cross_entropy_backward(&g, &x, &target).unwrap());
                assert_eq!(own, slopes[row * len..(row + 1) * len], "{len} {row}");
            }
        }
    }
}

#[test]
fn wide_columns_agree_with_the_definition() {
    let mut random = Random(8);
    for (round, shape) in [[1, 700, 600], [3, 257, 40], [40, 7, 513]].into_iter().enumerate() {
        for (dtype, epsilon) in KINDS {
            let (x, g) = (random.array(dtype, &shape), random.array(dtype, &shape));
            let what = format!("{dtype:?} {shape:?}");
            let all = |threads: usize| {
                set_num_threads(threads);
                [
                    softmax(&x, 1).unwrap(),
                    softmax_backward(&g, &x, 1).unwrap(),
                    log_softmax_backward(&g, &x, 1).unwrap(),
                    logsumexp(&x, &[1], false).unwrap(),
                    var(&x, &[1], 1.0, false).unwrap(),
                ]
            };
            let got = all(1);
            for (one, other) in got.iter().zip(&all(2 + round)) {
                assert_eq!(values(one), values(other), "{what}");
            }
            close(&what, &got[0], &by_rows(&x, 1, softmax_of), epsilon);
            let rows = Rows::along("test", &cast(&x, DType::F64).unwrap(), &[1]).unwrap();
            let each = |f: &dyn Fn(&[f64]) -> f64| {
                rows.view.to_vec::<f64>().unwrap().chunks(rows.len).map(f).collect::<Vec<_>>()
            };
            close(&what, &got[3], &each(&|row| row.iter().map(|x| x.exp()).sum::<f64>().ln()), epsilon);
            let n = shape[1] as f64;
            close(&what, &got[4], &each(&|row| mean_and_var(row).1 * n / (n - 1.0)), epsilon);
        }
    }
}

/// The same values with their axes in this order in memory.
fn by_order(x: &Array, axes: &[usize]) -> Array {
    let moved = view::permute_dims(x, axes).unwrap().contiguous().unwrap();
    let mut back = vec![0; axes.len()];
    axes.iter().enumerate().for_each(|(to, &from)| back[from] = to);
    view::permute_dims(&moved, &back).unwrap()
}

#[test]
fn batch_norm_agrees_with_the_definition() {
    let mut random = Random(4);
    for round in 0..60 {
        set_num_threads(1 + round % 4);
        let spatial = [&[][..], &[3], &[5, 7], &[20, 21]][random.next(4)];
        let (images, channels) = match round {
            0 => (3000, 5),
            1 => (7, 1300),
            2 => (1, 50),
            // Of two values that are nearly one, 16 bits of mean and variance tell too little.
            _ => (5 + random.next(20), 1 + random.next(9)),
        };
        let shape = [&[images, channels], spatial].concat();
        for (dtype, epsilon) in KINDS {
            let (mut x, mut g) = (random.array(dtype, &shape), random.array(dtype, &shape));
            if round % 3 == 0 {
                (x, g) = (by_order(&x, &order(x.rank(), &[1])), by_order(&g, &order(x.rank(), &[1])));
            } else if round % 5 == 0 {
                let mut axes = order(x.rank(), &[]);
                axes.swap(0, 1);
                x = by_order(&x, &axes);
            }
            let (w, b) = (random.array(dtype, &[channels]), random.array(dtype, &[channels]));
            let (xs, gs, ws, bs) = (values(&x), values(&g), values(&w), values(&b));
            let size = numel(spatial);
            let channel = |i: usize| i / size % channels;
            let of = |data: &[f64], c: usize| {
                (0..data.len()).filter(|&i| channel(i) == c).map(|i| data[i]).collect::<Vec<_>>()
            };
            let moments: Vec<(f64, f64)> = (0..channels).map(|c| mean_and_var(&of(&xs, c))).collect();
            let normal: Vec<f64> = (0..xs.len())
                .map(|i| (xs[i] - moments[channel(i)].0) / (moments[channel(i)].1 + 1e-5).sqrt())
                .collect();
            let y: Vec<f64> = (0..xs.len()).map(|i| normal[i] * ws[channel(i)] + bs[channel(i)]).collect();
            let what = format!("{dtype:?} {shape:?}");
            let (got, mean, var) = batch_norm_train(&x, &w, &b, 1e-5).unwrap();
            close(&what, &got, &y, epsilon);
            close(&format!("mean {what}"), &mean, &moments.iter().map(|m| m.0).collect::<Vec<_>>(), epsilon);
            close(&format!("var {what}"), &var, &moments.iter().map(|m| m.1).collect::<Vec<_>>(), epsilon);
            close(&format!("given {what}"), &batch_norm(&x, &w, &b, [&mean, &var], 1e-5).unwrap(), &y, 4.0 * epsilon);
            let (db, dw): (Vec<f64>, Vec<f64>) = (0..channels)
                .map(|c| {
                    let (g, n) = (of(&gs, c), of(&normal, c));
                    (g.iter().sum::<f64>(), g.iter().zip(&n).map(|(g, n)| g * n).sum::<f64>())
                })
                .unzip();
            let count = (images * size) as f64;
            let dx: Vec<f64> = (0..xs.len())
                .map(|i| {
                    let c = channel(i);
                    ws[c] / (moments[c].1 + 1e-5).sqrt() * (gs[i] - db[c] / count - normal[i] * dw[c] / count)
                })
                .collect();
            let (got_dx, got_dw, got_db) = batch_norm_backward(&g, &x, &w, [&mean, &var], 1e-5).unwrap();
            close(&format!("dx {what}"), &got_dx, &dx, 8.0 * epsilon);
            close(&format!("dw {what}"), &got_dw, &dw, 8.0 * epsilon);
            close(&format!("db {what}"), &got_db, &db, epsilon);
        }
    }
}

#[test]
fn the_number_of_threads_does_not_change_a_bit() {
    let mut random = Random(5);
    let (x, g) = (random.array(DType::F32, &[1000, 70]), random.array(DType::F32, &[1000, 70]));
    let image = random.array(DType::F32, &[40, 3, 30, 31]);
    let w = random.array(DType::F32, &[3]);
    let all = |threads| {
        set_num_threads(threads);
        let (dx, dw, db) = layer_norm_backward(&g, &x, None, 1e-5).unwrap();
        let (y, mean, var) = batch_norm_train(&image, &w, &w, 1e-5).unwrap();
        let (a, b, c) = batch_norm_backward(&image, &image, &w, [&mean, &var], 1e-5).unwrap();
        [dx, dw, db, y, mean, var, a, b, c].map(|x| values(&x))
    };
    let one = all(1);
    assert!((2..=4).all(|threads| all(threads) == one));
}

#[test]
fn empty_and_invalid() {
    let none = Array::zeros(DType::F32, &[3, 0]).unwrap();
    assert_eq!(softmax(&none, 1).unwrap().numel(), 0);
    assert_eq!(softmax_backward(&none, &none, 0).unwrap().numel(), 0);
    assert_eq!(layer_norm(&none, None, None, 1e-5).unwrap().numel(), 0);
    let (_, dw, _) = layer_norm_backward(&none, &none, None, 1e-5).unwrap();
    assert_eq!(dw.shape()[..], [0]);
    let rows = Array::zeros(DType::F32, &[0, 4]).unwrap();
    let (_, dw, db) = layer_norm_backward(&rows, &rows, None, 1e-5).unwrap();
    assert_eq!((values(&dw), values(&db)), (vec![0.0; 4], vec![0.0; 4]));
    assert!(values(&var(&none, &[1], 0.0, false).unwrap()).iter().all(|x| x.is_nan()));
    assert_eq!(values(&logsumexp(&none, &[1], false).unwrap()), [f64::NEG_INFINITY; 3]);
    let ints = Array::zeros(DType::I32, &[2, 2]).unwrap();
    assert!(softmax(&ints, 0).is_err() && var(&ints, &[0], 0.0, false).is_err());
    assert!(softmax(&none, 2).is_err() && layer_norm(&none, Some(&rows), None, 1e-5).is_err());
}
