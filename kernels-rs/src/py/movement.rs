//! Ops that only move elements, and views.

use super::arg::{Arg, run};
use super::error::rejected;
use super::plan::Maker;
use super::tensor::RawTensor;
use crate::ops::movement::{self, getitem::Part};
use pyo3::prelude::*;
use pyo3::types::{PyInt, PyModule, PySlice, PyTuple};
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

/// A tuple of any number of ints.
pub struct Many<T>(Vec<T>);

impl<'a, 'py, T: for<'b> FromPyObject<'b, 'py>> FromPyObject<'a, 'py> for Many<T> {
    type Error = PyErr;
    fn extract(object: Borrowed<'a, 'py, PyAny>) -> PyResult<Self> {
        let tuple = object.cast::<PyTuple>()?;
        tuple.iter_borrowed().map(|item| item.extract::<T>().map_err(Into::into)).collect::<PyResult<_>>().map(Self)
    }
}

impl<T: 'static> Arg for Many<T> {
    type Out<'a> = &'a [T];
    fn get(&self) -> &[T] {
        &self.0
    }
}

super::plan::fixed!(Pairs, Many<usize>, Many<isize>);

/// Parts of an index: each axis once, as many new ones, and an ellipsis.
const MOST: usize = 2 * crate::array::shape::MAX_RANK + 1;

/// The view that an index of integers, slices, `None` and `...` asks for.
#[pyfunction]
#[pyo3(signature = (x, index, /))]
fn getitem<'py>(py: Python<'py>, x: &Bound<'py, PyAny>, index: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    let Ok(x) = x.cast_exact::<RawTensor>() else {
        return Err(rejected("operand is not a primitive of this backend"));
    };
    let x = &x.get().array;
    let (mut parts, mut count) = ([Part::New; MOST], 0);
    let mut push = |part| {
        *parts.get_mut(count).ok_or_else(|| rejected("too many parts"))? = part;
        count += 1;
        PyResult::Ok(())
    };
    match index.cast_exact::<PyTuple>() {
        Err(_) => read(x.shape(), &[index.as_borrowed()], &mut push)?,
        Ok(items) => {
            let mut given = [index.as_borrowed(); MOST];
            let given = given.get_mut(..items.len()).ok_or_else(|| rejected("too many parts"))?;
            for (slot, item) in given.iter_mut().zip(items.iter_borrowed()) {
                *slot = item;
            }
            read(x.shape(), given, &mut push)?;
        }
    }
    run(py, 0, || movement::getitem::getitem(x, &parts[..count]))
}

/// Reads the items of an index into an array of this shape.
fn read(
    shape: &[usize],
    items: &[Borrowed<'_, '_, PyAny>],
    push: &mut dyn FnMut(Part) -> PyResult<()>,
) -> PyResult<()> {
    let ellipsis = |item: &Borrowed<'_, '_, PyAny>| item.is(item.py().Ellipsis());
    let taken = items.iter().filter(|item| !item.is_none() && !ellipsis(item)).count();
    let Some(mut rest) = shape.len().checked_sub(taken) else {
        return Err(rejected("more indices than axes"));
    };
    let (mut axis, mut open) = (0, true);
    for item in items {
        if item.is_none() {
            push(Part::New)?;
        } else if ellipsis(item) {
            if !std::mem::replace(&mut open, false) {
                return Err(rejected("two ellipses"));
            }
            axis += rest;
            (0..rest).try_for_each(|_| push(Part::Keep))?;
            rest = 0;
        } else {
            push(part(*item, shape[axis])?)?;
            axis += 1;
        }
    }
    Ok(())
}

/// An integer or a slice of an axis of length `n`.
fn part(item: Borrowed<'_, '_, PyAny>, n: usize) -> PyResult<Part> {
    if item.cast_exact::<PyInt>().is_ok() {
        let given: isize = item.extract().map_err(|_| rejected("an index leaves its axis"))?;
        let place = if given < 0 { given + n as isize } else { given };
        return match usize::try_from(place) {
            Ok(place) if place < n => Ok(Part::At(place)),
            _ => Err(rejected("an index leaves its axis")),
        };
    }
    let Ok(slice) = item.cast_exact::<PySlice>() else {
        return Err(rejected("not a basic index"));
    };
    let found = slice.indices(n as isize).map_err(|_| rejected("a malformed slice"))?;
    Ok(Part::Slice { start: found.start.max(0) as usize, size: found.slicelength, step: found.step })
}

mod rows {
    use super::{Many, Pairs};
    use crate::array::view;
    use crate::ops::movement;
    use crate::py::arg::*;

    crate::py::ops! {
        add_slices(parts: Tensors, shape: Ints, start: Many<usize>, step: Many<isize>)
            => movement::add_slices(&parts, shape, start, step);
        append(x: Tensor, values: Tensor, axis: usize) => movement::append(x, values, axis);
        broadcast_to(x: Tensor, shape: Ints) => view::broadcast_to(x, shape);
        chunk(x: Tensor, chunks: usize, axis: usize) => view::chunk(x, chunks, axis);
        concat(xs: Tensors, axis: usize) => movement::concat(&xs, axis);
        contiguous(x: Tensor) => x.contiguous();
        flip(x: Tensor, axis: Ints) => view::flip(x, axis);
        pad(x: Tensor, padding: Pairs, value: Value) => movement::pad(x, padding, value);
        permute_dims(x: Tensor, axes: Ints) => view::permute_dims(x, axes);
        repeat(x: Tensor, repeats: usize, axis: Option<usize>) => movement::repeat(x, repeats, axis);
        reshape(x: Tensor, shape: Ints) => view::reshape(x, shape);
        slice(x: Tensor, start: Ints, size: Ints, step: Steps) => view::slice(x, start, size, step);
        slice_scatter(x: Tensor, values: Tensor, start: Ints, size: Ints, step: Steps)
            => movement::slice_scatter(x, values, start, size, step);
        split(x: Tensor, sections: Many<usize>, axis: usize) => view::split(x, sections, axis);
        unstack(x: Tensor, axis: usize) => view::unstack(x, axis);
    }

    pub fn register_rows(module: &pyo3::Bound<'_, pyo3::types::PyModule>) -> pyo3::PyResult<()> {
        register(module)
    }

    pub fn steps_of_rows(name: &str) -> Option<crate::py::plan::Maker> {
        steps(name)
    }
}

pub(super) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(getitem, module)?)?;
    rows::register_rows(module)
}

/// Steps of plans; an index is read anew for each shape.
pub(super) fn steps(name: &str) -> Option<Maker> {
    rows::steps_of_rows(name)
}
