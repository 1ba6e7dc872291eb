//! Reductions.

use super::arg::*;
use crate::ops::reduction;
use crate::ops::rows;

super::ops! {
    all(x: Tensor, axis: Ints, keepdims: bool) => reduction::all(x, axis, keepdims);
    any(x: Tensor, axis: Ints, keepdims: bool) => reduction::any(x, axis, keepdims);
    argmax(x: Tensor, axis: Option<usize>, keepdims: bool) => reduction::argmax(x, axis, keepdims);
    argmin(x: Tensor, axis: Option<usize>, keepdims: bool) => reduction::argmin(x, axis, keepdims);
    logsumexp(x: Tensor, axis: Ints, keepdims: bool) => rows::logsumexp(x, axis, keepdims);
    max(x: Tensor, axis: Ints, keepdims: bool) => reduction::max(x, axis, keepdims);
    mean(x: Tensor, axis: Ints, keepdims: bool) => reduction::mean(x, axis, keepdims);
    min(x: Tensor, axis: Ints, keepdims: bool) => reduction::min(x, axis, keepdims);
    prod(x: Tensor, axis: Ints, keepdims: bool, dtype: Dtype) => reduction::prod(x, axis, keepdims, dtype);
    deviation as "std" (x: Tensor, axis: Ints, correction: f64, keepdims: bool) => rows::std(x, axis, correction, keepdims);
    sum(x: Tensor, axis: Ints, keepdims: bool, dtype: Dtype) => reduction::sum(x, axis, keepdims, dtype);
    var(x: Tensor, axis: Ints, correction: f64, keepdims: bool) => rows::var(x, axis, correction, keepdims);
    vector_norm(x: Tensor, axis: Ints, keepdims: bool) => reduction::vector_norm(x, axis, keepdims);
}
