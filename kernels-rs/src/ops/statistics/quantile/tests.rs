use super::*;
use crate::ops::samples::{Rng, floats, view_of};

#[test]
fn quantiles_are_those_of_a_sort() {
    let mut rng = Rng::new(7);
    for (round, len) in [1, 2, 3, 7, 100, 20_000, 40_001].into_iter().cycle().take(84).enumerate() {
        let dtype = [DType::F32, DType::F64, DType::BF16, DType::F16][round % 4];
        let between = [Between::Linear, Between::Lower, Between::Higher, Between::Midpoint, Between::Nearest];
        let (between, q) = (between[round % 5], [0.0, 0.3, 0.5, 0.999, 1.0][round % 3]);
        let x = view_of(&mut rng, dtype, &[2, len], false);
        let found = floats(&quantile(&x, q, &[1], round % 2 == 0, between).unwrap());
        for (line, found) in floats(&x).chunks(len).zip(found) {
            let mut line = line.to_vec();
            line.sort_by(f64::total_cmp);
            let place = q * (len - 1) as f64;
            let (low, high) = (line[place.floor() as usize], line[place.ceil() as usize]);
            let part = place - place.floor();
            let want = match between {
                _ if line.iter().any(|x| x.is_nan()) => f64::NAN,
                _ if low == high => low,
                Between::Higher => high,
                Between::Linear => low * (1.0 - part) + high * part,
                Between::Lower => low,
                Between::Midpoint => 0.5 * low + 0.5 * high,
                Between::Nearest => line[place.round_ties_even() as usize],
            };
            let near = if dtype == DType::F64 { 1e-14 } else { 1e-2 };
            let same = found == want || (found.is_nan() && want.is_nan());
            assert!(same || (found - want).abs() <= near * want.abs().max(low.abs()), "{dtype:?} {found} {want}");
        }
    }
}

#[test]
fn nan_wins_and_nothing_is_an_error() {
    let mut values = vec![1.0_f32; 30_000];
    values[29_999] = f32::NAN;
    for len in [5, 30_000] {
        let x = Array::from_slice(&values[30_000 - len..], &[len]).unwrap();
        assert!(floats(&quantile(&x, 0.5, &[0], false, Between::Linear).unwrap())[0].is_nan());
    }
    let none = Array::zeros(DType::F32, &[2, 0]).unwrap();
    assert!(quantile(&none, 0.5, &[1], false, Between::Linear).is_err());
}
