use super::super::Settings;
use super::super::reference::for_each_product;
use super::*;
use crate::array::Array;
use crate::dtype::Element;
use crate::machine::amx::{Processor, model::Model};
use crate::machine::needs;
use crate::machine::threads::set_num_threads;
use crate::ops::samples::Rng;

#[derive(Debug)]
struct Case {
    input: [usize; 4],
    weight: [usize; 4],
    settings: Settings,
}

fn case(rng: &mut Rng) -> Case {
    let groups = 1 + rng.below(8) / 6;
    let most = ([8, 40][rng.below(2)], [12, 50][rng.below(2)]);
    let (channels, outputs) = (8 + rng.below(most.0), 8 + rng.below(most.1));
    let (kernel, dilation) = ((1 + rng.below(3), 1 + rng.below(3)), (1 + rng.below(2), 1 + rng.below(2)));
    let padding = ((rng.below(3), rng.below(3)), (rng.below(3), rng.below(3)));
    let span = |k: usize, d: usize| d * (k - 1) + 1;
    Case {
        input: [
            1 + rng.below(3),
            groups * channels,
            span(kernel.0, dilation.0) + rng.below(8),
            span(kernel.1, dilation.1) + rng.below(24),
        ],
        weight: [groups * outputs, channels, kernel.0, kernel.1],
        settings: Settings { stride: (1 + rng.below(2), 1 + rng.below(3)), padding, dilation, groups },
    }
}

fn random(rng: &mut Rng, count: usize) -> Vec<BF16> {
    (0..count).map(|_| BF16::from_f64(rng.below(2001) as f64 / 1000.0 - 1.0)).collect()
}

fn wide(x: &[BF16]) -> Vec<f64> {
    x.iter().map(|x| x.to_f64()).collect()
}

fn close(what: &str, got: &[BF16], want: &[f64], terms: usize) {
    assert_eq!(got.len(), want.len(), "{what}");
    for (i, (got, want)) in wide(got).iter().zip(want).enumerate() {
        let bound = 4e-3 * want.abs() + 1e-6 * terms as f64;
        assert!((got - want).abs() <= bound, "{what} at {i}: {got}, expected {want}");
    }
}

/// What a unit computes: the result and both gradients.
fn all_of<U: Unit>(case: &Case, [x, w, b, g, back]: [&[BF16]; 5]) -> [Vec<BF16>; 3] {
    let window = Window::new("test", &case.input, &case.weight, &case.settings).unwrap();
    let (mut y, mut dx) = (vec![BF16(0x7fc0); g.len()], vec![BF16(0x7fc0); x.len()]);
    forward::<U>(&window, x, w, Some(b), &mut y).unwrap();
    input_grad::<U>(&window, g, w, Some(back), &mut dx).unwrap();
    let [xs, gs] =
        [(x, case.input), (g, window.output_shape())].map(|(x, shape)| Array::from_slice(x, &shape).unwrap());
    let dw = gradient::run::<U>(&window, &gs, &xs, &case.weight).unwrap();
    [y, dx, dw.map_or_else(Vec::new, |dw| dw.to_vec::<BF16>().unwrap())]
}

/// By the model of the unit, and by the unit where there is one.
fn found(case: &Case, operands: [&[BF16]; 5]) -> Vec<[Vec<BF16>; 3]> {
    let mut all = vec![all_of::<Model>(case, operands)];
    if needs::tiles() {
        all.push(all_of::<Processor>(case, operands));
    }
    all
}

