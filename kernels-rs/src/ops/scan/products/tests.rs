use super::*;
use crate::machine::threads::set_num_threads;
use crate::ops::samples::{Rng, floats, shape, view_of};

#[test]
fn products_are_those_of_a_plain_loop() {
    let mut rng = Rng::new(41);
    for round in 0..240 {
        let dtype = [DType::F32, DType::F64, DType::I8, DType::U8, DType::BF16, DType::I64][round % 6];
        let mut size = shape(&mut rng, 3, &[0, 1, 2, 9, 40]);
        size.push(rng.pick(&[1, 3, 300]));
        let axis = rng.below(size.len());
        let x = view_of(&mut rng, dtype, &size, false);
        set_num_threads(1 + round % 4);
        let initial = round % 2 == 0;
        let found = floats(&cumulative_prod(&x, axis, dtype, initial).unwrap());
        let (outer, len, inner) = around("cumulative_prod", &size, axis).unwrap();
        let (x, wide) = (floats(&x), len + usize::from(initial));
        let wrapped = |value: f64| match dtype {
            DType::I8 => f64::from(value as i64 as i8),
            DType::U8 => f64::from(value as i64 as u8),
            _ => value,
        };
        for line in 0..outer * inner {
            let start = |len: usize| line / inner * len * inner + line % inner;
            let mut product = 1.0;
            for at in 0..wide {
                if at >= usize::from(initial) {
                    product = wrapped(product * x[start(len) + (at - usize::from(initial)) * inner]);
                }
                let got = found[start(wide) + at * inner];
                let near = match dtype {
                    DType::F32 => 1e-6,
                    DType::BF16 => 1e-2,
                    _ => 1e-14,
                };
                // Below the normal numbers of a narrow type its steps are coarse.
                let close = (got - product).abs() <= (near * product.abs()).max(1e-40);
                let same = got == product || close || product.abs() > 1e15;
                assert!(same || (got.is_nan() && product.is_nan()), "{dtype:?} {got} {product}");
            }
        }
    }
}
