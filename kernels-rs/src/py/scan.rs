//! Scans.

use super::arg::*;
use crate::ops::scan;

super::ops! {
    cummax(x: Tensor, axis: usize) => scan::cummax(x, axis);
    cummin(x: Tensor, axis: usize) => scan::cummin(x, axis);
    cumsum(x: Tensor, axis: usize, dtype: Dtype) => scan::cumsum(x, axis, dtype);
    cumulative_prod(x: Tensor, axis: usize, dtype: Dtype, include_initial: bool)
        => scan::cumulative_prod(x, axis, dtype, include_initial);
    logcumsumexp(x: Tensor, axis: usize) => scan::logcumsumexp(x, axis);
}
