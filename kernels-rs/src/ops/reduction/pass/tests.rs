use super::*;
use crate::ops::reduction::kernel::Reduction;
use crate::ops::reduction::{max, sum};
use crate::ops::samples::Computed;

#[test]
fn what_is_folded_may_be_computed_as_it_is_read() {
    for (count, len) in [(3, 5), (7, 1024), (40, 17)] {
        let x: Vec<f32> = (0..count * len).map(Computed::at).collect();
        let x = Array::from_slice(&x, &[count, len]).unwrap();
        let sums = sum(&x, &[1], false, DType::F32).unwrap();
        for (reduction, want) in [(Reduction::Sum, sums), (Reduction::Max, max(&x, &[1], false).unwrap())] {
            let kernel = reduction.kernel(DType::F32);
            let (kept, run) = (Axes::empty(), Axes::empty());
            let pass = Pass { kernel, x: std::ptr::null(), kept, run, wanted: DType::F32 };
            let mut got = vec![0f32; count];
            // SAFETY: a result for each row.
            unsafe { pass.row_part(&Computed, 0, count * len, len, SharedMut::new(got.as_mut_ptr().cast())) };
            assert_eq!(want.as_slice::<f32>().unwrap(), got);
        }
    }
}
