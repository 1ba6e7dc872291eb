//! Plans: many ops as one call. Each step is a row or a program with its arguments taken apart once; arrays lie in slots.

use super::arg::*;
use super::error::rejected;
use super::tensor::RawTensor;
use crate::array::Array;
use crate::array::scalar::Scalar;
use crate::error::{Error, Result};
use crate::memory::scratch::reserved;
use pyo3::prelude::*;
use pyo3::types::{PyList, PyModule, PyTuple};
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
    slots: Vec<Option<Array>>,
    numbers: Vec<Scalar>,
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
    pub fn at<'a>(&'a self, frame: &'a Frame) -> Result<&'a Array> {
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
    fn given(object: &Bound<'_, PyAny>) -> Option<Self> {
        object.cast_exact::<Given>().ok().map(|given| Self::Given(given.get().place))
    }

    #[inline]
    pub fn at(&self, frame: &Frame) -> Result<T> {
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

/// How an argument of a row is kept in a step, and how its right side sees it then.
pub trait Keep {
    /// What is kept.
    type Kept: Send + Sync + 'static;
    /// The plain value.
    type At<'a>;
    /// Takes an argument apart.
    fn keep(object: &Bound<'_, PyAny>) -> PyResult<Self::Kept>;
    /// The plain value.
    fn at<'a>(kept: &'a Self::Kept, frame: &'a Frame) -> Result<Self::At<'a>>;
}

impl Keep for Tensor<'_> {
    type Kept = Place;
    type At<'a> = &'a Array;
    fn keep(object: &Bound<'_, PyAny>) -> PyResult<Place> {
        Place::keep(object)
    }
    #[inline]
    fn at<'a>(kept: &'a Place, frame: &'a Frame) -> Result<&'a Array> {
        kept.at(frame)
    }
}

impl Keep for OptTensor<'_> {
    type Kept = Option<Place>;
    type At<'a> = Option<&'a Array>;
    fn keep(object: &Bound<'_, PyAny>) -> PyResult<Self::Kept> {
        if object.is_none() { Ok(None) } else { Place::keep(object).map(Some) }
    }
    #[inline]
    fn at<'a>(kept: &'a Self::Kept, frame: &'a Frame) -> Result<Option<&'a Array>> {
        kept.as_ref().map(|place| place.at(frame)).transpose()
    }
}

impl Keep for Tensors<'_> {
    type Kept = Vec<Place>;
    type At<'a> = Vec<&'a Array>;
    fn keep(object: &Bound<'_, PyAny>) -> PyResult<Self::Kept> {
        object.cast::<PyTuple>()?.iter_borrowed().map(|item| Place::keep(&item)).collect()
    }
    fn at<'a>(kept: &'a Self::Kept, frame: &'a Frame) -> Result<Vec<&'a Array>> {
        kept.iter().map(|place| place.at(frame)).collect()
    }
}

impl Keep for Value {
    type Kept = Num<Scalar>;
    type At<'a> = Scalar;
    fn keep(object: &Bound<'_, PyAny>) -> PyResult<Self::Kept> {
        Num::<Scalar>::keep(object)
    }
    #[inline]
    fn at<'a>(kept: &'a Self::Kept, frame: &'a Frame) -> Result<Scalar> {
        kept.at(frame)
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
            fn at<'a>(kept: &'a Self::Kept, frame: &'a Frame) -> Result<$ty> {
                kept.at(frame)
            }
        }
    )*};
}
numbers!(f64, i64, u64);

/// Arguments that are the same at each call.
macro_rules! fixed {
    ($($ty:ty),* $(,)?) => {$(
        impl $crate::py::plan::Keep for $ty {
            type Kept = $ty;
            type At<'a> = <$ty as $crate::py::arg::Arg>::Out<'a>;
            fn keep(object: &pyo3::Bound<'_, pyo3::PyAny>) -> pyo3::PyResult<$ty> {
                pyo3::prelude::PyAnyMethods::extract(object)
            }
            #[inline]
            fn at<'a>(kept: &'a $ty, _: &'a $crate::py::plan::Frame) -> $crate::error::Result<Self::At<'a>> {
                Ok($crate::py::arg::Arg::get(kept))
            }
        }
    )*};
}
pub(crate) use fixed;

type Pair = (usize, usize);
fixed!(Dtype, Ints, OptValue, Steps, Text);
fixed!(usize, bool, Option<usize>, Option<f64>, Pair, (Pair, Pair), (usize, usize, usize, usize));

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

/// What a kernel gives as that of a step.
#[inline]
pub fn made<R: Give>(kernel: impl FnOnce() -> Result<R>) -> Result<Made> {
    kernel().map(Give::made)
}

/// As many arguments as a row has.
pub fn items<'py, const N: usize>(args: &Bound<'py, PyTuple>) -> PyResult<[Bound<'py, PyAny>; N]> {
    let items: Vec<_> = args.iter().collect();
    items.try_into().map_err(|_| rejected("wrong number of arguments"))
}

