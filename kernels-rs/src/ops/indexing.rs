//! Reading and writing at indices. Index values of any integer type count from the end when negative; one out of range
//! is an error that names it.

pub(crate) mod resolve;
mod rows;
mod scatter;
mod select;
mod take;
#[cfg(test)]
mod tests;

pub use rows::gather_nd;
pub use scatter::{Update, index_add, scatter};
pub use select::{masked_select, nonzero};
pub use take::{take, take_along_axis};

use crate::array::Array;
use crate::error::{Error, Result};

fn check_axis(op: &str, x: &Array, axis: usize) -> Result<()> {
    if axis < x.rank() {
        return Ok(());
    }
    Err(Error::value(op, format!("wrong axis: got {axis}, expected below {}", x.rank())))
}

/// Indices have the shape of `x` but for the axis.
fn check_along(op: &str, x: &Array, indices: &Array, axis: usize) -> Result<()> {
    check_axis(op, x, axis)?;
    let fits = |at: usize| at == axis || x.shape()[at] == indices.shape()[at];
    if x.rank() == indices.rank() && (0..x.rank()).all(fits) {
        return Ok(());
    }
    let text =
        format!("indices do not fit: got {:?} for {:?}, expected equal beside axis {axis}", indices.shape(), x.shape());
    Err(Error::value(op, text))
}