fn check(case: &Case, rng: &mut Rng) {
    let Case { input, weight, settings } = case;
    let window = Window::new("test", input, weight, settings).unwrap();
    let shape = window.output_shape();
    let [x, w, g] = [&input[..], &weight[..], &shape[..]].map(|shape| random(rng, shape.iter().product()));
    let (b, back) = (random(rng, weight[0]), random(rng, input[1]));
    let (xs, ws, gs, bs, backs) = (wide(&x), wide(&w), wide(&g), wide(&b), wide(&back));
    let (out, inner) = (shape[2] * shape[3], input[2] * input[3]);
    let mut y: Vec<f64> = (0..gs.len()).map(|i| bs[i / out % weight[0]]).collect();
    let mut dw = vec![0.0; ws.len()];
    let mut dx: Vec<f64> = (0..xs.len()).map(|i| backs[i / inner % input[1]]).collect();
    for_each_product(&window, *input, settings, |xi, wi, oi| {
        y[oi] += xs[xi] * ws[wi];
        dx[xi] += gs[oi] * ws[wi];
        dw[wi] += gs[oi] * xs[xi];
    });
    let taps = weight[2] * weight[3];
    let mut last = None;
    for threads in [1, 3, 16] {
        set_num_threads(threads);
        let all = found(case, [&x, &w, &b, &g, &back]);
        for [got, back, weights] in &all {
            close(&format!("{case:?}"), got, &y, weight[1] * taps);
            close(&format!("input gradient of {case:?}"), back, &dx, weight[0] * taps);
            close(&format!("weight gradient of {case:?}"), weights, &dw, input[0] * out);
        }
        let bits: Vec<Vec<u16>> = all.iter().flatten().map(|x| x.iter().map(|x| x.0).collect()).collect();
        assert!(last.is_none_or(|last| last == bits), "{threads} threads: {case:?}");
        last = Some(bits);
    }
}

#[test]
fn windows_of_every_kind() {
    let mut rng = Rng::new(31);
    for _ in (0..40).filter(|_| needs::packs_pairs()) {
        let case = case(&mut rng);
        check(&case, &mut rng);
    }
}

#[test]
fn rows_of_a_whole_image() {
    let mut rng = Rng::new(32);
    let plain = Settings { stride: (1, 1), padding: ((1, 1), (1, 1)), dilation: (1, 1), groups: 1 };
    for (input, weight, stride) in
        [([1, 32, 19, 56], [64, 32, 3, 3], 1), ([2, 64, 7, 7], [40, 64, 3, 3], 1), ([1, 8, 30, 28], [33, 8, 5, 5], 2)]
    {
        let case = Case { input, weight, settings: Settings { stride: (stride, stride), ..plain } };
        if needs::packs_pairs() {
            check(&case, &mut rng);
        }
    }
}

#[test]
fn what_is_not_finite_stays_where_it_is_read() {
    let settings = Settings { stride: (1, 1), padding: ((1, 1), (1, 1)), dilation: (1, 1), groups: 1 };
    let case = Case { input: [1, 9, 6, 20], weight: [8, 9, 3, 3], settings };
    let (mut x, w, b) = (vec![BF16::from_f64(1.0); 9 * 120], vec![BF16::from_f64(1.0); 8 * 81], vec![BF16(0); 9]);
    x[8 * 120 + 2 * 20 + 19] = BF16::from_f64(f64::NAN);
    let g = vec![BF16::from_f64(1.0); 8 * 120];
    let all = needs::packs_pairs().then(|| found(&case, [&x, &w, &b[..8], &g, &b]));
    for [y, _, weights] in all.iter().flatten() {
        for (i, y) in y.iter().enumerate() {
            let (row, col) = (i % 120 / 20, i % 20);
            let reads = (1..=3).contains(&row) && col >= 18;
            assert_eq!(y.to_f64().is_nan(), reads, "{row} {col}");
        }
        assert!(weights.is_empty(), "another way has to be taken");
    }
}

#[test]
fn neighbors_cover_each_position() {
    for (rows, cols, pitch) in [(1, 1, 1), (7, 7, 9), (5, 14, 30), (3, 28, 58), (4, 56, 58), (6, 16, 18), (2, 15, 15)] {
        let neighbors = Neighbors::new(rows, cols, pitch);
        let mut seen = vec![0; rows * pitch + 2 * LINES];
        for index in 0..neighbors.count {
            let (start, count) = neighbors.start(index, cols, pitch);
            seen[start..start + count].iter_mut().for_each(|seen| *seen += 1);
        }
        let once = (0..rows).all(|t| seen[t * pitch..][..cols].iter().all(|&seen| seen == 1));
        assert!(once && neighbors.count <= rows * cols.div_ceil(LINES), "{rows} {cols} {pitch}");
    }
}
