use super::*;
use crate::ops::samples::Computed;

#[test]
fn rows_may_be_computed_as_they_are_read() {
    for (count, len) in [(3, 5), (40, 700), (1, 9)] {
        let x: Vec<f32> = (0..count * len).map(Computed::at).collect();
        let want = softmax(&Array::from_slice(&x, &[count, len]).unwrap(), 1).unwrap();
        let mut got = vec![0.0; count * len];
        // SAFETY: it has as many elements as one asks for.
        let computed = unsafe { Reader::<f32, _>::from_source(Computed, got.len()) };
        rows(Op::Softmax, &computed, None, len, &mut got);
        assert_eq!(want.as_slice::<f32>().unwrap(), got);
    }
}
