//! Memory that a task needs only while it runs: one buffer per thread, kept for the next task.

use crate::machine::lanes::Real;
use std::cell::RefCell;
use std::marker::PhantomData;
use std::ops::{Deref, DerefMut};

/// A cache line, so that the buffer is aligned.
#[derive(Clone, Copy)]
#[repr(align(64))]
struct Line {
    _bytes: [u8; 64],
}

/// Zeros, aligned to cache lines: whole registers of them are never split over two lines.
pub struct Aligned<T> {
    lines: Vec<Line>,
    len: usize,
    element: PhantomData<T>,
}

impl<T: Real> Aligned<T> {
    /// `len` zeros.
    pub fn zeros(len: usize) -> Self {
        let lines = vec![Line { _bytes: [0; 64] }; (len * size_of::<T>()).div_ceil(64)];
        Self { lines, len, element: PhantomData }
    }
}

impl<T: Real> Deref for Aligned<T> {
    type Target = [T];
    fn deref(&self) -> &[T] {
        // SAFETY: large enough and aligned; any bits are a float.
        unsafe { std::slice::from_raw_parts(self.lines.as_ptr().cast(), self.len) }
    }
}

impl<T: Real> DerefMut for Aligned<T> {
    fn deref_mut(&mut self) -> &mut [T] {
        // SAFETY: as above.
        unsafe { std::slice::from_raw_parts_mut(self.lines.as_mut_ptr().cast(), self.len) }
    }
}

/// Lines that a thread keeps between tasks (8 MiB); a larger buffer is freed after its task.
const KEPT: usize = (8 << 20) / 64;

thread_local! {
    static BUFFER: RefCell<Vec<Line>> = const { RefCell::new(Vec::new()) };
}

/// Calls `work` with `len` elements of arbitrary but initialised memory, 64-byte aligned. Inside another call the memory
/// is fresh, which costs an allocation.
pub fn with_scratch<T: Real, R>(len: usize, work: impl FnOnce(&mut [T]) -> R) -> R {
    let mut buffer = BUFFER.take();
    let lines = (len * size_of::<T>()).div_ceil(64);
    if buffer.len() < lines {
        buffer = vec![Line { _bytes: [0; 64] }; lines];
    }
    // SAFETY: large enough and aligned; any bits are a float.
    let part = unsafe { std::slice::from_raw_parts_mut(buffer.as_mut_ptr().cast::<T>(), len) };
    let result = work(part);
    // A sanitizer only watches what is no larger than asked for.
    if buffer.len() <= KEPT && !cfg!(feature = "exact-allocations") {
        BUFFER.with_borrow_mut(|kept| {
            if kept.len() < buffer.len() {
                *kept = buffer;
            }
        });
    }
    result
}

/// [`with_scratch`], cut into buffers of these lengths.
pub fn with_buffers<T: Real, R, const N: usize>(lens: [usize; N], work: impl FnOnce([&mut [T]; N]) -> R) -> R {
    with_scratch(lens.iter().sum(), |scratch| work(cut(scratch, lens)))
}

/// Pieces of these lengths, one after the other.
pub fn cut<T, const N: usize>(mut rest: &mut [T], lens: [usize; N]) -> [&mut [T]; N] {
    lens.map(|len| {
        let (piece, after) = std::mem::take(&mut rest).split_at_mut(len);
        rest = after;
        piece
    })
}
