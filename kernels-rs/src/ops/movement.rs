//! Copies between layouts, and the ops that only move elements.

mod add_slices;
mod append;
pub mod getitem;
mod repeat;
#[cfg(test)]
mod tests;

use crate::array::Array;
use crate::array::copy::dense_copy;
use crate::array::scalar::Scalar;
use crate::array::shape::{Shape, Strides};
use crate::array::strided::{self, Axes};
use crate::dispatch;
use crate::dtype::{DType, Element};
use crate::error::{Error, Result};

pub use add_slices::add_slices;
pub use append::{append, append_at};
pub use repeat::repeat;

/// Tensors one after the other along an axis; the other lengths agree.
pub fn concat(xs: &[&Array], axis: usize) -> Result<Array> {
    let Some(&first) = xs.first() else {
        return Err(Error::value("concat", "no tensors: got (), expected one or more"));
    };
    let out = Array::uninit(first.dtype(), &joined("concat", xs, axis)?)?;
    let mut start = 0;
    for x in xs {
        // SAFETY: a part of the fresh result, as large as `x`.
        unsafe { put_at(&out, start, axis, x) };
        start += x.shape()[axis];
    }
    Ok(out)
}

/// The shape of tensors one after the other along an axis, or why they have none.
fn joined(op: &'static str, xs: &[&Array], axis: usize) -> Result<Shape> {
    let first = xs[0];
    let mut shape = *first.shape();
    if axis >= shape.len() {
        return Err(Error::value(op, format!("wrong axis: got {axis}, expected below {}", shape.len())));
    }
    shape[axis] = 0;
    for x in xs {
        if x.dtype() != first.dtype() {
            return Err(Error::Rejected("operands of different dtypes"));
        }
        let fits = |at: usize| at == axis || x.shape()[at] == first.shape()[at];
        if x.rank() != first.rank() || !(0..x.rank()).all(fits) {
            let text = format!(
                "shapes differ: got {:?} and {:?}, expected equal beside axis {axis}",
                first.shape(),
                x.shape()
            );
            return Err(Error::value(op, text));
        }
        shape[axis] = shape[axis].saturating_add(x.shape()[axis]);
    }
    Ok(shape)
}

/// Writes `x` into an array that starts where its storage does, from place `start` of an axis on.
///
/// # Safety
/// That part of the array is as large as `x` and is nobody else's.
unsafe fn put_at(out: &Array, start: usize, axis: usize, x: &Array) {
    let size = out.dtype().itemsize();
    let at = start as isize * out.strides()[axis] * size as isize;
    let to = out.storage().data().offset(at);
    strided::copy(size, to, x.data(), &strided::axes(x.shape(), out.strides(), x.strides()));
}

/// A copy with a margin of `value`: (before, after) for each axis.
pub fn pad(x: &Array, padding: &[(usize, usize)], value: Scalar) -> Result<Array> {
    if padding.len() != x.rank() {
        let text = format!("wrong count of margins: got {}, expected {}", padding.len(), x.rank());
        return Err(Error::value("pad", text));
    }
    let mut shape = Shape::empty();
    for (&len, &(before, after)) in x.shape().iter().zip(padding) {
        let total = before.checked_add(after).and_then(|margin| margin.checked_add(len));
        shape.push(total.ok_or(Error::OutOfMemory(usize::MAX))?);
    }
    let out = Array::uninit(x.dtype(), &shape)?;
    let mut value = fill_bytes(value, x.dtype());
    let target = Target { out: &out, size: x.dtype().itemsize() };
    // Margins of an axis lie between those of the axes before it.
    let (mut start, mut len) = (Shape::filled(0, x.rank()), shape);
    for (axis, &(before, after)) in padding.iter().enumerate() {
        let (whole, own) = (len[axis], x.shape()[axis]);
        for (from, count) in [(0, before), (whole - after, after)] {
            (start[axis], len[axis]) = (from, count);
            // SAFETY: a box inside the result; the source is one value that stays put.
            unsafe { target.fill(&start, &len, value.as_mut_ptr(), &Strides::filled(0, x.rank())) };
        }
        (start[axis], len[axis]) = (before, own);
    }
    // SAFETY: what is left is as large as `x`.
    unsafe { target.fill(&start, &len, x.data(), x.strides()) };
    Ok(out)
}

/// A copy of `x` in which element `start + k * step` along each axis is element `k` of `values`.
pub fn slice_scatter(x: &Array, values: &Array, start: &[usize], size: &[usize], step: &[isize]) -> Result<Array> {
    if x.dtype() != values.dtype() {
        return Err(Error::Rejected("operands of different dtypes"));
    }
    let out = dense_copy(x)?;
    let place = crate::array::view::slice(&out, start, size, step)?;
    if place.shape()[..] != values.shape()[..] {
        let text = format!("values do not fit: got {:?}, expected {size:?}", values.shape());
        return Err(Error::value("slice_scatter", text));
    }
    let axes = strided::axes(values.shape(), place.strides(), values.strides());
    // SAFETY: the slice lies inside the fresh result, and its steps are not 0 where its length is above 1 (checked).
    unsafe {
        let empty = axes.iter().any(|axis| axis.len == 0);
        if !empty && axes.iter().any(|axis| axis.len > 1 && axis.to == 0) {
            return Err(Error::value("slice_scatter", format!("step of 0: got {step:?}, expected others")));
        }
        strided::copy(x.dtype().itemsize(), place.data().cast_mut(), values.data(), &axes);
    }
    drop(place);
    Ok(out)
}

struct Target<'a> {
    out: &'a Array,
    size: usize,
}

impl Target<'_> {
    /// Writes a box of the result.
    ///
    /// # Safety
    /// The box lies inside the result, and the source has as many elements.
    unsafe fn fill(&self, start: &[usize], len: &[usize], from: *const u8, steps: &[isize]) {
        let axes: Axes = strided::axes(len, self.out.strides(), steps);
        let at: isize = start.iter().zip(self.out.strides().iter()).map(|(&i, &step)| i as isize * step).sum();
        if axes.iter().all(|axis| axis.len > 0) {
            // SAFETY: the box is not empty.
            strided::copy(self.size, self.out.storage().data().offset(at * self.size as isize), from, &axes);
        }
    }
}

/// A scalar as the bytes of an element: floats round or truncate, integers wrap, bool is `!= 0`.
fn fill_bytes(value: Scalar, dtype: DType) -> [u8; 8] {
    let mut out = [0u8; 8];
    dispatch!(all dtype, T => {
        let element = match value {
            Scalar::Bool(value) => T::from_i64(value as i64),
            Scalar::Float(value) => T::from_f64(value),
            Scalar::Int(value) => T::from_i64(value),
            Scalar::Uint(value) if dtype.is_float() => T::from_f64(value as f64),
            Scalar::Uint(value) => T::from_i64(value as i64),
        };
        // SAFETY: an element has at most eight bytes.
        unsafe { out.as_mut_ptr().cast::<T>().write_unaligned(element) };
    });
    out
}
