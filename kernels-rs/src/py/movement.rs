//! Ops that only move elements, and views.

use super::arg::*;
use crate::array::view;
use crate::ops::movement;
use pyo3::prelude::*;
use pyo3::{Borrowed, PyErr};

/// A tuple of pairs of non-negative ints.
pub struct Pairs(Vec<(usize, usize)>);

impl<'a, 'py> FromPyObject<'a, 'py> for Pairs {
    type Error = PyErr;
    fn extract(object: Borrowed<'a, 'py, PyAny>) -> PyResult<Self> {
        object.extract().map(Self)
    }
}

impl Arg for Pairs {
    type Out<'a> = &'a [(usize, usize)];
    fn get(&self) -> &[(usize, usize)] {
        &self.0
    }
}

super::ops! {
    broadcast_to(x: Tensor, shape: Ints) => view::broadcast_to(x, &shape);
    concat(xs: Tensors, axis: usize) => movement::concat(&xs, axis);
    contiguous(x: Tensor) => x.contiguous();
    flip(x: Tensor, axis: Ints) => view::flip(x, &axis);
    pad(x: Tensor, padding: Pairs, value: Value) => movement::pad(x, padding, value);
    permute_dims(x: Tensor, axes: Ints) => view::permute_dims(x, &axes);
    reshape(x: Tensor, shape: Ints) => view::reshape(x, &shape);
    slice(x: Tensor, start: Ints, size: Ints, step: Steps) => view::slice(x, &start, &size, &step);
    slice_scatter(x: Tensor, values: Tensor, start: Ints, size: Ints, step: Steps)
        => movement::slice_scatter(x, values, &start, &size, &step);
}
