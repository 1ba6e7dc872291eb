//! One tensor behind another, in place of a copy where there is room: what a cache grows by.

use super::{joined, put_at};
use crate::array::Array;
use crate::array::shape::{Shape, contiguous_strides};
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::ops::elementwise::convert::cast;

/// Places along the axis that a copy has room for at least, beside half of those that it has.
const LEAST_ROOM: usize = 8;

/// `values` behind `x` along an axis. The result has room behind it, into which the first call that appends to it writes: what
/// is there already is not copied. Whoever holds `x` sees what he saw; a second call that appends to it copies.
pub fn append(x: &Array, values: &Array, axis: usize) -> Result<Array> {
    let shape = joined("append", &[x, values], axis)?;
    let places = shape[axis];
    if let Some(out) = in_place(x, &shape, axis)? {
        // SAFETY: the room behind `x` was taken for this call alone, and views show what was taken before at most.
        unsafe { put_at(&out, x.shape()[axis], axis, values) };
        return Ok(out);
    }
    let mut wide = shape;
    wide[axis] = places.saturating_add((places / 2).max(LEAST_ROOM));
    let whole = Array::uninit(x.dtype(), &wide)?;
    // SAFETY: parts of fresh memory.
    unsafe {
        put_at(&whole, 0, axis, x);
        put_at(&whole, x.shape()[axis], axis, values);
    }
    let unit = bytes_of_place(&whole, axis);
    whole.storage().notes().open_space(wide[axis] * unit, places * unit);
    whole.with_geometry(&shape, whole.strides(), 0)
}

/// The first places of `x` along an axis, as many as `place` says, then one of `values`, then zeros: `append` to a room of fixed
/// size. Where `x` is what the call before gave, its memory becomes the result's.
pub fn append_at(x: &Array, values: &Array, place: &Array, axis: usize) -> Result<Array> {
    let shape = x.shape();
    let fits = |at: usize| values.shape()[at] == if at == axis { 1 } else { shape[at] };
    if axis >= shape.len() || values.rank() != shape.len() || !(0..shape.len()).all(fits) {
        return Err(Error::Rejected("values are not one place of the axis"));
    }
    if values.dtype() != x.dtype() || place.numel() != 1 {
        return Err(Error::Rejected("operands of different dtypes, or several places"));
    }
    let place = cast(place, DType::I64)?.to_vec::<i64>()?[0];
    let (known, unit) = (usize::try_from(place).unwrap_or(0).min(shape[axis]), bytes_of_place(x, axis));
    let inside = place >= 0 && known < shape[axis];
    let notes = x.storage().notes();
    let room = x.offset() == 0 && x.is_contiguous() && unit > 0 && notes.line() == shape[axis] * unit;
    if room && inside && notes.take_space(known * unit, (known + 1) * unit) {
        // SAFETY: the place was taken for this call alone. It was a zero to all who hold `x`, which the caller gives up.
        unsafe { put_at(x, known, axis, values) };
        return Ok(x.clone());
    }
    let mut before = *shape;
    before[axis] = known;
    let whole = Array::zeros(x.dtype(), shape)?;
    let before = x.with_geometry(&before, x.strides(), x.offset())?;
    // SAFETY: parts of fresh memory.
    unsafe {
        put_at(&whole, 0, axis, &before);
        if inside {
            put_at(&whole, known, axis, values);
        }
    }
    whole.storage().notes().open_space(shape[axis] * unit, (known + usize::from(inside)) * unit);
    Ok(whole)
}

/// The larger view of the lines that `x` is the taken part of; their next places are taken with it.
fn in_place(x: &Array, shape: &Shape, axis: usize) -> Result<Option<Array>> {
    let (room, unit) = (x.storage().notes(), bytes_of_place(x, axis));
    if room.line() == 0 || unit == 0 || x.offset() != 0 {
        return Ok(None);
    }
    // Lines of a whole number of places, in row-major order.
    let mut wide = *x.shape();
    wide[axis] = room.line() / unit;
    if !room.line().is_multiple_of(unit) || x.strides()[..] != contiguous_strides(&wide)[..] || shape[axis] > wide[axis]
    {
        return Ok(None);
    }
    let out = x.with_geometry(shape, x.strides(), 0)?;
    let taken = room.take_space(x.shape()[axis] * unit, shape[axis] * unit);
    Ok(taken.then_some(out))
}

/// Bytes from one place along an axis to the next, in row-major order.
fn bytes_of_place(x: &Array, axis: usize) -> usize {
    x.shape()[axis + 1..].iter().product::<usize>() * x.dtype().itemsize()
}

#[cfg(test)]
mod tests;
