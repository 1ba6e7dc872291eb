//! Arguments and results of the rows in `src/py/*.rs`, and the wrapper that runs them.

use super::error::rejected;
use super::frame::Made;
use super::raw::{self, RawTensor, dtype_of};
use crate::array::Array;
use crate::array::scalar::Scalar;
use crate::array::shape::{Shape, Strides, check_rank};
use crate::dtype::DType;
use crate::error::Result;
use crate::memory::scratch::guarded;
use pyo3::Borrowed;
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyString, PyTuple};

/// Work, in elements, above which other Python threads may run meanwhile (about 20 us).
const DETACH_ABOVE: usize = 1 << 16;

/// How an argument appears to the right side of a row.
pub trait Arg {
    /// The plain value.
    type Out<'a>
    where
        Self: 'a;
    /// The plain value.
    fn as_value(&self) -> Self::Out<'_>;
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
    fn as_value(&self) -> &Array {
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
    fn as_value(&self) -> Option<&Array> {
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
    fn as_value(&self) -> Vec<&Array> {
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
            fn as_value(&self) -> &$inline { &self.0 }
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
        dtype_of(&object).map(Self)
    }
}

impl Arg for Dtype {
    type Out<'a> = DType;
    fn as_value(&self) -> DType {
        self.0
    }
}

/// A Python scalar.
pub struct Value(Scalar);

impl<'a, 'py> FromPyObject<'a, 'py> for Value {
    type Error = PyErr;
    fn extract(object: Borrowed<'a, 'py, PyAny>) -> PyResult<Self> {
        raw::scalar(&object).map(Self)
    }
}

impl Arg for Value {
    type Out<'a> = Scalar;
    fn as_value(&self) -> Scalar {
        self.0
    }
}

/// A Python scalar or `None`.
pub struct OptValue(Option<Scalar>);

impl<'a, 'py> FromPyObject<'a, 'py> for OptValue {
    type Error = PyErr;
    fn extract(object: Borrowed<'a, 'py, PyAny>) -> PyResult<Self> {
        Ok(Self(if object.is_none() { None } else { Some(raw::scalar(&object)?) }))
    }
}

impl Arg for OptValue {
    type Out<'a> = Option<Scalar>;
    fn as_value(&self) -> Option<Scalar> {
        self.0
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
    fn as_value(&self) -> &str {
        &self.0
    }
}

macro_rules! plain_args {
    ($($ty:ty),* $(,)?) => {$(
        impl Arg for $ty {
            type Out<'a> = $ty;
            fn as_value(&self) -> $ty { *self }
        }
    )*};
}
/// Two, along the axes of a plane.
pub type Pair = (usize, usize);
plain_args!(usize, i64, u64, f64, bool, Option<usize>, Option<f64>, Pair, (Pair, Pair), (usize, usize, usize, usize));

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
    fn as_value(&self) -> &[(usize, usize)] {
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
    fn as_value(&self) -> &[T] {
        &self.0
    }
}

/// What a row may return.
pub trait Give: Sized {
    /// As the result of a step of a plan.
    fn into_result(self) -> Made;
    /// As a Python object.
    #[inline]
    fn give(self, py: Python<'_>) -> PyResult<Bound<'_, PyAny>> {
        match self.into_result() {
            Made::One(array) => array.give(py),
            Made::Many(arrays) => {
                let items = arrays.into_iter().map(|array| array.give(py)).collect::<PyResult<Vec<_>>>()?;
                Ok(PyTuple::new(py, items)?.into_any())
            }
        }
    }
}

impl Give for Array {
    #[inline]
    fn into_result(self) -> Made {
        Made::One(self)
    }
    // On its own: the way through `Made` moves it once more, which a small kernel feels.
    #[inline]
    fn give(self, py: Python<'_>) -> PyResult<Bound<'_, PyAny>> {
        Ok(Bound::new(py, RawTensor { array: self })?.into_any())
    }
}

macro_rules! give_many {
    ($($ty:ty: $given:ident => $arrays:expr;)*) => {$(
        impl Give for $ty {
            #[inline]
            fn into_result(self) -> Made {
                let $given = self;
                Made::Many($arrays)
            }
        }
    )*};
}
give_many! {
    (Array, Array): all => vec![all.0, all.1];
    (Array, Array, Array): all => vec![all.0, all.1, all.2];
    (Array, Array, Array, Array): all => vec![all.0, all.1, all.2, all.3];
    Vec<Array>: all => all;
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
