//! Shapes and strides, held inline up to [`MAX_RANK`].

use crate::error::{Error, Result};
use std::mem::MaybeUninit;
use std::ops::{Deref, DerefMut};

/// The largest rank of an array.
pub const MAX_RANK: usize = 16;

/// Up to [`MAX_RANK`] numbers, held inline. Derefs to a slice.
#[derive(Clone, Copy)]
pub struct Inline<T: Copy> {
    /// The first `len` are written, the others are not: clearing them costs as much as a small kernel.
    data: [MaybeUninit<T>; MAX_RANK],
    len: u8,
}

/// The lengths of the axes.
pub type Shape = Inline<usize>;
/// Steps between neighbours along each axis, in elements (not bytes). May be negative or 0.
pub type Strides = Inline<isize>;

impl<T: Copy> Inline<T> {
    /// Rank 0.
    #[inline]
    pub fn empty() -> Self {
        Self { data: [const { MaybeUninit::uninit() }; MAX_RANK], len: 0 }
    }

    /// `len` times the same value. The caller keeps `len <= MAX_RANK`.
    #[inline]
    pub fn filled(value: T, len: usize) -> Self {
        assert!(len <= MAX_RANK, "rank {len} is above {MAX_RANK}");
        let mut out = Self::empty();
        out.data[..len].fill(MaybeUninit::new(value));
        out.len = len as u8;
        out
    }

    /// Copies a slice; too long a slice is a value error.
    #[inline]
    pub fn from_slice(values: &[T]) -> Result<Self> {
        check_rank(values.len())?;
        let mut out = Self::empty();
        for &value in values {
            out.push(value);
        }
        Ok(out)
    }

    /// Adds one more at the end. The caller keeps within [`MAX_RANK`].
    #[inline]
    pub fn push(&mut self, value: T) {
        self.data[self.len as usize] = MaybeUninit::new(value);
        self.len += 1;
    }

    /// Removes and returns the last one.
    #[inline]
    pub fn pop(&mut self) -> Option<T> {
        let last = *self.last()?;
        self.len -= 1;
        Some(last)
    }

    /// Removes axis `at`.
    #[inline]
    pub fn remove(&mut self, at: usize) {
        self.copy_within(at + 1.., at);
        self.len -= 1;
    }

    /// Inserts before axis `at`. The caller keeps within [`MAX_RANK`].
    #[inline]
    pub fn insert(&mut self, at: usize, value: T) {
        self.push(value);
        self[at..].rotate_right(1);
    }
}

impl<T: Copy> Deref for Inline<T> {
    type Target = [T];
    #[inline]
    fn deref(&self) -> &[T] {
        // SAFETY: so many are written.
        unsafe { std::slice::from_raw_parts(self.data.as_ptr().cast(), self.len as usize) }
    }
}

impl<T: Copy> DerefMut for Inline<T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut [T] {
        // SAFETY: so many are written.
        unsafe { std::slice::from_raw_parts_mut(self.data.as_mut_ptr().cast(), self.len as usize) }
    }
}

impl<T: Copy + PartialEq> PartialEq for Inline<T> {
    fn eq(&self, other: &Self) -> bool {
        self[..] == other[..]
    }
}

impl<T: Copy + std::fmt::Debug> std::fmt::Debug for Inline<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self[..].fmt(f)
    }
}

/// Number of elements; the largest number where it overflows, which no array has.
#[inline]
pub fn numel(shape: &[usize]) -> usize {
    shape.iter().fold(1, |count, &n| count.saturating_mul(n))
}

/// A rank above [`MAX_RANK`] is a value error.
#[inline]
pub fn check_rank(rank: usize) -> Result<()> {
    if rank > MAX_RANK {
        return Err(Error::value("shape", format!("rank too large: got {rank}, expected at most {MAX_RANK}")));
    }
    Ok(())
}

/// The most elements of an array. No machine addresses more than 2^57 bytes (2^32 with 32-bit addresses), and with room to spare no count of bytes, of
/// operands or of steps over an array overflows.
pub const MAX_ELEMENTS: usize = 1 << if usize::BITS == 64 { 56 } else { 28 };

/// Number of elements, at most [`MAX_ELEMENTS`]. Axes of length 0 do not save a shape that is too large without them, so that
/// no product of some of the lengths of an array overflows.
#[inline]
pub fn checked_numel(shape: &[usize]) -> Result<usize> {
    let (mut count, mut empty) = (1usize, false);
    for &n in shape {
        empty |= n == 0;
        count = count.saturating_mul(n.max(1));
    }
    if count > MAX_ELEMENTS {
        return Err(Error::OutOfMemory(usize::MAX));
    }
    Ok(if empty { 0 } else { count })
}

/// Row-major strides.
#[inline]
pub fn contiguous_strides(shape: &[usize]) -> Strides {
    let mut out = Strides::filled(1, shape.len());
    let mut step = 1isize;
    for (slot, &len) in out.iter_mut().zip(shape).rev() {
        *slot = step;
        step = step.wrapping_mul(len as isize);
    }
    out
}

/// True when the elements lie in row-major order without gaps. Axes of length 1 do not count, and no elements have no gaps.
#[inline]
pub fn is_contiguous(shape: &[usize], strides: &[isize]) -> bool {
    let mut step = 1isize;
    for (&n, &s) in shape.iter().zip(strides).rev() {
        if n != 1 {
            if s != step {
                return shape.contains(&0);
            }
            step *= n as isize;
        }
    }
    true
}

/// The usual broadcasting of two shapes.
#[inline]
pub fn broadcast(a: &[usize], b: &[usize]) -> Result<Shape> {
    let (long, short) = if a.len() >= b.len() { (a, b) } else { (b, a) };
    let mut out = Shape::from_slice(long)?;
    let skip = long.len() - short.len();
    for (o, &n) in out[skip..].iter_mut().zip(short) {
        if *o != n {
            if *o == 1 {
                *o = n;
            } else if n != 1 {
                return Err(Error::Rejected("shapes do not broadcast"));
            }
        }
    }
    Ok(out)
}

/// Strides that read an array of `shape`/`strides` as if it had the larger shape `to` (0 along stretched axes).
/// The shapes must be known to broadcast.
#[inline]
pub fn broadcast_strides(shape: &[usize], strides: &[isize], to: &[usize]) -> Strides {
    let mut out = Strides::filled(0, to.len());
    let skip = to.len() - shape.len();
    for axis in 0..shape.len() {
        out[skip + axis] = if shape[axis] == 1 { 0 } else { strides[axis] };
    }
    out
}

/// Products of the lengths before an axis, its length, and of those after. An axis that is not there is an error of `op`.
pub fn around(op: &str, shape: &[usize], axis: usize) -> Result<(usize, usize, usize)> {
    let Some(&len) = shape.get(axis) else {
        return Err(Error::value(op, format!("wrong axis: got {axis}, expected below {}", shape.len())));
    };
    Ok((numel(&shape[..axis]), len, numel(&shape[axis + 1..])))
}