/// The rows of all families.
fn maker(name: &str) -> Option<Maker> {
    [
        super::attention::steps,
        super::contraction::steps,
        super::convolution::steps,
        super::creation::steps,
        super::distance::steps,
        super::elementwise::steps,
        super::factorization::steps,
        super::indexing::steps,
        super::interpolation::steps,
        super::movement::steps,
        super::pooling::steps,
        super::quantization::steps,
        super::random::steps,
        super::recurrence::steps,
        super::reduction::steps,
        super::rows::steps,
        super::sampling::steps,
        super::scan::steps,
        super::sort::steps,
        super::statistics::steps,
        super::step::steps,
        super::transform::steps,
    ]
    .iter()
    .find_map(|steps| steps(name))
}

/// A step of plans.
#[pyclass(frozen, module = "phlox_kernels._native", name = "_Step")]
pub struct PlanStep {
    run: Step,
}

/// A step: an op by its name, or a program for each of some tuples of arguments; `None` for what must go through Python.
#[pyfunction]
#[pyo3(signature = (function, each, /))]
fn _step(function: &Bound<'_, PyAny>, each: Vec<Bound<'_, PyTuple>>) -> Option<PlanStep> {
    let made = match function.extract::<Text>() {
        Err(_) => super::program::step(function, &each),
        Ok(name) => match (maker(name.get()), &each[..]) {
            (Some(make), [args]) => make(args).ok(),
            _ => None,
        },
    };
    made.map(|run| PlanStep { run })
}

/// A step, where its results go, and which slots are empty afterwards.
struct Line {
    run: Step,
    gives: Vec<usize>,
    ends: Vec<usize>,
}

/// Steps as one function: of a list of arrays, which it empties, and a tuple of numbers.
#[pyclass(frozen, module = "phlox_kernels._native", name = "_Plan")]
pub struct Plan {
    lines: Vec<Line>,
    slots: usize,
    results: Vec<usize>,
    work: usize,
}

#[pymethods]
impl Plan {
    /// Operands lie in the first slots. `work` is that of all steps, in elements.
    #[new]
    #[pyo3(signature = (lines, slots, results, work, /))]
    fn new(
        lines: Vec<(Bound<'_, PlanStep>, Vec<usize>, Vec<usize>)>,
        slots: usize,
        results: Vec<usize>,
        work: usize,
    ) -> PyResult<Self> {
        let line = |(step, gives, ends): (Bound<'_, PlanStep>, Vec<usize>, Vec<usize>)| {
            let run = Arc::clone(&step.get().run);
            Line { run, gives, ends }
        };
        let lines: Vec<_> = lines.into_iter().map(line).collect();
        let written = lines.iter().flat_map(|line| line.gives.iter().chain(&line.ends)).chain(&results);
        if written.copied().any(|place| place >= slots) {
            return Err(rejected("a slot that the plan does not have"));
        }
        Ok(Self { lines, slots, results, work })
    }

    #[pyo3(signature = (operands, numbers, /))]
    fn __call__<'py>(
        &self,
        py: Python<'py>,
        operands: &Bound<'py, PyList>,
        numbers: &Bound<'py, PyTuple>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let mut frame = Frame { slots: Vec::new(), numbers: Vec::new() };
        for item in operands.iter() {
            let tensor = item.cast_exact::<RawTensor>();
            let tensor = tensor.map_err(|_| rejected("operand is not a primitive of this backend"))?;
            frame.slots.push(Some(tensor.get().array.clone()));
        }
        for item in numbers.iter_borrowed() {
            frame.numbers.push(scalar(&item)?);
        }
        // What nobody else holds goes with its last use.
        operands.del_slice(0, operands.len())?;
        frame.slots.resize_with(self.slots, || None);
        run(py, self.work, move || self.run(frame))
    }
}

impl Plan {
    fn run(&self, mut frame: Frame) -> Result<Vec<Array>> {
        for line in &self.lines {
            match (line.run)(&frame)? {
                Made::One(array) => match line.gives[..] {
                    [place] => frame.slots[place] = Some(array),
                    _ => return Err(Error::Rejected("a step gives one result")),
                },
                Made::Many(arrays) => {
                    if arrays.len() != line.gives.len() {
                        return Err(Error::Rejected("a step gives another number of results"));
                    }
                    for (&place, array) in line.gives.iter().zip(arrays) {
                        frame.slots[place] = Some(array);
                    }
                }
            }
            for &place in &line.ends {
                frame.slots[place] = None;
            }
        }
        let mut results = reserved(self.results.len());
        for &place in &self.results {
            results.push(Place::Slot(place).at(&frame)?.clone());
        }
        Ok(results)
    }
}

pub(super) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<Given>()?;
    module.add_class::<Plan>()?;
    module.add_class::<Slot>()?;
    module.add_class::<PlanStep>()?;
    module.add_function(wrap_pyfunction!(_step, module)?)
}
