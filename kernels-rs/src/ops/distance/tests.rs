use super::*;
use crate::machine::threads::set_num_threads;
use crate::ops::samples::{Rng, floats, view_of};

#[test]
fn every_norm_type_and_layout_is_as_pair_by_pair() {
    let mut rng = Rng::new(29);
    for round in 0..150 {
        let dtype = [DType::F32, DType::F64, DType::F16, DType::BF16][round % 4];
        let p = [2.0, 1.0, 0.0, f64::INFINITY, 3.0][round % 5];
        let (n, m, d) = (rng.pick(&[0, 1, 2, 7]), rng.pick(&[0, 1, 31, 32, 70]), rng.pick(&[0, 1, 3, 20]));
        let (x1, x2) = (view_of(&mut rng, dtype, &[2, 1, n, d], false), view_of(&mut rng, dtype, &[3, m, d], false));
        set_num_threads(1 + round % 3);
        let out = cdist(&x1, &x2, p).unwrap();
        assert_eq!((&out.shape()[..], out.dtype()), (&[2, 3, n, m][..], dtype));
        let (a, b, found) = (floats(&x1), floats(&x2), floats(&out));
        for (at, found) in found.iter().enumerate() {
            let (batch, row, column) = (at / (n * m), at / m % n, at % m);
            let gap = |i: usize| (a[(batch / 3 * n + row) * d + i] - b[(batch % 3 * m + column) * d + i]).abs();
            let gaps = (0..d).map(gap);
            let wanted = match p {
                0.0 => gaps.filter(|&gap| gap != 0.0).count() as f64,
                f64::INFINITY => gaps.fold(0.0, f64::max),
                p => gaps.map(|gap| gap.powf(p)).sum::<f64>().powf(1.0 / p),
            };
            let part = [1e-6, 1e-13, 1e-3, 8e-3][round % 4];
            let inside = (found - wanted).abs() <= part * (1.0 + wanted.abs()) || (wanted > 6e4 && dtype == DType::F16);
            assert!(inside, "{found} for {wanted}");
        }
    }
}

#[test]
fn products_stand_where_nothing_cancels() {
    let mut rng = Rng::new(31);
    for round in 0..12 {
        let dtype = [DType::F32, DType::BF16][round % 2];
        let (n, m, d) = (rng.pick(&[1, 130, 260]), rng.pick(&[3, 257, 300]), rng.pick(&[24, 40, 65]));
        let mut rows = |count: usize| {
            // Some rows, then all of them, are near each other and far from 0.
            let far = rng.pick(&[0, 1, usize::MAX]);
            let x = floats(&view_of(&mut rng, DType::F32, &[count * d], false));
            let values: Vec<f32> = x
                .iter()
                .enumerate()
                .map(|(at, &x)| if at / d % 40 < far { 1e3 + x as f32 } else { x as f32 })
                .collect();
            cast(&Array::from_slice(&values, &[1, count, d]).unwrap(), dtype).unwrap()
        };
        let (x1, x2) = (rows(n), rows(m));
        let x2 = if n == m { x1.clone() } else { x2 };
        set_num_threads(1 + round % 3);
        let (a, b, found) = (floats(&x1), floats(&x2), floats(&cdist(&x1, &x2, 2.0).unwrap()));
        for (at, &found) in found.iter().enumerate() {
            let (row, column) = (at / m * d, at % m * d);
            let wanted = (0..d).map(|i| (a[row + i] - b[column + i]).powi(2)).sum::<f64>().sqrt();
            let part = [2e-6, 8e-3][round % 2];
            assert!((found - wanted).abs() <= part * wanted, "{found} for {wanted} of {n} {m} {d}");
        }
    }
}

#[test]
fn distances_beyond_the_squares_of_a_type_are_finite() {
    let x1 = Array::from_slice(&[3e30_f32, 3e-30, 0.0, 1.0], &[4, 1]).unwrap();
    let x2 = Array::from_slice(&[-1e30_f32, 0.0], &[2, 1]).unwrap();
    let found = floats(&cdist(&x1, &x2, 2.0).unwrap());
    let wanted = [4e30, 3e30, 1e30, 3e-30, 1e30, 0.0, 1e30, 1.0];
    for (found, wanted) in found.iter().zip(wanted) {
        assert!((found - wanted).abs() <= 1e-6 * wanted, "{found} for {wanted}");
    }
}

#[test]
fn nan_is_a_distance_in_every_norm() {
    let x = Array::from_slice(&[f32::NAN, 1.0], &[1, 2]).unwrap();
    for p in [1.0, 2.0, f64::INFINITY, 1.5] {
        assert!(floats(&cdist(&x, &x, p).unwrap())[0].is_nan());
    }
    assert!(cdist(&x, &x, -1.0).is_err());
}
