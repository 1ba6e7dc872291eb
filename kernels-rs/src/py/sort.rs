//! Sorts.

use super::arg::*;
use crate::ops::sort as sorting;

super::ops! {
    argsort(x: Tensor, axis: usize, descending: bool) => sorting::argsort(x, axis, descending);
    isin(x1: Tensor, x2: Tensor, invert: bool) => sorting::isin(x1, x2, invert);
    searchsorted(x1: Tensor, x2: Tensor, side: Text) => sorting::searchsorted(x1, x2, side == "right");
    sort(x: Tensor, axis: usize, descending: bool) => sorting::sort(x, axis, descending);
    topk(x: Tensor, k: usize, axis: usize, largest: bool) => sorting::topk(x, k, axis, largest);
}
