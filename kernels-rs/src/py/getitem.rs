//! Indexing. An index is read anew for each shape, so that no plan has it as a step.

use super::arg::run;
use super::error::rejected;
use super::raw::RawTensor;
use crate::ops::movement::{self, getitem::Part};
use pyo3::Borrowed;
use pyo3::prelude::*;
use pyo3::types::{PyInt, PyModule, PySlice, PyTuple};

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

pub(super) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(getitem, module)?)
}
