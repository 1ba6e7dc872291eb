use super::*;
use crate::machine::threads::set_num_threads;
use crate::ops::samples::{Rng, elements, floats, shape, view_of};

#[test]
fn every_type_and_layout_is_as_line_by_line() {
    let mut rng = Rng::new(23);
    for round in 0..240 {
        let dtype = DType::ALL[round % 12];
        if dtype == DType::Bool {
            continue;
        }
        let mut size = shape(&mut rng, 3, &[0, 1, 2, 5, 40, 300]);
        size.push(rng.pick(&[1, 3, 70]));
        let axis = rng.below(size.len());
        let x = view_of(&mut rng, dtype, &size, true);
        set_num_threads(1 + round % 4);
        let largest = round % 2 == 0;
        let (values, places) = if largest { cummax(&x, axis) } else { cummin(&x, axis) }.unwrap();
        assert_eq!((values.shape(), values.dtype(), places.dtype()), (x.shape(), dtype, DType::I64));
        let (from, values, places) = (floats(&x), floats(&values), elements::<i64>(&places));
        let (_, len, inner) = around("cummax", &size, axis).unwrap();
        for at in 0..from.len() {
            let (row, first) = (at / inner % len, at / (inner * len) * len * inner + at % inner);
            let mut best = 0;
            for i in 0..=row {
                let (new, old) = (from[first + i * inner], from[first + best * inner]);
                if (if largest { new >= old } else { new <= old }) || new.is_nan() {
                    best = i;
                }
            }
            assert_eq!(places[at], best as i64, "{x:?} {axis}");
            assert_eq!(values[at].to_bits(), from[first + best * inner].to_bits());
        }
    }
}
