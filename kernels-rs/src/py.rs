//! The Python binding: with `src/py/*.rs` the only code that names `PyO3`.
//!
//! # How to add a row
//!
//! Each family has a file `src/py/<family>.rs` of this form; a new family also gets a `mod` line and a `register` line
//! below.
//!
//! ```text
//! use super::arg::*;
//! super::ops! {
//!     cumsum(x: Tensor, axis: usize) => scan::cumsum(x, axis);
//!     sum(x: Tensor, axis: Ints, keepdims: bool, dtype: Dtype) => reduction::sum(x, axis, keepdims, dtype);
//! }
//! ```
//!
//! The right side sees plain Rust values: `Tensor` gives `&Array`, `OptTensor` `Option<&Array>`, `Tensors` (one tuple of
//! tensors) `Vec<&Array>`, `Ints` (a tuple) `&Shape`, `Steps` `&Strides`, `Dtype` `DType` (from a name or an object with
//! `.name`), `Value` `Scalar`, `OptValue` `Option<Scalar>`, `Text` `&str`; `usize`, `i64`, `u64`, `f64`, `bool`, `Option<usize>`, `(usize, usize)`
//! and pairs of those stand for themselves. It returns `Result` of an `Array`, of a tuple of two to four, or of a `Vec`.
//! The wrapper maps errors and releases the GIL when the operands are large; a row whose work is large though its
//! operands are small (creation) says so with `name(..) [work = count] => ..`, in elements. `std` would hide a crate in
//! Rust: `deviation as "std"(..) => ..`.
//! Every public function of the module is an entry of the op table; anything else starts with an underscore.

pub(crate) mod arg;
mod attention;
mod contraction;
mod convolution;
mod creation;
mod distance;
mod elementwise;
mod error;
mod factorization;
mod indexing;
mod interpolation;
mod key;
mod movement;
pub(crate) mod plan;
mod pooling;
mod program;
mod quantization;
mod random;
mod recurrence;
mod reduction;
mod rows;
mod sampling;
mod scan;
mod sort;
mod statistics;
mod step;
mod tensor;
mod transform;

use pyo3::prelude::*;

/// Defines one Python function per row, `register`, which adds them all, and `steps`, which has them as steps of plans.
macro_rules! ops {
    ($($name:ident $(as $public:literal)? ($($arg:ident : $ty:ty),* $(,)?) $([work = $work:expr])? => $call:expr;)*) => {
        $(
            // Arguments may borrow from Python; there are as many as the op has.
            #[allow(clippy::elidable_lifetime_names, clippy::too_many_arguments)]
            #[pyo3::pyfunction]
            #[pyo3(signature = ($($arg),*, /))]
            $(#[pyo3(name = $public)])?
            fn $name<'py>(py: pyo3::Python<'py>, $($arg: $ty),*) -> pyo3::PyResult<pyo3::Bound<'py, pyo3::PyAny>> {
                let work = 0usize $(.saturating_add($crate::py::arg::Arg::work(&$arg)))*;
                $(let $arg = $crate::py::arg::Arg::get(&$arg);)*
                $(let work = work.saturating_add($work);)?
                $crate::py::arg::run(py, work, move || $call)
            }
        )*

        pub(super) fn register(module: &pyo3::Bound<'_, pyo3::types::PyModule>) -> pyo3::PyResult<()> {
            use pyo3::prelude::*;
            $(module.add_function(pyo3::wrap_pyfunction!($name, module)?)?;)*
            Ok(())
        }

        /// What makes a step of a plan of the row of this name.
        pub(super) fn steps(name: &str) -> Option<$crate::py::plan::Maker> {
            use $crate::py::plan::{self, Keep};
            match name {
                $($crate::py::public!($name $($public)?) => Some(|args| {
                    let [$($arg),*] = plan::items(args)?;
                    $(let $arg = <$ty as Keep>::keep(&$arg)?;)*
                    Ok(plan::step(move |frame| {
                        $(let $arg = <$ty as Keep>::at(&$arg, frame)?;)*
                        plan::made(move || $call)
                    }))
                }),)*
                _ => None,
            }
        }
    };
}
pub(crate) use ops;

/// The name in Python.
macro_rules! public {
    ($name:ident) => {
        stringify!($name)
    };
    ($name:ident $public:literal) => {
        $public
    };
}
pub(crate) use public;

#[pymodule]
fn _native(module: &Bound<'_, PyModule>) -> PyResult<()> {
    crate::init();
    module.add_class::<tensor::RawTensor>()?;
    tensor::register(module)?;
    attention::register(module)?;
    contraction::register(module)?;
    convolution::register(module)?;
    creation::register(module)?;
    distance::register(module)?;
    elementwise::register(module)?;
    factorization::register(module)?;
    indexing::register(module)?;
    interpolation::register(module)?;
    key::register(module)?;
    movement::register(module)?;
    plan::register(module)?;
    pooling::register(module)?;
    program::register(module)?;
    quantization::register(module)?;
    random::register(module)?;
    recurrence::register(module)?;
    reduction::register(module)?;
    rows::register(module)?;
    sampling::register(module)?;
    scan::register(module)?;
    sort::register(module)?;
    statistics::register(module)?;
    step::register(module)?;
    transform::register(module)?;
    Ok(())
}
