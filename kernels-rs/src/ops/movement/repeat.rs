//! Elements that repeat.

use crate::array::Array;
use crate::array::shape::{Shape, around};
use crate::dtype::Element;
use crate::error::{Error, Result};
use crate::machine::threads::{self, SharedMut};

/// Bytes that are worth a task of their own.
const GRAIN: usize = 1 << 18;

/// Each element, or each slice along an axis, so many times; without an axis, those of the flattened array.
pub fn repeat(x: &Array, repeats: usize, axis: Option<usize>) -> Result<Array> {
    let x = x.contiguous()?;
    let (outer, len, inner) = match axis {
        None => (1, x.numel(), 1),
        Some(axis) => around("repeat", x.shape(), axis)?,
    };
    let mut shape = *x.shape();
    let longer = len.checked_mul(repeats).ok_or(Error::OutOfMemory(usize::MAX))?;
    match axis {
        None => shape = Shape::from_slice(&[longer])?,
        Some(axis) => shape[axis] = longer,
    }
    let mut out = Array::uninit(x.dtype(), &shape)?;
    let size = x.dtype().itemsize();
    if out.numel() == 0 {
        return Ok(out);
    }
    if inner > 1 {
        blocks(&x, &mut out, outer * len, inner * size, repeats);
    } else {
        match size {
            1 => each::<u8>(&x, &mut out, repeats),
            2 => each::<u16>(&x, &mut out, repeats),
            4 => each::<u32>(&x, &mut out, repeats),
            _ => each::<u64>(&x, &mut out, repeats),
        }
    }
    Ok(out)
}

/// Runs of bytes, one after the other.
fn blocks(x: &Array, out: &mut Array, count: usize, bytes: usize, repeats: usize) {
    // SAFETY: the operand is dense and lives longer; any element is bytes.
    let from = unsafe { std::slice::from_raw_parts(x.data(), count * bytes) };
    let to = SharedMut::new(out.storage().data());
    let together = (GRAIN / (bytes * repeats)).max(1);
    threads::parallel(count.div_ceil(together), &|task| {
        for block in task * together..count.min((task + 1) * together) {
            let from = &from[block * bytes..(block + 1) * bytes];
            // SAFETY: the repeats of a block inside the fresh result; only the task of the block writes them.
            let to = unsafe { to.slice(block * bytes * repeats..(block + 1) * bytes * repeats) };
            to.chunks_exact_mut(bytes).for_each(|to| to.copy_from_slice(from));
        }
    });
}

/// Elements of a size, of any type.
fn each<T: Element>(x: &Array, out: &mut Array, repeats: usize) {
    let count = x.numel();
    // SAFETY: the operand is dense and lives longer; an element is as many bytes as `T`, of which all values are valid.
    let from = unsafe { std::slice::from_raw_parts(x.data().cast::<T>(), count) };
    let to = SharedMut::new(out.storage().data().cast::<T>());
    let together = (GRAIN / (size_of::<T>() * repeats)).max(1);
    threads::parallel(count.div_ceil(together), &|task| {
        let part = task * together..count.min((task + 1) * together);
        // SAFETY: the repeats of these elements inside the fresh result; only this task writes them.
        let to = unsafe { to.slice(part.start * repeats..part.end * repeats) };
        let from = &from[part];
        match repeats {
            2 => times::<T, 2>(from, to),
            3 => times::<T, 3>(from, to),
            4 => times::<T, 4>(from, to),
            _ => to.chunks_exact_mut(repeats).zip(from).for_each(|(to, &value)| to.fill(value)),
        }
    });
}

fn times<T: Element, const N: usize>(from: &[T], to: &mut [T]) {
    to.as_chunks_mut::<N>().0.iter_mut().zip(from).for_each(|(to, &value)| *to = [value; N]);
}
