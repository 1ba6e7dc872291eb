use super::*;
use crate::dtype::F16;
use crate::ops::samples::{Rng, elements, shape, view_of};

#[test]
fn parts_of_any_layout() {
    let mut rng = Rng::new(31);
    for round in 0..600 {
        let size = shape(&mut rng, 4, &[0, 1, 2, 3, 5, 16, 40]);
        if round % 2 == 0 {
            check::<f32>(&mut rng, &size);
        } else {
            check::<F16>(&mut rng, &size);
        }
    }
}

fn check<T: Element + PartialEq + std::fmt::Debug>(rng: &mut Rng, size: &[usize]) {
    let dtype = if size_of::<T>() == 4 { DType::F32 } else { DType::F16 };
    let x = view_of(rng, dtype, size, false);
    let expected = elements::<T>(&x);
    let reader = Reader::<T>::new(&x);
    let mut buffer = vec![0f32; reader.room(x.numel())];
    for _ in 0..4 {
        let start = rng.below(x.numel() + 1);
        let end = start + rng.below(x.numel() - start + 1);
        assert_eq!(reader.part(start..end, &mut buffer), &expected[start..end], "{x:?}");
    }
    assert_eq!(x.is_contiguous(), reader.room(1) == 0);
    for axis in 0..x.rank() {
        let order: Vec<usize> = (0..x.rank()).filter(|&at| at != axis).chain([axis]).collect();
        let turned = elements::<T>(&crate::array::view::permute_dims(&x, &order).unwrap());
        let (reader, len) = (Reader::<T>::along(&x, axis), x.shape()[axis]);
        let mut buffer = vec![0f32; reader.room(x.numel())];
        assert_eq!(reader.part(0..x.numel(), &mut buffer), &turned[..], "{x:?} {axis}");
        if len > 1 && x.numel() > 0 && reader.run() >= len {
            assert_eq!(reader.part::<f32>(x.numel() - len..x.numel(), &mut []), &turned[x.numel() - len..]);
        }
    }
}
