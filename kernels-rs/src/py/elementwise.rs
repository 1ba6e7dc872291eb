//! Elementwise ops: activation, binary and unary share the table in `src/ops/elementwise/table.rs`.

use super::arg::*;
use super::error::rejected;
use super::plan::{self, Frame, Maker, Num, Place, Step};
use super::tensor::RawTensor;
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
    let (float, x1, x2): (DType, _, _) = (float.get(), operand(x1)?, operand(x2)?);
    run(py, work(x1) + work(x2), || elementwise::binary_as(&binary::divide, x1, x2, float))
}

mod rows {
    use super::choice;
    use crate::ops::elementwise::repair;
    use crate::py::arg::*;

    crate::py::ops! {
        clip(x: Tensor, min: OptValue, max: OptValue) => choice::clip(x, min, max);
        nan_to_num(x: Tensor, nan: OptValue, posinf: OptValue, neginf: OptValue) => repair::nan_to_num(x, nan, posinf, neginf);
    }

    pub fn register_rows(module: &pyo3::Bound<'_, pyo3::types::PyModule>) -> pyo3::PyResult<()> {
        register(module)
    }

    pub fn steps_of_rows(name: &str) -> Option<crate::py::plan::Maker> {
        steps(name)
    }
}

pub(super) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    register_unary(module)?;
    register_binary(module)?;
    module.add_function(wrap_pyfunction!(r#where, module)?)?;
    module.add_function(wrap_pyfunction!(lerp, module)?)?;
    module.add_function(wrap_pyfunction!(_divide_as, module)?)?;
    rows::register_rows(module)
}

/// What a step takes an operand from.
enum Kept {
    Array(Place),
    Scalar(Num<Scalar>),
}

impl Kept {
    fn of(object: &Bound<'_, PyAny>) -> PyResult<Self> {
        Place::keep(object).map(Self::Array).or_else(|_| Num::<Scalar>::keep(object).map(Self::Scalar))
    }

    #[inline]
    fn at<'a>(&'a self, frame: &'a Frame) -> Result<Operand<'a>> {
        match self {
            Self::Array(place) => place.at(frame).map(Operand::Array),
            Self::Scalar(number) => number.at(frame).map(Operand::Scalar),
        }
    }
}

fn unary_step(op: &'static Op<1>, args: &Bound<'_, PyTuple>) -> PyResult<Step> {
    let [x] = plan::items(args)?;
    let x = Place::keep(&x)?;
    Ok(plan::step(move |frame| {
        let x = x.at(frame)?;
        plan::made(|| elementwise::unary(op, x))
    }))
}

fn binary_step(op: &'static Op<2>, args: &Bound<'_, PyTuple>) -> PyResult<Step> {
    let [x1, x2] = plan::items(args)?;
    let (x1, x2) = (Kept::of(&x1)?, Kept::of(&x2)?);
    Ok(plan::step(move |frame| {
        let (x1, x2) = (x1.at(frame)?, x2.at(frame)?);
        plan::made(|| elementwise::binary(op, x1, x2))
    }))
}

/// An op of three operands.
type Ternary = fn(Operand<'_>, Operand<'_>, Operand<'_>) -> Result<Array>;

fn ternary_step(op: Ternary, args: &Bound<'_, PyTuple>) -> PyResult<Step> {
    let [a, b, c] = plan::items(args)?;
    let (a, b, c) = (Kept::of(&a)?, Kept::of(&b)?, Kept::of(&c)?);
    Ok(plan::step(move |frame| {
        let (a, b, c) = (a.at(frame)?, b.at(frame)?, c.at(frame)?);
        plan::made(|| op(a, b, c))
    }))
}

/// Steps of plans.
pub(super) fn steps(name: &str) -> Option<Maker> {
    match name {
        "lerp" => return Some(|args| ternary_step(between::lerp, args)),
        "where" => return Some(|args| ternary_step(choice::select, args)),
        _ => {}
    }
    unary_steps(name).or_else(|| binary_steps(name)).or_else(|| rows::steps_of_rows(name))
}
