//! Index values, counted from the front and checked.

use crate::array::Array;
use crate::dtype::{DType, Kind};
use crate::elementwise::convert::cast;
use crate::error::{Error, Result};
use crate::movement::dense;

/// Which op asks, for which axis of which length.
#[derive(Clone, Copy)]
pub struct Target {
    /// Name of the op.
    pub op: &'static str,
    /// The indexed axis.
    pub axis: usize,
    /// Its length.
    pub size: usize,
}

/// The values in row-major order, each below `size`. Negative ones count from the end.
pub fn resolve(indices: &Array, target: Target) -> Result<Vec<usize>> {
    if indices.dtype().kind() != Kind::Int {
        return Err(Error::Rejected("indices are integers"));
    }
    let wide = dense(&cast(indices, DType::I64)?)?;
    let values = wide.as_slice::<i64>().expect("dense");
    let bad = |index: i64| Error::index(target.op, index, target.size, target.axis);
    if indices.dtype() == DType::U64 && values.iter().any(|&value| value < 0) {
        // Beyond what the error can carry.
        return Err(bad(i64::MAX));
    }
    let size = target.size as i64;
    let mut out = Vec::with_capacity(values.len());
    for &value in values {
        let index = if value < 0 { value.wrapping_add(size) } else { value };
        if index < 0 || index >= size {
            return Err(bad(value));
        }
        out.push(index as usize);
    }
    Ok(out)
}
