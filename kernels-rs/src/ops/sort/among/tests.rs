use super::*;
use crate::ops::elementwise::convert::cast;
use crate::ops::samples::{Rng, floats, view_of};

#[test]
fn elements_of_every_type_are_found() {
    let mut rng = Rng::new(3);
    for round in 0..120 {
        let dtype = DType::ALL[round % 12];
        let (count, of) = (rng.pick(&[0, 1, 40, 700]), rng.pick(&[0, 1, 5, 300]));
        let (x1, x2) = (view_of(&mut rng, dtype, &[count], true), view_of(&mut rng, dtype, &[of], true));
        let invert = round % 2 == 0;
        let found = floats(&cast(&isin(&x1, &x2, invert).unwrap(), DType::I8).unwrap());
        let (x1, x2) = (floats(&x1), floats(&x2));
        for (x, found) in x1.iter().zip(found) {
            assert_eq!(found == 1.0, x2.contains(x) != invert, "{dtype:?} {x}");
        }
    }
}

#[test]
fn numbers_far_apart_and_both_zeros() {
    let x1 = Array::from_slice(&[i64::MIN, -1, 0, 7, i64::MAX], &[5]).unwrap();
    let x2 = Array::from_slice(&[i64::MAX, 0, i64::MIN], &[3]).unwrap();
    assert_eq!(isin(&x1, &x2, false).unwrap().as_slice::<bool>().unwrap(), [true, false, true, false, true]);
    let near = Array::from_slice(&[-2_i64, 7], &[2]).unwrap();
    assert_eq!(isin(&x1, &near, false).unwrap().as_slice::<bool>().unwrap(), [false, false, false, true, false]);
    let x1 = Array::from_slice(&[0.0_f32, -0.0, f32::NAN, 1.0], &[4]).unwrap();
    let x2 = Array::from_slice(&[-0.0_f32, f32::NAN], &[2]).unwrap();
    assert_eq!(isin(&x1, &x2, false).unwrap().as_slice::<bool>().unwrap(), [true, true, false, false]);
}
