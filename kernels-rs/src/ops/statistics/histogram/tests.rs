use super::*;
use crate::ops::samples::{Rng, floats, view_of};

#[test]
fn counts_are_those_of_each_interval_in_every_type_and_layout() {
    let mut rng = Rng::new(11);
    for round in 0..120 {
        let dtype = [DType::F32, DType::F64, DType::F16, DType::BF16][round % 4];
        let shape = [rng.pick(&[1, 3, 40]), rng.pick(&[1, 7, 50])];
        let x = view_of(&mut rng, dtype, &shape, false);
        let bins = rng.pick(&[1, 2, 10, 100]);
        let (low, high) = if round % 3 == 0 { (None, None) } else { (Some(-1.0), Some(1.5)) };
        let (counts, edges) = histogram(&x, bins, low, high).unwrap();
        let (values, counts, edges) = (floats(&x), floats(&counts), floats(&edges));
        assert_eq!((counts.len(), edges.len()), (bins, bins + 1));
        for (at, &count) in counts.iter().enumerate() {
            let last = at + 1 == bins;
            let inside = |x: f64| x >= edges[at] && (x < edges[at + 1] || (last && x <= edges[at + 1]));
            assert_eq!(count, values.iter().filter(|&&x| inside(x)).count() as f64, "{at} of {edges:?}");
        }
    }
}

#[test]
fn what_is_no_number_is_not_counted_and_gives_no_range() {
    let x = Array::from_slice(&[f32::NAN, 0.5, f32::INFINITY, -3.0], &[4]).unwrap();
    assert_eq!(floats(&histogram(&x, 2, Some(0.0), Some(1.0)).unwrap().0), [0.0, 1.0]);
    assert!(histogram(&x, 2, None, None).is_err());
    assert!(histogram(&x, 2, Some(1.0), Some(0.0)).is_err());
    let none = Array::zeros(DType::F32, &[0]).unwrap();
    assert_eq!(floats(&histogram(&none, 2, None, None).unwrap().1), [0.0, 0.5, 1.0]);
    let same = Array::from_slice(&[3.0_f64, 3.0], &[2]).unwrap();
    assert_eq!(floats(&histogram(&same, 2, None, None).unwrap().1), [2.5, 3.0, 3.5]);
}
