//! Copies of whole arrays.

use super::strided;
use crate::array::Array;
use crate::dtype::Element;
use crate::error::Result;

impl Array {
    /// This array if it is row-major already, else a row-major copy.
    pub fn contiguous(&self) -> Result<Self> {
        if self.is_contiguous() { Ok(self.clone()) } else { dense_copy(self) }
    }

    /// The elements copied out in row-major order.
    pub fn to_vec<T: Element>(&self) -> Result<Vec<T>> {
        let dense = self.contiguous()?;
        Ok(dense.as_slice::<T>().expect("contiguous").to_vec())
    }
}

/// A row-major copy that shares nothing with `x`.
pub fn dense_copy(x: &Array) -> Result<Array> {
    let out = Array::uninit(x.dtype(), x.shape())?;
    let axes = strided::axes(x.shape(), out.strides(), x.strides());
    // SAFETY: the fresh result is as large as `x`.
    unsafe { strided::copy(x.dtype().itemsize(), out.storage().data(), x.data(), &axes) };
    Ok(out)
}

/// Copies `x` over a view of its shape.
///
/// # Safety
/// The storage of the view is the caller's alone, and no element of it is reached twice.
pub unsafe fn put(x: &Array, to: &Array) {
    assert!(x.shape()[..] == to.shape()[..] && x.dtype() == to.dtype(), "a copy of another shape or dtype");
    let axes = strided::axes(x.shape(), to.strides(), x.strides());
    // SAFETY: both hold the shape; the destination is the caller's.
    strided::copy(x.dtype().itemsize(), to.data().cast_mut(), x.data(), &axes);
}
