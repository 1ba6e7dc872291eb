//! Scans.

use super::arg::*;
use crate::ops::scan;

super::ops! {
    cumsum(x: Tensor, axis: usize, dtype: Dtype) => scan::cumsum(x, axis, dtype);
    logcumsumexp(x: Tensor, axis: usize) => scan::logcumsumexp(x, axis);
}
