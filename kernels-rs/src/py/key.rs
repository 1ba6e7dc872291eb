//! Keys of calls: what tells two calls of an op apart, as `phlox_tensor._device.key` has it, in one native call.

use super::raw::{RawTensor, dtype_name, registered};
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyBytes, PyFloat, PyInt, PyString, PyTuple};

/// Op, attributes, and what each operand is; `None` where an attribute is of a type that no key holds.
#[pyfunction]
#[pyo3(signature = (op, attributes, first, /, *others))]
fn _key_of<'py>(
    py: Python<'py>,
    op: &Bound<'py, PyAny>,
    attributes: &Bound<'py, PyTuple>,
    first: &Bound<'py, PyAny>,
    others: &Bound<'py, PyTuple>,
) -> PyResult<Option<Bound<'py, PyTuple>>> {
    let Some(attributes) = exact(attributes)? else { return Ok(None) };
    let (op, attributes, first) = (op.clone(), attributes.into_any(), part_of_key(first)?);
    if others.is_empty() {
        return PyTuple::new(py, [op, attributes, first]).map(Some);
    }
    let mut parts = vec![op, attributes, first];
    for operand in others.iter_borrowed() {
        parts.push(part_of_key(&operand)?);
    }
    PyTuple::new(py, parts).map(Some)
}

/// Shape and name of the dtype of a tensor, a tuple of these for a tuple of tensors, or `None`. A name is hashed without
/// Python, as a dtype is not.
fn part_of_key<'py>(operand: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    let py = operand.py();
    if let Ok(tensor) = operand.cast_exact::<RawTensor>() {
        let raw = tensor.get();
        let name = dtype_name(py, raw.array.dtype()).clone().into_any();
        return PyTuple::new(py, [raw.shape(py)?.into_any(), name]).map(Bound::into_any);
    }
    if operand.is_none() {
        return Ok(operand.clone());
    }
    let parts =
        operand.cast::<PyTuple>()?.iter_borrowed().map(|each| part_of_key(&each)).collect::<PyResult<Vec<_>>>()?;
    PyTuple::new(py, parts).map(Bound::into_any)
}

/// Attributes in a form in which no float equals an integer, no truth value a number, nor 0.0 another zero: floats and
/// truth values become bytes.
fn exact<'py>(attributes: &Bound<'py, PyTuple>) -> PyResult<Option<Bound<'py, PyTuple>>> {
    if attributes.iter_borrowed().all(|item| is_plain(&item)) {
        return Ok(Some(attributes.clone()));
    }
    let parts = attributes.iter_borrowed().map(|item| exact_item(&item)).collect::<PyResult<Option<Vec<_>>>>()?;
    parts.map(|parts| PyTuple::new(attributes.py(), parts)).transpose()
}

/// One attribute in that form.
fn exact_item<'py>(item: &Bound<'py, PyAny>) -> PyResult<Option<Bound<'py, PyAny>>> {
    if is_plain(item) {
        return Ok(Some(item.clone()));
    }
    if let Ok(float) = item.cast_exact::<PyFloat>() {
        return Ok(Some(PyBytes::new(item.py(), &float.value().to_ne_bytes()).into_any()));
    }
    if let Ok(truth) = item.cast_exact::<PyBool>() {
        return Ok(Some(PyBytes::new(item.py(), &[truth.is_true().into()]).into_any()));
    }
    if let Some(dtype) = registered(item) {
        return Ok(Some(dtype_name(item.py(), dtype).clone().into_any()));
    }
    match item.cast_exact::<PyTuple>() {
        Ok(tuple) => Ok(exact(tuple)?.map(Bound::into_any)),
        Err(_) => Ok(None),
    }
}

/// Whether a key holds an attribute as it is: one of these, or a tuple of them.
fn is_plain(item: &Bound<'_, PyAny>) -> bool {
    item.is_none()
        || item.is_exact_instance_of::<PyInt>()
        || item.cast_exact::<PyTuple>().is_ok_and(|items| items.iter_borrowed().all(|each| is_plain(&each)))
        || item.is_exact_instance_of::<PyString>()
}

pub(super) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(_key_of, module)?)
}
