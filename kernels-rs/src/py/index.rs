//! Reading and writing at indices.

use super::arg::*;
use crate::index;

super::ops! {
    index_add(x: Tensor, indices: Tensor, values: Tensor, axis: usize) => index::index_add(x, indices, values, axis);
    masked_select(x: Tensor, mask: Tensor) => index::masked_select(x, mask);
    nonzero(mask: Tensor) => index::nonzero(mask);
    scatter(x: Tensor, indices: Tensor, values: Tensor, axis: usize, update: Text)
        => index::scatter(x, indices, values, axis, index::Update::from_name(update)?);
    take(x: Tensor, indices: Tensor, axis: usize) => index::take(x, indices, axis);
    take_along_axis(x: Tensor, indices: Tensor, axis: usize) => index::take_along_axis(x, indices, axis);
}
