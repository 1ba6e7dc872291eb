use super::*;
use crate::machine::threads::set_num_threads;
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

#[test]
fn volumes_are_read_as_their_layers_and_between_them() {
    let mut rng = Rng::new(6);
    let x = dense(&mut rng, DType::F32, &[2, 3, 1, 5, 6], false);
    let image = view::reshape(&x, &[2, 3, 5, 6]).unwrap();
    let flat = dense(&mut rng, DType::F32, &[2, 4, 9, 2], false);
    let places: Vec<f32> =
        floats(&flat).chunks_exact(2).flat_map(|p| [p[0] as f32 / 3.0, p[1] as f32 / 3.0, 0.0]).collect();
    let deep = Array::from_slice(&places, &[2, 1, 4, 9, 3]).unwrap();
    let pairs: Vec<f32> = places.chunks_exact(3).flat_map(|p| [p[0], p[1]]).collect();
    let flat = Array::from_slice(&pairs, &[2, 4, 9, 2]).unwrap();
    for mode in [Mode::Nearest, Mode::Bilinear] {
        for margin in [Margin::Border, Margin::Reflection, Margin::Zeros] {
            for corners in [false, true] {
                let how = settings(mode, margin, corners);
                let (found, wanted) = (grid_sample(&x, &deep, how).unwrap(), grid_sample(&image, &flat, how).unwrap());
                assert_eq!(found.shape()[..], [2, 3, 1, 4, 9]);
                for (a, b) in floats(&found).iter().zip(floats(&wanted)) {
                    assert!((a - b).abs() < 1e-5 * (1.0 + b.abs()), "{mode:?} {margin:?}: {a} for {b}");
                }
            }
        }
    }
    let two = Array::from_slice(&[1.0f32, 3.0], &[1, 1, 2, 1, 1]).unwrap();
    let between = Array::from_slice(&[0.0f32, 0.0, -0.25], &[1, 1, 1, 1, 3]).unwrap();
    for margin in [Margin::Border, Margin::Reflection, Margin::Zeros] {
        let how = settings(Mode::Bilinear, margin, true);
        assert_eq!(floats(&grid_sample(&two, &between, how).unwrap()), [1.75]);
    }
    assert!(grid_sample(&two, &between, settings(Mode::Bicubic, Margin::Zeros, true)).is_err());
    assert!(grid_sample(&two, &flat, settings(Mode::Nearest, Margin::Zeros, true)).is_err());
}

#[test]
fn many_places_of_a_volume_are_found_in_vectors_as_one_by_one() {
    let mut rng = Rng::new(7);
    let x = dense(&mut rng, DType::F32, &[1, 5, 4, 5, 6], false);
    let places: Vec<f32> = (0..3 * 333).map(|_| rng.below(1 << 16) as f32 / 40_000.0 - 0.8).collect();
    let grid = Array::from_slice(&places, &[1, 3, 111, 1, 3]).unwrap();
    for channels in [1, 5] {
        let x = parts::narrowed(&x, 1, &(0..channels)).unwrap();
        // No place is outside: reflection, which goes one by one, changes none.
        let [a, b] = [Margin::Border, Margin::Reflection]
            .map(|margin| floats(&grid_sample(&x, &grid, settings(Mode::Bilinear, margin, false)).unwrap()));
        assert!(a.iter().zip(b).all(|(a, b)| (a - b).abs() < 1e-5 * (1.0 + b.abs())));
    }
}

#[test]
fn places_that_are_no_numbers_read_the_first_pixel_inside_a_margin() {
    let x = Array::from_slice(&[1.0f32, 2.0, 3.0, 4.0], &[1, 1, 1, 4]).unwrap();
    let grid = Array::from_slice(&[f32::NAN, 0.0, f32::INFINITY, f32::NAN], &[1, 1, 2, 2]).unwrap();
    let found = |mode, margin| floats(&grid_sample(&x, &grid, settings(mode, margin, false)).unwrap());
    for mode in [Mode::Nearest, Mode::Bilinear] {
        assert_eq!(found(mode, Margin::Border), [1.0, 4.0]);
        assert_eq!(found(mode, Margin::Reflection), [1.0, 1.0]);
    }
}

