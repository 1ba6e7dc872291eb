//! The one map from [`Error`] to Python exceptions.

use crate::error::Error;
use pyo3::exceptions::{PyIndexError, PyMemoryError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyDict, PyType};

static REJECTED: PyOnceLock<Py<PyType>> = PyOnceLock::new();
static INDEX: PyOnceLock<Py<PyType>> = PyOnceLock::new();
static ARGUMENT: PyOnceLock<Py<PyType>> = PyOnceLock::new();

impl From<Error> for PyErr {
    #[cold]
    fn from(error: Error) -> Self {
        match error {
            Error::Rejected(why) => rejected(why),
            Error::OutOfMemory(_) => PyMemoryError::new_err(error.to_string()),
            Error::IndexOutOfRange(ref bad) => Python::attach(|py| {
                let parts = [("got", bad.index.to_string()), ("expected", bad.expected())];
                let made = house_error(py, &INDEX, "IndexOutOfRangeError", bad.op, "index out of range", &parts);
                made.unwrap_or_else(|_| PyIndexError::new_err(error.to_string()))
            }),
            Error::Value(ref parts) => Python::attach(|py| {
                let made = house_error(py, &ARGUMENT, "ArgumentError", &parts.0, &parts.1, &[]);
                made.unwrap_or_else(|_| PyValueError::new_err(error.to_string()))
            }),
        }
    }
}

/// `phlox_tensor.Rejected`, or `TypeError` where that package is absent.
#[cold]
pub fn rejected(why: &'static str) -> PyErr {
    Python::attach(|py| match REJECTED.import(py, "phlox_tensor", "Rejected") {
        Ok(class) => PyErr::from_type(class.clone(), why),
        Err(_) => PyTypeError::new_err(why),
    })
}

/// An error class of `phlox_tensor`, called as `Class(op, what, **parts)`.
fn house_error(
    py: Python<'_>,
    cell: &'static PyOnceLock<Py<PyType>>,
    name: &str,
    op: &str,
    what: &str,
    parts: &[(&str, String)],
) -> PyResult<PyErr> {
    let class = cell.import(py, "phlox_tensor", name)?;
    let fields = PyDict::new(py);
    for (key, value) in parts {
        fields.set_item(key, value)?;
    }
    Ok(PyErr::from_value(class.call((op, what), Some(&fields))?))
}
