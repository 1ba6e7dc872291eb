//! What a row of the table is: a Python function and a step of plans, written once.
//!
//! # How to add a row
//!
//! ```text
//! cumsum(x: Tensor, axis: usize) => scan::cumsum(x, axis);
//! sum(x: Tensor, axis: Ints, keepdims: bool, dtype: Dtype) => reduction::sum(x, axis, keepdims, dtype);
//! ```
//!
//! The right side sees plain Rust values: `Tensor` gives `&Array`, `OptTensor` `Option<&Array>`, `Tensors` (one tuple of
//! tensors) `Vec<&Array>`, `Ints` (a tuple) `&Shape`, `Steps` `&Strides`, `Dtype` `DType` (from a name or an object with
//! `.name`), `Value` `Scalar`, `OptValue` `Option<Scalar>`, `Text` `&str`; `usize`, `i64`, `u64`, `f64`, `bool`, `Option<usize>`, `(usize, usize)`
//! and pairs of those stand for themselves. It returns `Result` of an `Array`, of a tuple of two to four, or of a `Vec`.
//! The wrapper maps errors and releases the GIL when the operands are large; a row whose work is large though its
//! operands are small (creation) says so with `name(..) [work = count] => ..`, in elements. `std` would hide a crate in
//! Rust: `deviation as "std"(..) => ..`.

/// Defines one Python function per row, `register`, which adds them all, and `steps`, which has them as steps of plans.
macro_rules! rows {
    ($($name:ident $(as $public:literal)? ($($arg:ident : $ty:ty),* $(,)?) $([work = $work:expr])? => $call:expr;)*) => {
        $(
            // Arguments may borrow from Python; there are as many as the op has.
            #[allow(clippy::elidable_lifetime_names, clippy::too_many_arguments)]
            #[pyo3::pyfunction]
            #[pyo3(signature = ($($arg),*, /))]
            $(#[pyo3(name = $public)])?
            fn $name<'py>(py: pyo3::Python<'py>, $($arg: $ty),*) -> pyo3::PyResult<pyo3::Bound<'py, pyo3::PyAny>> {
                let work = 0usize $(.saturating_add($crate::py::arg::Arg::work(&$arg)))*;
                $(let $arg = $crate::py::arg::Arg::as_value(&$arg);)*
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
        pub(super) fn steps(name: &str) -> Option<$crate::py::frame::Maker> {
            use $crate::py::arg::Give;
            use $crate::py::frame;
            use $crate::py::keep::{Keep, kept};
            match name {
                $($crate::py::row::public!($name $($public)?) => Some(|args| {
                    let mut items = frame::items(args, [$(stringify!($arg)),*].len())?;
                    $(let $arg = kept::<$ty>(&mut items)?;)*
                    Ok(frame::step(move |frame| {
                        $(let $arg = <$ty as Keep>::resolve(&$arg, frame)?;)*
                        let result = $call;
                        result.map(Give::into_result)
                    }))
                }),)*
                _ => None,
            }
        }
    };
}
pub(crate) use rows;

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
