use super::*;
use crate::ops::elementwise::kernel::binary;
use crate::ops::elementwise::{Operand as Given, binary as apply};
use crate::ops::samples::Computed;

#[test]
fn what_is_mapped_may_be_computed_as_it_is_read() {
    for len in [1, 7, TILE, 3 * TILE + 5] {
        let x: Vec<f32> = (0..len).map(Computed::at).collect();
        let x = Array::from_slice(&x, &[len]).unwrap();
        let want = apply(&binary::multiply, Given::Array(&x), Given::Array(&x)).unwrap();
        let kernel = (binary::multiply.select)(DType::F32).unwrap();
        let plan = Plan { kernel, dtype: DType::F32, raw: false, heavy: false, scalars: true };
        let mut got = vec![0f32; len];
        let views = [Input::Array(&x); 2].map(|input| View::flat(&plan, input));
        let target = SharedMut::new(got.as_mut_ptr().cast());
        Walk { plan: &plan, views: &views, dims: &[len], target }.tiles(&[Computed, Computed], 0, len);
        assert_eq!(want.as_slice::<f32>().unwrap(), got);
    }
}
