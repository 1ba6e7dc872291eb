use super::*;
use crate::ops::samples::{Rng, floats, shape, view_of};

#[test]
fn lines_of_any_layout_are_summed_one_by_one() {
    let mut rng = Rng::new(17);
    for round in 0..200 {
        let dtype = [DType::F32, DType::F64, DType::F16, DType::BF16][round % 4];
        let mut lengths = shape(&mut rng, 3, &[1, 2, 5, 17, 70, 150]);
        lengths.push(1 + rng.below(5));
        let axis = rng.below(lengths.len());
        let x = view_of(&mut rng, dtype, &lengths, round % 3 == 0);
        let found = floats(&logcumsumexp(&x, axis).unwrap());
        let (from, inner) = (floats(&x), lengths[axis + 1..].iter().product::<usize>());
        let len = lengths[axis];
        for line in 0..from.len() / len {
            let (before, after) = (line / inner * len * inner, line % inner);
            let mut sum = f64::NEG_INFINITY;
            for i in 0..len {
                let at = before + i * inner + after;
                sum = double::logaddexp(sum, from[at]);
                let part = match dtype {
                    DType::F64 => 1e-14,
                    DType::F32 => 2e-7,
                    DType::F16 => 1e-3,
                    _ => 8e-3,
                };
                let same = sum == found[at] || (sum.is_nan() && found[at].is_nan());
                assert!(same || (found[at] - sum).abs() <= part * (1.0 + sum.abs()), "{} for {sum}", found[at]);
            }
        }
    }
}

#[test]
fn sums_far_below_what_follows_are_kept() {
    let values: Vec<f32> = (0..200).map(|i| i as f32 * 40.0 - 3990.0).collect();
    let found = logcumsumexp(&Array::from_slice(&values, &[200]).unwrap(), 0).unwrap();
    assert_eq!(floats(&found), values.iter().map(|&x| f64::from(x)).collect::<Vec<_>>());
    let infinite = [f32::NEG_INFINITY, f32::NEG_INFINITY, 1.0, f32::INFINITY, 2.0, f32::NEG_INFINITY];
    let found = floats(&logcumsumexp(&Array::from_slice(&infinite, &[6]).unwrap(), 0).unwrap());
    let (low, high) = (f64::NEG_INFINITY, f64::INFINITY);
    assert_eq!(found, [low, low, 1.0, high, high, high]);
}
