//! Views.

use super::arg::*;
use crate::view;

super::ops! {
    broadcast_to(x: Tensor, shape: Ints) => view::broadcast_to(x, &shape);
    flip(x: Tensor, axis: Ints) => view::flip(x, &axis);
    permute_dims(x: Tensor, axes: Ints) => view::permute_dims(x, &axes);
    reshape(x: Tensor, shape: Ints) => view::reshape(x, &shape);
    slice(x: Tensor, start: Ints, size: Ints, step: Steps) => view::slice(x, &start, &size, &step);
}
