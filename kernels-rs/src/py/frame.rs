//! What a step of a plan takes and gives: slots that arrays lie in, numbers of a call, results.

use super::error::rejected;
use super::raw::{RawTensor, scalar};
use crate::array::Array;
use crate::array::scalar::Scalar;
use crate::error::{Error, Result};
use pyo3::prelude::*;
use pyo3::types::PyTuple;
use pyo3::types::iter::BorrowedTupleIterator;
use std::sync::Arc;

/// Stands for the array of a slot among the arguments of a step.
#[pyclass(frozen, module = "phlox_kernels._native", name = "_Slot")]
pub struct Slot {
    place: usize,
}

/// Stands for a number that each call gives among the arguments of a step.
#[pyclass(frozen, module = "phlox_kernels._native", name = "_Given")]
pub struct Given {
    place: usize,
}

#[pymethods]
impl Slot {
    #[new]
    #[pyo3(signature = (place, /))]
    fn new(place: usize) -> Self {
        Self { place }
    }
}

#[pymethods]
impl Given {
    #[new]
    #[pyo3(signature = (place, /))]
    fn new(place: usize) -> Self {
        Self { place }
    }
}

/// What the steps of one call work on.
pub struct Frame {
    pub slots: Vec<Option<Array>>,
    pub numbers: Vec<Scalar>,
}

impl Frame {
    fn number(&self, place: usize) -> Result<Scalar> {
        self.numbers.get(place).copied().ok_or(Error::Rejected("a call of a plan gives too few numbers"))
    }
}

/// An array that a step takes.
pub enum Place {
    Slot(usize),
    Fixed(Array),
}

impl Place {
    pub fn keep(object: &Bound<'_, PyAny>) -> PyResult<Self> {
        if let Ok(slot) = object.cast_exact::<Slot>() {
            return Ok(Self::Slot(slot.get().place));
        }
        match object.cast_exact::<RawTensor>() {
            Ok(tensor) => Ok(Self::Fixed(tensor.get().array.clone())),
            Err(_) => Err(rejected("operand is not a primitive of this backend")),
        }
    }

    #[inline]
    pub fn resolve<'a>(&'a self, frame: &'a Frame) -> Result<&'a Array> {
        match self {
            Self::Fixed(array) => Ok(array),
            Self::Slot(place) => match frame.slots.get(*place) {
                Some(Some(array)) => Ok(array),
                _ => Err(Error::Rejected("a step of a plan takes what is not there")),
            },
        }
    }
}

/// A number that a step takes.
pub enum Num<T> {
    Fixed(T),
    Given(usize),
}

/// Types that a number of a call may be taken as, as Python would.
pub trait OfScalar: Copy + Send + Sync + 'static {
    fn of(scalar: Scalar) -> Result<Self>;
}

impl OfScalar for Scalar {
    fn of(scalar: Scalar) -> Result<Self> {
        Ok(scalar)
    }
}

impl OfScalar for f64 {
    fn of(scalar: Scalar) -> Result<Self> {
        Ok(match scalar {
            Scalar::Bool(value) => f64::from(value),
            Scalar::Int(value) => value as f64,
            Scalar::Uint(value) => value as f64,
            Scalar::Float(value) => value,
        })
    }
}

macro_rules! of_scalar {
    ($($ty:ty),*) => {$(
        impl OfScalar for $ty {
            fn of(scalar: Scalar) -> Result<Self> {
                let found = match scalar {
                    Scalar::Bool(value) => i128::from(value),
                    Scalar::Int(value) => i128::from(value),
                    Scalar::Uint(value) => i128::from(value),
                    Scalar::Float(_) => return Err(Error::Rejected("a float for an int")),
                };
                Self::try_from(found).map_err(|_| Error::Rejected("an int beyond its type"))
            }
        }
    )*};
}
of_scalar!(i64, u64);

impl<T: OfScalar> Num<T> {
    pub fn given(object: &Bound<'_, PyAny>) -> Option<Self> {
        object.cast_exact::<Given>().ok().map(|given| Self::Given(given.get().place))
    }

    #[inline]
    pub fn resolve(&self, frame: &Frame) -> Result<T> {
        match self {
            Self::Fixed(value) => Ok(*value),
            Self::Given(place) => frame.number(*place).and_then(T::of),
        }
    }
}

impl Num<Scalar> {
    pub fn keep(object: &Bound<'_, PyAny>) -> PyResult<Self> {
        Self::given(object).map_or_else(|| scalar(object).map(Self::Fixed), Ok)
    }
}

/// What a step gives.
pub enum Made {
    One(Array),
    Many(Vec<Array>),
}

/// Does a step.
pub type Step = Arc<dyn Fn(&Frame) -> Result<Made> + Send + Sync>;
/// Makes a step of the arguments of a call.
pub type Maker = fn(&Bound<'_, PyTuple>) -> PyResult<Step>;

/// A function as a step; its type is known here.
pub fn step(run: impl Fn(&Frame) -> Result<Made> + Send + Sync + 'static) -> Step {
    Arc::new(run)
}

/// As many arguments as a row has.
pub fn items<'a, 'py>(args: &'a Bound<'py, PyTuple>, count: usize) -> PyResult<Items<'a, 'py>> {
    if args.len() == count { Ok(args.iter_borrowed()) } else { Err(rejected("wrong number of arguments")) }
}

/// One argument after the other.
pub type Items<'a, 'py> = BorrowedTupleIterator<'a, 'py>;
