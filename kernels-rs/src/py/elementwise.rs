//! Elementwise ops: activation, binary and unary share the table in `src/ops/elementwise/table.rs`.

use super::arg::*;
use super::error::rejected;
use super::frame::{self, Frame, Made, Maker, Num, Place, Step};
use super::keep::{Keep, kept};
use super::raw::{RawTensor, scalar};
use crate::array::Array;
use crate::array::scalar::Scalar;
use crate::dtype::DType;
use crate::error::Result;
use crate::ops::elementwise::kernel::{Op, binary, unary};
use crate::ops::elementwise::table::{binary_table, unary_table};
use crate::ops::elementwise::{self, Operand, choice, lerp as between};
use pyo3::prelude::*;
use pyo3::types::{PyModule, PyTuple};

macro_rules! unary_functions {
    ($($name:ident $class:ident => $($f:expr),*;)*) => {
        $(
            #[pyfunction]
            #[pyo3(signature = (x, /))]
            fn $name<'py>(py: Python<'py>, x: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
                run_unary(py, &unary::$name, x)
            }
        )*

        fn register_unary(module: &Bound<'_, PyModule>) -> PyResult<()> {
            $(module.add_function(wrap_pyfunction!($name, module)?)?;)*
            Ok(())
        }

        fn unary_steps(name: &str) -> Option<Maker> {
            match name {
                $(stringify!($name) => Some(|args| unary_step(&unary::$name, args)),)*
                _ => None,
            }
        }
    };
}

macro_rules! binary_functions {
    ($($name:ident $class:ident => $($f:expr),*;)*) => {
        $(
            #[pyfunction]
            #[pyo3(signature = (x1, x2, /))]
            fn $name<'py>(
                py: Python<'py>, x1: &Bound<'py, PyAny>, x2: &Bound<'py, PyAny>,
            ) -> PyResult<Bound<'py, PyAny>> {
                run_binary(py, &binary::$name, x1, x2)
            }
        )*

        fn register_binary(module: &Bound<'_, PyModule>) -> PyResult<()> {
            $(module.add_function(wrap_pyfunction!($name, module)?)?;)*
            Ok(())
        }

        fn binary_steps(name: &str) -> Option<Maker> {
            match name {
                $(stringify!($name) => Some(|args| binary_step(&binary::$name, args)),)*
                _ => None,
            }
        }
    };
}

unary_table!(unary_functions);
binary_table!(binary_functions);

fn run_unary<'py>(py: Python<'py>, op: &'static Op<1>, x: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    let Ok(x) = x.cast_exact::<RawTensor>() else {
        return Err(rejected("operand is not a primitive of this backend"));
    };
    let x = &x.get().array;
    run(py, x.numel(), || elementwise::unary(op, x))
}

fn run_binary<'py>(
    py: Python<'py>,
    op: &'static Op<2>,
    x1: &Bound<'py, PyAny>,
    x2: &Bound<'py, PyAny>,
) -> PyResult<Bound<'py, PyAny>> {
    // The commonest case on its own: passing operands as enums costs as much as the kernel.
    if let (Ok(x1), Ok(x2)) = (x1.cast_exact::<RawTensor>(), x2.cast_exact::<RawTensor>()) {
        let (x1, x2) = (&x1.get().array, &x2.get().array);
        let (x1, x2, work) = (Operand::Array(x1), Operand::Array(x2), x1.numel() + x2.numel());
        return run(py, work, || elementwise::binary(op, x1, x2));
    }
    let (x1, x2) = (operand(x1)?, operand(x2)?);
    run(py, work(x1) + work(x2), || elementwise::binary(op, x1, x2))
}

#[inline]
fn operand<'a>(object: &'a Bound<'_, PyAny>) -> PyResult<Operand<'a>> {
    match object.cast_exact::<RawTensor>() {
        Ok(tensor) => Ok(Operand::Array(&tensor.get().array)),
        Err(_) => scalar(object).map(Operand::Scalar),
    }
}

#[inline]
fn work(operand: Operand<'_>) -> usize {
    match operand {
        Operand::Array(array) => array.numel(),
        Operand::Scalar(_) => 0,
    }
}

/// `where(condition, x1, x2)`.
#[pyfunction]
#[pyo3(signature = (condition, x1, x2, /))]
fn r#where<'py>(
    py: Python<'py>,
    condition: &Bound<'py, PyAny>,
    x1: &Bound<'py, PyAny>,
    x2: &Bound<'py, PyAny>,
) -> PyResult<Bound<'py, PyAny>> {
    let (condition, x1, x2) = (operand(condition)?, operand(x1)?, operand(x2)?);
    run(py, work(condition) + work(x1) + work(x2), || choice::select(condition, x1, x2))
}

