use super::*;
use crate::ops::samples::{Rng, floats};

#[test]
fn counts_are_those_of_a_plain_loop() {
    let mut rng = Rng::new(5);
    for (size, span) in [(0, 3), (1, 1), (7, 5), (1000, 3), (5000, 4000), (3 * GRAIN + 5, 40)] {
        let values: Vec<i16> = (0..size).map(|_| rng.below(span) as i16).collect();
        let found = floats(&bincount(&Array::from_slice(&values, &[size]).unwrap(), 2).unwrap());
        let most = values.iter().max().map_or(0, |&most| most as usize + 1).max(2);
        let wanted: Vec<f64> =
            (0..most).map(|at| values.iter().filter(|&&value| value as usize == at).count() as f64).collect();
        assert_eq!(found, wanted);
    }
    assert!(bincount(&Array::from_slice(&[3_i32, -1], &[2]).unwrap(), 0).is_err());
    assert!(bincount(&Array::from_slice(&[u64::MAX], &[1]).unwrap(), 0).is_err());
}
