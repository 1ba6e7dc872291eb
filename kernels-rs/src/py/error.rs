//! The one map from [`Error`] to Python exceptions.

use crate::error::Error;
use pyo3::exceptions::{PyIndexError, PyMemoryError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::PyType;

impl From<Error> for PyErr {
    #[cold]
    fn from(error: Error) -> Self {
        let text = error.to_string();
        match error {
            Error::Rejected(why) => rejected(why),
            Error::IndexOutOfRange(_) => {
                static CLASS: PyOnceLock<Py<PyType>> = PyOnceLock::new();
                tensor_error(&CLASS, "IndexOutOfRangeError", text.clone())
                    .unwrap_or_else(|| PyIndexError::new_err(text))
            }
            Error::Value(_) => PyValueError::new_err(text),
            Error::OutOfMemory(_) => PyMemoryError::new_err(text),
        }
    }
}

/// `phlox_tensor.Rejected`, or `TypeError` where that package is absent.
#[cold]
pub fn rejected(why: &'static str) -> PyErr {
    static CLASS: PyOnceLock<Py<PyType>> = PyOnceLock::new();
    tensor_error(&CLASS, "Rejected", why.to_owned()).unwrap_or_else(|| PyTypeError::new_err(why))
}

fn tensor_error(cell: &'static PyOnceLock<Py<PyType>>, name: &'static str, text: String) -> Option<PyErr> {
    Python::attach(|py| {
        let class = cell.import(py, "phlox_tensor", name).ok()?;
        Some(PyErr::from_type(class.clone(), text))
    })
}
