//! Arguments and results of the rows in `src/py/*.rs`, and the wrapper that runs them.

use super::error::rejected;
use super::plan::Made;
use super::tensor::{RawTensor, registered};
use crate::array::Array;
use crate::array::scalar::Scalar;
use crate::array::shape::{Shape, Strides, check_rank};
use crate::dtype::DType;
use crate::error::Result;
use crate::memory::scratch::guarded;
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyFloat, PyInt, PyString, PyTuple};
use pyo3::{Borrowed, IntoPyObjectExt};

/// Work, in elements, above which other Python threads may run meanwhile (about 20 us).
const DETACH_ABOVE: usize = 1 << 16;

/// How an argument appears to the right side of a row.
pub trait Arg {
    /// The plain value.
    type Out<'a>
    where
        Self: 'a;
    /// The plain value.
    fn get(&self) -> Self::Out<'_>;
    /// Elements behind it.
    fn work(&self) -> usize {
        0
    }
}

/// A tensor operand. A foreign object is rejected.
pub struct Tensor<'py>(Bound<'py, RawTensor>);

impl Tensor<'_> {
    fn array(&self) -> &Array {
        &self.0.get().array
    }
}

impl<'a, 'py> FromPyObject<'a, 'py> for Tensor<'py> {
    type Error = PyErr;
    fn extract(object: Borrowed<'a, 'py, PyAny>) -> PyResult<Self> {
        match object.cast_exact::<RawTensor>() {
            Ok(tensor) => Ok(Self(tensor.to_owned())),
            Err(_) => Err(rejected("operand is not a primitive of this backend")),
        }
    }
}

impl Arg for Tensor<'_> {
    type Out<'a>
        = &'a Array
    where
        Self: 'a;
    fn get(&self) -> &Array {
        self.array()
    }
    fn work(&self) -> usize {
        self.array().numel()
    }
}

/// A tensor or `None`.
pub struct OptTensor<'py>(Option<Tensor<'py>>);

impl<'a, 'py> FromPyObject<'a, 'py> for OptTensor<'py> {
    type Error = PyErr;
    fn extract(object: Borrowed<'a, 'py, PyAny>) -> PyResult<Self> {
        Ok(Self(if object.is_none() { None } else { Some(object.extract()?) }))
    }
}

impl Arg for OptTensor<'_> {
    type Out<'a>
        = Option<&'a Array>
    where
        Self: 'a;
    fn get(&self) -> Option<&Array> {
        self.0.as_ref().map(Tensor::array)
    }
    fn work(&self) -> usize {
        self.0.as_ref().map_or(0, Arg::work)
    }
}

/// One tuple of tensors.
pub struct Tensors<'py>(Vec<Tensor<'py>>);

impl<'a, 'py> FromPyObject<'a, 'py> for Tensors<'py> {
    type Error = PyErr;
    fn extract(object: Borrowed<'a, 'py, PyAny>) -> PyResult<Self> {
        let tuple = object.cast::<PyTuple>()?;
        tuple.iter_borrowed().map(Borrowed::extract).collect::<PyResult<_>>().map(Self)
    }
}

impl Arg for Tensors<'_> {
    type Out<'a>
        = Vec<&'a Array>
    where
        Self: 'a;
    fn get(&self) -> Vec<&Array> {
        self.0.iter().map(Tensor::array).collect()
    }
    fn work(&self) -> usize {
        self.0.iter().map(Arg::work).sum()
    }
}

