//! How each kind of argument is kept in a step of a plan, from call to call.

use super::arg::*;
use super::frame::{Frame, Items, Num, Place};
use crate::array::Array;
use crate::array::scalar::Scalar;
use crate::error::Result;
use pyo3::prelude::*;
use pyo3::types::PyTuple;

/// How an argument of a row is kept in a step, and how its right side sees it then.
pub trait Keep {
    /// What is kept.
    type Kept: Send + Sync + 'static;
    /// The plain value.
    type At<'a>;
    /// Takes an argument apart.
    fn keep(object: &Bound<'_, PyAny>) -> PyResult<Self::Kept>;
    /// The plain value.
    fn resolve<'a>(kept: &'a Self::Kept, frame: &'a Frame) -> Result<Self::At<'a>>;
}

/// Keeps the next argument. Not inlined: each row would have all of it for each of its own.
#[inline(never)]
pub fn kept<K: Keep>(items: &mut Items<'_, '_>) -> PyResult<K::Kept> {
    let item = items.next().expect("as many arguments as were counted");
    K::keep(&item)
}

impl Keep for Tensor<'_> {
    type Kept = Place;
    type At<'a> = &'a Array;
    fn keep(object: &Bound<'_, PyAny>) -> PyResult<Place> {
        Place::keep(object)
    }
    #[inline]
    fn resolve<'a>(kept: &'a Place, frame: &'a Frame) -> Result<&'a Array> {
        kept.resolve(frame)
    }
}

impl Keep for OptTensor<'_> {
    type Kept = Option<Place>;
    type At<'a> = Option<&'a Array>;
    fn keep(object: &Bound<'_, PyAny>) -> PyResult<Self::Kept> {
        if object.is_none() { Ok(None) } else { Place::keep(object).map(Some) }
    }
    #[inline]
    fn resolve<'a>(kept: &'a Self::Kept, frame: &'a Frame) -> Result<Option<&'a Array>> {
        kept.as_ref().map(|place| place.resolve(frame)).transpose()
    }
}

impl Keep for Tensors<'_> {
    type Kept = Vec<Place>;
    type At<'a> = Vec<&'a Array>;
    fn keep(object: &Bound<'_, PyAny>) -> PyResult<Self::Kept> {
        object.cast::<PyTuple>()?.iter_borrowed().map(|item| Place::keep(&item)).collect()
    }
    fn resolve<'a>(kept: &'a Self::Kept, frame: &'a Frame) -> Result<Vec<&'a Array>> {
        kept.iter().map(|place| place.resolve(frame)).collect()
    }
}

impl Keep for Value {
    type Kept = Num<Scalar>;
    type At<'a> = Scalar;
    fn keep(object: &Bound<'_, PyAny>) -> PyResult<Self::Kept> {
        Num::<Scalar>::keep(object)
    }
    #[inline]
    fn resolve<'a>(kept: &'a Self::Kept, frame: &'a Frame) -> Result<Scalar> {
        kept.resolve(frame)
    }
}

macro_rules! numbers {
    ($($ty:ty),*) => {$(
        impl Keep for $ty {
            type Kept = Num<$ty>;
            type At<'a> = $ty;
            fn keep(object: &Bound<'_, PyAny>) -> PyResult<Self::Kept> {
                Num::given(object).map_or_else(|| object.extract().map(Num::Fixed), Ok)
            }
            #[inline]
            fn resolve<'a>(kept: &'a Self::Kept, frame: &'a Frame) -> Result<$ty> {
                kept.resolve(frame)
            }
        }
    )*};
}
numbers!(f64, i64, u64);

/// Arguments that are the same at each call.
macro_rules! fixed {
    ($($ty:ty),* $(,)?) => {$(
        impl Keep for $ty {
            type Kept = $ty;
            type At<'a> = <$ty as Arg>::Out<'a>;
            fn keep(object: &Bound<'_, PyAny>) -> PyResult<$ty> {
                object.extract()
            }
            #[inline]
            fn resolve<'a>(kept: &'a $ty, _: &'a Frame) -> Result<Self::At<'a>> {
                Ok(kept.as_value())
            }
        }
    )*};
}
fixed!(Dtype, Ints, Many<isize>, Many<usize>, OptValue, Pairs, Steps, Text);
fixed!(usize, bool, Option<usize>, Option<f64>, Pair, (Pair, Pair), (usize, usize, usize, usize));
