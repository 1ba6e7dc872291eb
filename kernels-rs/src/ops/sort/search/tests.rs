use super::*;
use crate::ops::samples::{Rng, floats};

#[test]
fn places_are_as_those_of_a_count() {
    let mut rng = Rng::new(11);
    for size in [0, 1, 2, 3, 7, 8, 33, 100] {
        let mut line: Vec<f32> = (0..size).map(|_| rng.below(20) as f32).collect();
        line.sort_by(f32::total_cmp);
        if size > 3 {
            line[size - 1] = f32::NAN;
        }
        let mut values: Vec<f32> = (0..29).map(|_| rng.below(24) as f32 - 2.0).collect();
        values[3] = f32::NAN;
        for right in [false, true] {
            let (x, v) = (Array::from_slice(&line, &[size]).unwrap(), Array::from_slice(&values, &[29]).unwrap());
            let found = floats(&searchsorted(&x, &v, right).unwrap());
            for (&found, &value) in found.iter().zip(&values) {
                // Behind all that is smaller, and with `right` behind equals too; nan is above all.
                let key = |x: f32| if x.is_nan() { f32::INFINITY } else { x };
                let behind = |x: &&f32| key(**x) < key(value) || (right && key(**x) == key(value));
                assert_eq!(found, line.iter().filter(behind).count() as f64, "{value} in {size}");
            }
        }
    }
}