/// `lerp(x1, x2, weight)`.
#[pyfunction]
#[pyo3(signature = (x1, x2, weight, /))]
fn lerp<'py>(
    py: Python<'py>,
    x1: &Bound<'py, PyAny>,
    x2: &Bound<'py, PyAny>,
    weight: &Bound<'py, PyAny>,
) -> PyResult<Bound<'py, PyAny>> {
    let (x1, x2, weight) = (operand(x1)?, operand(x2)?, operand(weight)?);
    run(py, work(x1) + work(x2) + work(weight), || between::lerp(x1, x2, weight))
}

/// `divide` with another default float for integers.
#[pyfunction]
#[pyo3(signature = (float, x1, x2, /))]
fn _divide_as<'py>(
    py: Python<'py>,
    float: Dtype,
    x1: &Bound<'py, PyAny>,
    x2: &Bound<'py, PyAny>,
) -> PyResult<Bound<'py, PyAny>> {
    let (float, x1, x2): (DType, _, _) = (float.as_value(), operand(x1)?, operand(x2)?);
    run(py, work(x1) + work(x2), || elementwise::binary_as(&binary::divide, x1, x2, float))
}

pub(super) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    register_unary(module)?;
    register_binary(module)?;
    module.add_function(wrap_pyfunction!(r#where, module)?)?;
    module.add_function(wrap_pyfunction!(lerp, module)?)?;
    module.add_function(wrap_pyfunction!(_divide_as, module)?)?;
    Ok(())
}

/// What a step takes an operand from.
enum StepOperand {
    Array(Place),
    Scalar(Num<Scalar>),
}

impl Keep for StepOperand {
    type Kept = Self;
    type At<'a> = Operand<'a>;
    fn keep(object: &Bound<'_, PyAny>) -> PyResult<Self> {
        Place::keep(object).map(Self::Array).or_else(|_| Num::<Scalar>::keep(object).map(Self::Scalar))
    }

    #[inline]
    fn resolve<'a>(kept: &'a Self, frame: &'a Frame) -> Result<Operand<'a>> {
        match kept {
            Self::Array(place) => place.resolve(frame).map(Operand::Array),
            Self::Scalar(number) => number.resolve(frame).map(Operand::Scalar),
        }
    }
}

fn unary_step(op: &'static Op<1>, args: &Bound<'_, PyTuple>) -> PyResult<Step> {
    let x = kept::<Tensor>(&mut frame::items(args, 1)?)?;
    Ok(frame::step(move |frame| {
        let x = x.resolve(frame)?;
        elementwise::unary(op, x).map(Made::One)
    }))
}

fn binary_step(op: &'static Op<2>, args: &Bound<'_, PyTuple>) -> PyResult<Step> {
    let mut items = frame::items(args, 2)?;
    let (x1, x2) = (kept::<StepOperand>(&mut items)?, kept::<StepOperand>(&mut items)?);
    Ok(frame::step(move |frame| {
        let (x1, x2) = (StepOperand::resolve(&x1, frame)?, StepOperand::resolve(&x2, frame)?);
        elementwise::binary(op, x1, x2).map(Made::One)
    }))
}

/// An op of three operands.
type Ternary = fn(Operand<'_>, Operand<'_>, Operand<'_>) -> Result<Array>;

fn ternary_step(op: Ternary, args: &Bound<'_, PyTuple>) -> PyResult<Step> {
    let mut items = frame::items(args, 3)?;
    let [a, b, c] =
        [kept::<StepOperand>(&mut items)?, kept::<StepOperand>(&mut items)?, kept::<StepOperand>(&mut items)?];
    Ok(frame::step(move |frame| {
        let [a, b, c] = [&a, &b, &c].map(|operand| StepOperand::resolve(operand, frame));
        op(a?, b?, c?).map(Made::One)
    }))
}

/// Steps of plans.
pub(super) fn steps(name: &str) -> Option<Maker> {
    match name {
        "lerp" => return Some(|args| ternary_step(between::lerp, args)),
        "where" => return Some(|args| ternary_step(choice::select, args)),
        _ => {}
    }
    unary_steps(name).or_else(|| binary_steps(name))
}