/// The pixels along an axis of `n` that a place reads, None outside, and their weights: in the plainest way.
fn plain(place: f64, n: usize, how: Settings) -> Vec<(Option<usize>, f64)> {
    let (last, size) = (n as f64 - 1.0, n as f64);
    let at = if how.align_corners { (place + 1.0) * last / 2.0 } else { ((place + 1.0) * size - 1.0) / 2.0 };
    let (low, span) = if how.align_corners { (0.0, last) } else { (-0.5, size) };
    let inside = |at: f64| match how.margin {
        Margin::Zeros => at,
        _ if at.is_nan() || n == 1 => 0.0,
        Margin::Border => at.clamp(0.0, last),
        Margin::Reflection => {
            let rest = (at - low).abs() % (2.0 * span);
            (if rest > span { 2.0 * span - rest } else { rest } + low).clamp(0.0, last)
        }
    };
    let pixel = |at: f64| (at >= 0.0 && at <= last).then_some(at as usize);
    let t = at - at.floor();
    match how.mode {
        Mode::Nearest => vec![(pixel(inside(at).round_ties_even()), 1.0)],
        Mode::Bilinear => {
            let at = inside(at);
            let t = at - at.floor();
            vec![(pixel(at.floor()), 1.0 - t), (pixel(at.floor() + 1.0), t)]
        }
        Mode::Bicubic => {
            let near = |t: f64| (1.25 * t - 2.25) * t * t + 1.0;
            let far = |t: f64| ((-0.75 * t + 3.75) * t - 6.0) * t + 3.0;
            let weights = [far(1.0 + t), near(t), near(1.0 - t), far(2.0 - t)];
            (-1..3).map(|i| pixel(inside(at.floor() + f64::from(i)))).zip(weights).collect()
        }
    }
}

#[test]
fn every_mode_margin_and_size_is_as_place_by_place() {
    let mut rng = Rng::new(8);
    for round in 0..300 {
        let dtype = [DType::F32, DType::F64][round % 2];
        let how = settings(
            [Mode::Nearest, Mode::Bilinear, Mode::Bicubic][round % 3],
            [Margin::Border, Margin::Reflection, Margin::Zeros][round / 3 % 3],
            round / 9 % 2 == 0,
        );
        let (channels, rows, cols) = (rng.pick(&[1, 3, 9]), rng.pick(&[1, 2, 5, 40]), rng.pick(&[1, 2, 7, 33]));
        let count = rng.pick(&[1, 15, 16, 17, 130, 300]);
        let x = dense(&mut rng, dtype, &[2, channels, rows, cols], false);
        // No place is between two pixels, to a rounding: inside, all around, or anywhere with some that are no numbers.
        let kind = rng.below(3);
        let places: Vec<f64> = (0..4 * count)
            .map(|_| match (kind, rng.below(40)) {
                (2, 0) => f64::NAN,
                (0, _) => rng.below(28) as f64 / 16.0 - 0.9137,
                _ => rng.below(97) as f64 / 16.0 - 3.0291,
            })
            .collect();
        let grid = Array::from_slice(&places, &[2, 1, count, 2]).unwrap();
        let grid = crate::ops::elementwise::convert::cast(&grid, dtype).unwrap();
        set_num_threads(1 + round % 2);
        let (found, image, places) = (floats(&grid_sample(&x, &grid, how).unwrap()), floats(&x), floats(&grid));
        for (at, found) in found.iter().enumerate() {
            let (plane, place) = (at / count, 2 * (at / count / channels * count + at % count));
            let (down, across) = (plain(places[place + 1], rows, how), plain(places[place], cols, how));
            let pairs = down.iter().flat_map(|row| across.iter().map(move |col| (row.0.zip(col.0), row.1 * col.1)));
            let parts = pairs.map(|(pixel, weight)| {
                weight * pixel.map_or(0.0, |(row, col)| image[(plane * rows + row) * cols + col])
            });
            let wanted: f64 = parts.sum();
            // A position of f32 among 40 pixels, far outside, is within 2e-5 of a pixel, and pixels differ by 8 at most.
            let part = [1e-3, 1e-12][round % 2];
            let same = (found - wanted).abs() <= part * (1.0 + wanted.abs()) || found.is_nan() && wanted.is_nan();
            assert!(same, "{found} for {wanted} at {place}: {how:?} of {rows}x{cols} {dtype:?}");
        }
    }
}
