use super::*;
use crate::ops::samples::{Rng, dense, floats, view_of};

fn settings(mode: Mode, margin: Margin, align_corners: bool) -> Settings {
    Settings { mode, margin, align_corners }
}

/// Places at the middles of all pixels.
fn middles(rows: usize, cols: usize) -> Array {
    let at = |i: usize, n: usize| ((2 * i + 1) as f64 / n as f64 - 1.0) as f32;
    let places: Vec<f32> = (0..rows * cols).flat_map(|i| [at(i % cols, cols), at(i / cols, rows)]).collect();
    Array::from_slice(&places, &[1, rows, cols, 2]).unwrap()
}

#[test]
fn the_middles_of_pixels_give_the_image() {
    let mut rng = Rng::new(1);
    for mode in [Mode::Nearest, Mode::Bilinear, Mode::Bicubic] {
        for margin in [Margin::Border, Margin::Reflection, Margin::Zeros] {
            let x = view_of(&mut rng, DType::F32, &[1, 3, 9, 70], false);
            let out = grid_sample(&x, &middles(9, 70), settings(mode, margin, false)).unwrap();
            assert_eq!(out.shape(), x.shape());
            for (a, b) in floats(&out).iter().zip(floats(&x)) {
                assert!((a - b).abs() < 1e-4 * (1.0 + b.abs()), "{mode:?} {margin:?}: {a} for {b}");
            }
        }
    }
}

#[test]
fn places_outside_read_what_the_margin_says() {
    let x = Array::from_slice(&[1.0f32, 2.0, 3.0, 4.0], &[1, 1, 1, 4]).unwrap();
    // One and a half pixels left of the first, and beside the last: rows in the middle.
    let grid = Array::from_slice(&[-1.75f32, 0.0, 1.25, 0.0], &[1, 1, 2, 2]).unwrap();
    let found = |mode, margin| floats(&grid_sample(&x, &grid, settings(mode, margin, false)).unwrap());
    assert_eq!(found(Mode::Nearest, Margin::Zeros), [0.0, 0.0]);
    assert_eq!(found(Mode::Bilinear, Margin::Border), [1.0, 4.0]);
    assert_eq!(found(Mode::Bilinear, Margin::Reflection), [2.0, 4.0]);
}

#[test]
fn what_is_outside_does_not_spoil_what_is_read_nor_hides_nan() {
    let x = Array::from_slice(&[f32::INFINITY, 2.0], &[1, 1, 1, 2]).unwrap();
    let grid = Array::from_slice(&[3.0f32, 0.0, f32::NAN, 0.0], &[1, 1, 2, 2]).unwrap();
    let out = floats(&grid_sample(&x, &grid, settings(Mode::Bilinear, Margin::Zeros, false)).unwrap());
    assert!(out[0] == 0.0 && out[1].is_nan(), "{out:?}");
}

#[test]
fn narrow_floats_are_rounded_once_and_wrong_operands_refused() {
    let mut rng = Rng::new(2);
    let x = dense(&mut rng, DType::BF16, &[2, 2, 5, 6], false);
    let grid = dense(&mut rng, DType::BF16, &[2, 3, 4, 2], false);
    let how = settings(Mode::Bilinear, Margin::Zeros, true);
    let wide = |x: &Array| crate::ops::elementwise::convert::cast(x, DType::F32).unwrap();
    let wanted = grid_sample(&wide(&x), &wide(&grid), how).unwrap();
    let rounded = crate::ops::elementwise::convert::cast(&wanted, DType::BF16).unwrap();
    assert_eq!(floats(&grid_sample(&x, &grid, how).unwrap()), floats(&rounded));
    assert!(grid_sample(&x, &dense(&mut rng, DType::BF16, &[1, 3, 4, 2], false), how).is_err());
    assert!(grid_sample(&dense(&mut rng, DType::F32, &[2, 1, 0, 3], false), &wide(&grid), how).is_err());
}

#[test]
fn channels_that_are_read_together_are_those_read_alone() {
    let mut rng = Rng::new(4);
    for channels in [2, 3, 16, 19] {
        let x = dense(&mut rng, DType::F32, &[1, channels, 7, 6], false);
        let grid = dense(&mut rng, DType::F32, &[1, 5, 9, 2], false);
        for mode in [Mode::Nearest, Mode::Bilinear, Mode::Bicubic] {
            for margin in [Margin::Border, Margin::Reflection, Margin::Zeros] {
                let how = settings(mode, margin, false);
                let together = floats(&grid_sample(&x, &grid, how).unwrap());
                for channel in 0..channels {
                    let alone = parts::narrowed(&x, 1, &(channel..channel + 1)).unwrap();
                    let alone = floats(&grid_sample(&alone, &grid, how).unwrap());
                    for (a, b) in together[channel * 45..].iter().zip(&alone) {
                        assert!((a - b).abs() <= 1e-5 * (1.0 + b.abs()), "{mode:?} {margin:?}: {a} for {b}");
                    }
                }
            }
        }
    }
}
