//! New arrays: filled, counted, of another dtype.

use super::arg::*;
use crate::array::shape::numel;
use crate::ops::elementwise::convert;

super::ops! {
    arange(start: Value, step: Value, count: usize, dtype: Dtype) [work = count]
        => convert::arange(start, step, count, dtype);
    cast(x: Tensor, dtype: Dtype) => convert::cast(x, dtype);
    full(shape: Ints, value: Value, dtype: Dtype) [work = numel(shape)] => convert::full(shape, value, dtype);
}
