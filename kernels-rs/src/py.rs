//! The Python binding: with `src/py/*.rs` the only code that names `PyO3`.
//!
//! Most ops are one row each in `src/py/table.rs`; what reads its operands in a way of its own has a file. Every public
//! function of the module is an entry of the op table; anything else starts with an underscore.

mod arg;
mod elementwise;
mod error;
mod frame;
mod getitem;
mod keep;
mod key;
mod machine;
mod plan;
mod program;
mod raw;
mod row;
mod table;

use pyo3::prelude::*;

#[pymodule]
fn _native(module: &Bound<'_, PyModule>) -> PyResult<()> {
    crate::init();
    elementwise::register(module)?;
    getitem::register(module)?;
    key::register(module)?;
    machine::register(module)?;
    plan::register(module)?;
    program::register(module)?;
    raw::register(module)?;
    table::register(module)
}
