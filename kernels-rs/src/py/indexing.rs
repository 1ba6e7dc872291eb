//! Reading and writing at indices.

use super::arg::*;
use crate::ops::indexing;

super::ops! {
    gather_nd(x: Tensor, indices: Tensor) => indexing::gather_nd(x, indices);
    index_add(x: Tensor, indices: Tensor, values: Tensor, axis: usize) => indexing::index_add(x, indices, values, axis);
    masked_select(x: Tensor, mask: Tensor) => indexing::masked_select(x, mask);
    nonzero(mask: Tensor) => indexing::nonzero(mask);
    scatter(x: Tensor, indices: Tensor, values: Tensor, axis: usize, update: Text)
        => indexing::scatter(x, indices, values, axis, indexing::Update::from_name(update)?);
    take(x: Tensor, indices: Tensor, axis: usize) => indexing::take(x, indices, axis);
    take_along_axis(x: Tensor, indices: Tensor, axis: usize) => indexing::take_along_axis(x, indices, axis);
}
