use super::map::taps;
use super::*;
use crate::dtype::Element;
use crate::machine::threads::set_num_threads;
use crate::ops::samples::{Rng, floats, view_of};

/// Pairs of (position, weight) that one result reads along an axis.
fn reads(sources: usize, count: usize, at: usize, mode: Mode, align: bool) -> Vec<(usize, f64)> {
    let (first, weights) = taps(sources, count, at, mode, align);
    let inside = |k: usize| (first + k as i64).clamp(0, sources as i64 - 1) as usize;
    weights.iter().enumerate().filter(|&(_, &weight)| weight != 0.0).map(|(k, &weight)| (inside(k), weight)).collect()
}

fn close(got: &[f64], expected: &[f64], epsilon: f64) -> bool {
    got.len() == expected.len() && got.iter().zip(expected).all(|(a, b)| (a - b).abs() <= epsilon * (8.0 + b.abs()))
}

/// Both directions against sums over all reads, of a random view.
fn check(rng: &mut Rng, dtype: DType, epsilon: f64, large: bool) {
    let lengths: &[usize] = if large { &[64, 130, 300] } else { &[1, 2, 3, 7, 16, 33] };
    let [height, width, rows, cols] = [0; 4].map(|_| rng.pick(lengths));
    let shape = [rng.pick(&[0, 1, 2]), rng.pick(&[1, 3]), height, width];
    let mode = rng.pick(&[Mode::Bicubic, Mode::Bilinear, Mode::Nearest]);
    let align = rng.below(2) == 0;
    let x = view_of(rng, dtype, &shape, false);
    let g = view_of(rng, dtype, &[shape[0], shape[1], rows, cols], false);
    let (xs, gs) = (floats(&x), floats(&g));
    let (mut y, mut dx) = (vec![0.0; gs.len()], vec![0.0; xs.len()]);
    for plane in 0..shape[0] * shape[1] {
        for i in 0..rows {
            for j in 0..cols {
                let to = (plane * rows + i) * cols + j;
                for (row, a) in reads(height, rows, i, mode, align) {
                    for (col, b) in reads(width, cols, j, mode, align) {
                        let from = (plane * height + row) * width + col;
                        y[to] += a * b * xs[from];
                        dx[from] += a * b * gs[to];
                    }
                }
            }
        }
    }
    let what = format!("{} {shape:?} to {rows} x {cols}, {mode:?} {align}", dtype.name());
    let out = interpolate2d(&x, (rows, cols), mode, align).unwrap();
    assert_eq!((out.shape()[..].to_vec(), out.dtype()), (g.shape().to_vec(), dtype));
    assert!(close(&floats(&out), &y, epsilon), "{what}");
    let back = interpolate2d_backward(&g, &shape, mode, align).unwrap();
    assert_eq!((back.shape()[..].to_vec(), back.dtype()), (shape.to_vec(), dtype));
    assert!(close(&floats(&back), &dx, epsilon * (1 + rows * cols / (height * width)) as f64), "backward {what}");
}

#[test]
fn sums_agree_with_the_definition() {
    let mut rng = Rng::new(70);
    for round in 0..150 {
        set_num_threads(1 + round % 4);
        check(&mut rng, DType::F32, 2e-6, round % 30 == 0);
        check(&mut rng, DType::F64, 1e-14, round % 30 == 1);
        check(&mut rng, DType::F16, 2e-3, false);
        check(&mut rng, DType::BF16, 2e-2, false);
    }
}

#[test]
fn the_same_size_is_the_same_image() {
    let mut rng = Rng::new(71);
    for mode in [Mode::Bicubic, Mode::Bilinear, Mode::Nearest] {
        let x = view_of(&mut rng, DType::F32, &[2, 1, 9, 20], false);
        for align in [false, true] {
            assert_eq!(floats(&interpolate2d(&x, (9, 20), mode, align).unwrap()), floats(&x));
        }
    }
}

#[test]
fn threads_change_no_bit() {
    let mut rng = Rng::new(72);
    let x = view_of(&mut rng, DType::F32, &[1, 2, 200, 90], false);
    let bits = |threads: usize| {
        set_num_threads(threads);
        let out = interpolate2d(&x, (411, 300), Mode::Bicubic, false).unwrap();
        let back = interpolate2d_backward(&out, x.shape(), Mode::Bicubic, false).unwrap();
        [floats(&out), floats(&back)].map(|values| values.into_iter().map(f64::to_bits).collect::<Vec<_>>())
    };
    let expected = bits(1);
    assert!((2..=4).all(|threads| bits(threads) == expected));
}

#[test]
fn what_does_not_fit_is_refused() {
    let x = Array::from_slice(&[f32::from_f64(1.0); 4], &[1, 1, 2, 2]).unwrap();
    assert!(interpolate2d(&x, (0, 1), Mode::Nearest, true).is_err());
    assert!(interpolate2d(&Array::zeros(DType::F32, &[2, 2]).unwrap(), (2, 2), Mode::Nearest, true).is_err());
    assert!(interpolate2d(&Array::zeros(DType::I32, &[1, 1, 2, 2]).unwrap(), (2, 2), Mode::Nearest, true).is_err());
    assert!(interpolate2d(&Array::zeros(DType::F32, &[1, 1, 0, 2]).unwrap(), (2, 2), Mode::Nearest, true).is_err());
    assert!(interpolate2d_backward(&x, &[1, 2, 2, 2], Mode::Bilinear, true).is_err());
    assert!(interpolate2d_backward(&x, &[1, 1, 2], Mode::Bilinear, true).is_err());
    assert!(Mode::from_name("cubic").is_err() && Mode::from_name("bicubic").unwrap() == Mode::Bicubic);
}
