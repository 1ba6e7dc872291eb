use super::*;
use crate::ops::samples::{Rng, floats, view_of};

#[test]
fn every_kind_of_scale() {
    let mut rng = Rng::new(12);
    for round in 0..200 {
        let dtype = [DType::I8, DType::U8, DType::I32, DType::I64][round % 4];
        let of_scale = [DType::F32, DType::F64, DType::BF16][round % 3];
        let sizes = [4, 6, 40];
        let (blocks, axis) = match round % 5 {
            0 => ([1, 1, 1], None),
            1 => ([1, 6, 1], Some(1)),
            2 => ([1, 1, 40], Some(2)),
            3 => ([2, 3, 8], None),
            _ => ([4, 1, 40], None),
        };
        let shape: Vec<usize> = match (axis, blocks) {
            (None, [1, 1, 1]) => vec![],
            (Some(axis), _) => vec![blocks[axis]],
            _ => blocks.to_vec(),
        };
        let x = view_of(&mut rng, dtype, &sizes, false);
        let scale = view_of(&mut rng, of_scale, &shape, false);
        let zero = (round % 2 == 0).then(|| view_of(&mut rng, DType::I8, &shape, false));
        let found = floats(&dequantize(&x, &scale, zero.as_ref(), axis).unwrap());
        let (x, scale) = (floats(&x), floats(&scale));
        let zero = zero.map_or_else(|| vec![0.0; scale.len()], |zero| floats(&zero));
        for (at, (&x, found)) in x.iter().zip(found).enumerate() {
            let place = [at / 240, at / 40 % 6, at % 40];
            let index = (0..3).fold(0, |sum, i| sum * blocks[i] + place[i] / (sizes[i] / blocks[i]));
            let want = (x - zero[index]) * scale[index];
            assert!((found - want).abs() <= 1e-2 * want.abs() + 1e-6 || found == want, "{found} {want}");
        }
    }
}
