//! Row-major copies of arrays with any layout.

use crate::array::Array;
use crate::dispatch;
use crate::dtype::Element;
use crate::error::Result;

/// A row-major copy.
pub fn to_contiguous(x: &Array) -> Result<Array> {
    let mut out = Array::uninit(x.dtype(), x.shape())?;
    dispatch!(all x.dtype(), T => copy_any::<T>(x, &mut out));
    Ok(out)
}

fn copy_any<T: Element>(x: &Array, out: &mut Array) {
    let source = x.ptr::<T>();
    let (shape, strides) = (*x.shape(), *x.strides());
    let mut index = crate::shape::Shape::filled(0, shape.len());
    for slot in out.as_mut_slice::<T>() {
        let at: isize = index.iter().zip(strides.iter()).map(|(&i, &s)| i as isize * s).sum();
        // SAFETY: the index is inside the shape, so the address is inside the storage.
        *slot = unsafe { *source.offset(at) };
        for axis in (0..shape.len()).rev() {
            index[axis] += 1;
            if index[axis] < shape[axis] {
                break;
            }
            index[axis] = 0;
        }
    }
}
