//! Reductions, scans, sorts.

use super::arg::*;
use crate::{reduce, scan, sort as sorting};

super::ops! {
    all(x: Tensor, axis: Ints, keepdims: bool) => reduce::all(x, &axis, keepdims);
    any(x: Tensor, axis: Ints, keepdims: bool) => reduce::any(x, &axis, keepdims);
    argmax(x: Tensor, axis: Option<usize>, keepdims: bool) => reduce::argmax(x, axis, keepdims);
    argmin(x: Tensor, axis: Option<usize>, keepdims: bool) => reduce::argmin(x, axis, keepdims);
    argsort(x: Tensor, axis: usize, descending: bool) => sorting::argsort(x, axis, descending);
    cumsum(x: Tensor, axis: usize) => scan::cumsum(x, axis);
    max(x: Tensor, axis: Ints, keepdims: bool) => reduce::max(x, &axis, keepdims);
    mean(x: Tensor, axis: Ints, keepdims: bool) => reduce::mean(x, &axis, keepdims);
    min(x: Tensor, axis: Ints, keepdims: bool) => reduce::min(x, &axis, keepdims);
    prod(x: Tensor, axis: Ints, keepdims: bool, dtype: Dtype) => reduce::prod(x, &axis, keepdims, dtype);
    sort(x: Tensor, axis: usize, descending: bool) => sorting::sort(x, axis, descending);
    sum(x: Tensor, axis: Ints, keepdims: bool, dtype: Dtype) => reduce::sum(x, &axis, keepdims, dtype);
    topk(x: Tensor, k: usize, axis: usize, largest: bool) => sorting::topk(x, k, axis, largest);
}