macro_rules! tuple_args {
    ($($(#[$meta:meta])* $name:ident $inline:ident $item:ident;)*) => {$(
        $(#[$meta])*
        pub struct $name($inline);

        impl<'a, 'py> FromPyObject<'a, 'py> for $name {
            type Error = PyErr;
            fn extract(object: Borrowed<'a, 'py, PyAny>) -> PyResult<Self> {
                let tuple = object.cast::<PyTuple>()?;
                check_rank(tuple.len())?;
                let mut out = $inline::empty();
                for item in tuple.iter_borrowed() {
                    out.push(item.extract::<$item>()?);
                }
                Ok(Self(out))
            }
        }

        impl Arg for $name {
            // By reference: moving an inline array that was just written stalls the store buffer.
            type Out<'a> = &'a $inline;
            fn get(&self) -> &$inline { &self.0 }
        }
    )*};
}
tuple_args! {
    /// A tuple of non-negative ints: a shape, axes, starts.
    Ints Shape usize;
    /// A tuple of ints of either sign.
    Steps Strides isize;
}

/// A dtype: its name, or an object whose `name` it is.
pub struct Dtype(DType);

impl<'a, 'py> FromPyObject<'a, 'py> for Dtype {
    type Error = PyErr;
    fn extract(object: Borrowed<'a, 'py, PyAny>) -> PyResult<Self> {
        if let Some(dtype) = registered(object.as_any()) {
            return Ok(Self(dtype));
        }
        if let Ok(name) = object.cast::<PyString>() {
            return Ok(Self(DType::from_name(&name.to_cow()?)?));
        }
        let name = object.getattr(pyo3::intern!(object.py(), "name"))?;
        Ok(Self(DType::from_name(&name.cast::<PyString>()?.to_cow()?)?))
    }
}

impl Arg for Dtype {
    type Out<'a> = DType;
    fn get(&self) -> DType {
        self.0
    }
}

/// A Python scalar.
pub struct Value(Scalar);

impl<'a, 'py> FromPyObject<'a, 'py> for Value {
    type Error = PyErr;
    fn extract(object: Borrowed<'a, 'py, PyAny>) -> PyResult<Self> {
        scalar(&object).map(Self)
    }
}

impl Arg for Value {
    type Out<'a> = Scalar;
    fn get(&self) -> Scalar {
        self.0
    }
}

/// A Python scalar or `None`.
pub struct OptValue(Option<Scalar>);

impl<'a, 'py> FromPyObject<'a, 'py> for OptValue {
    type Error = PyErr;
    fn extract(object: Borrowed<'a, 'py, PyAny>) -> PyResult<Self> {
        Ok(Self(if object.is_none() { None } else { Some(scalar(&object)?) }))
    }
}

impl Arg for OptValue {
    type Out<'a> = Option<Scalar>;
    fn get(&self) -> Option<Scalar> {
        self.0
    }
}

/// A bool, int or float; anything else, and an int beyond 64 bits, is rejected.
#[inline]
pub fn scalar(object: &Bound<'_, PyAny>) -> PyResult<Scalar> {
    if let Ok(value) = object.cast_exact::<PyFloat>() {
        return Ok(Scalar::Float(value.value()));
    }
    if let Ok(value) = object.cast::<PyBool>() {
        return Ok(Scalar::Bool(value.is_true()));
    }
    if let Ok(value) = object.cast::<PyInt>() {
        if let Ok(value) = value.extract::<i64>() {
            return Ok(Scalar::Int(value));
        }
        if let Ok(value) = value.extract::<u64>() {
            return Ok(Scalar::Uint(value));
        }
        return Err(rejected("int scalar beyond 64 bits"));
    }
    match object.cast::<PyFloat>() {
        Ok(value) => Ok(Scalar::Float(value.value())),
        Err(_) => Err(rejected("operand is neither a primitive of this backend nor a scalar")),
    }
}

/// A string.
pub struct Text(String);

impl<'a, 'py> FromPyObject<'a, 'py> for Text {
    type Error = PyErr;
    fn extract(object: Borrowed<'a, 'py, PyAny>) -> PyResult<Self> {
        let text = object.cast::<PyString>().map_err(|_| PyTypeError::new_err("expected a string"))?;
        Ok(Self(text.to_cow()?.into_owned()))
    }
}

impl Arg for Text {
    type Out<'a> = &'a str;
    fn get(&self) -> &str {
        &self.0
    }
}

macro_rules! plain_args {
    ($($ty:ty),* $(,)?) => {$(
        impl Arg for $ty {
            type Out<'a> = $ty;
            fn get(&self) -> $ty { *self }
        }
    )*};
}
type Pair = (usize, usize);
plain_args!(usize, i64, u64, f64, bool, Option<usize>, Option<f64>, Pair, (Pair, Pair), (usize, usize, usize, usize));

/// What a row may return.
pub trait Give {
    /// As a Python object.
    fn give(self, py: Python<'_>) -> PyResult<Bound<'_, PyAny>>;
    /// As the result of a step of a plan.
    fn made(self) -> Made;
}

impl Give for Array {
    #[inline]
    fn give(self, py: Python<'_>) -> PyResult<Bound<'_, PyAny>> {
        Ok(Bound::new(py, RawTensor { array: self })?.into_any())
    }
    #[inline]
    fn made(self) -> Made {
        Made::One(self)
    }
}

impl Give for (Array, Array) {
    fn give(self, py: Python<'_>) -> PyResult<Bound<'_, PyAny>> {
        (self.0.give(py)?, self.1.give(py)?).into_bound_py_any(py)
    }
    #[inline]
    fn made(self) -> Made {
        Made::Many(vec![self.0, self.1])
    }
}

impl Give for (Array, Array, Array) {
    fn give(self, py: Python<'_>) -> PyResult<Bound<'_, PyAny>> {
        (self.0.give(py)?, self.1.give(py)?, self.2.give(py)?).into_bound_py_any(py)
    }
    #[inline]
    fn made(self) -> Made {
        Made::Many(vec![self.0, self.1, self.2])
    }
}

impl Give for Vec<Array> {
    fn give(self, py: Python<'_>) -> PyResult<Bound<'_, PyAny>> {
        let items = self.into_iter().map(|array| array.give(py)).collect::<PyResult<Vec<_>>>()?;
        Ok(PyTuple::new(py, items)?.into_any())
    }
    #[inline]
    fn made(self) -> Made {
        Made::Many(self)
    }
}

impl Give for (Array, Array, Array, Array) {
    fn give(self, py: Python<'_>) -> PyResult<Bound<'_, PyAny>> {
        (self.0.give(py)?, self.1.give(py)?, self.2.give(py)?, self.3.give(py)?).into_bound_py_any(py)
    }
    #[inline]
    fn made(self) -> Made {
        Made::Many(vec![self.0, self.1, self.2, self.3])
    }
}

/// Runs a kernel, without the GIL when `work` (in elements) is large, and converts its result or error.
#[inline]
pub fn run<R: Give + Send>(
    py: Python<'_>,
    work: usize,
    kernel: impl FnOnce() -> Result<R> + Send,
) -> PyResult<Bound<'_, PyAny>> {
    let result = if work > DETACH_ABOVE { py.detach(|| guarded(kernel)) } else { guarded(kernel) };
    result?.give(py)
}
