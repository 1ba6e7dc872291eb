//! Memory that a task needs only while it runs: one buffer per thread, kept for the next task; and lists whose length follows
//! from the sizes of a user. Where there is no memory for them the call ends as [`Error::OutOfMemory`]: it unwinds to
//! [`guarded`], since a task has nobody to return an error to.

use crate::dtype::Plain;
use crate::error::{Error, Result};
use std::alloc::{Layout, alloc_zeroed};
use std::any::Any;
use std::cell::RefCell;
use std::marker::PhantomData;
use std::mem::MaybeUninit;
use std::ops::{Deref, DerefMut};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

/// What a call unwinds with where there is no memory: the bytes that it asked for.
struct NoMemory(usize);

/// Runs a kernel: where it found no memory for its lists or scratch, that is its error.
#[inline]
pub fn guarded<R>(kernel: impl FnOnce() -> Result<R>) -> Result<R> {
    // Nothing that the kernel saw is used again: its results are lost with it, and its operands never change.
    catch_unwind(AssertUnwindSafe(kernel)).unwrap_or_else(|payload| Err(caught(payload)))
}

#[cold]
fn caught(payload: Box<dyn Any + Send>) -> Error {
    match payload.downcast::<NoMemory>() {
        Ok(refused) => Error::OutOfMemory(refused.0),
        Err(payload) => resume_unwind(payload),
    }
}

#[cold]
fn refuse(bytes: usize) -> ! {
    // Not a panic: nothing is printed.
    resume_unwind(Box::new(NoMemory(bytes)))
}

/// Makes room for `more` elements.
fn reserve<T>(list: &mut Vec<T>, more: usize) {
    if list.try_reserve_exact(more).is_err() {
        refuse(more.saturating_mul(size_of::<T>()));
    }
}

/// An empty list with room for `len` elements.
pub fn reserved<T>(len: usize) -> Vec<T> {
    let mut list = Vec::new();
    reserve(&mut list, len);
    list
}

/// `len` times the same value.
pub fn filled<T: Clone>(value: T, len: usize) -> Vec<T> {
    let mut list = reserved(len);
    list.resize(len, value);
    list
}

/// Makes a list as long as this, if it is shorter.
pub fn grow<T: Clone>(list: &mut Vec<T>, len: usize, value: T) {
    if list.len() < len {
        reserve(list, len - list.len());
        list.resize(len, value);
    }
}

/// All that an iterator gives.
pub fn collected<T>(items: impl Iterator<Item = T>) -> Vec<T> {
    let mut list = reserved(items.size_hint().0);
    for item in items {
        if list.len() == list.capacity() && list.try_reserve(1).is_err() {
            refuse(list.len().saturating_mul(size_of::<T>()));
        }
        list.push(item);
    }
    list
}

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

impl<T: Plain> Aligned<T> {
    /// `len` zeros.
    pub fn zeros(len: usize) -> Self {
        let lines = zeros(lines_of::<T>(len));
        Self { lines, len, element: PhantomData }
    }
}

impl<T: Plain> Deref for Aligned<T> {
    type Target = [T];
    fn deref(&self) -> &[T] {
        // SAFETY: `zeros` made lines for so many elements, which are aligned for any; any bits are a `T`.
        unsafe { std::slice::from_raw_parts(self.lines.as_ptr().cast(), self.len) }
    }
}

impl<T: Plain> DerefMut for Aligned<T> {
    fn deref_mut(&mut self) -> &mut [T] {
        // SAFETY: as for `deref`, and the borrow of `self` is the only one.
        unsafe { std::slice::from_raw_parts_mut(self.lines.as_mut_ptr().cast(), self.len) }
    }
}

/// So many lines of zeros, from the system where they are many: it has them ready.
#[expect(clippy::cast_ptr_alignment, reason = "the layout asks for the alignment of lines")]
fn zeros(count: usize) -> Vec<Line> {
    let Ok(layout) = Layout::array::<Line>(count) else { refuse(usize::MAX) };
    if count == 0 {
        return Vec::new();
    }
    // SAFETY: the layout is not empty.
    let start = unsafe { alloc_zeroed(layout) }.cast::<Line>();
    if start.is_null() {
        refuse(layout.size());
    }
    // SAFETY: allocated just now by the global allocator with the layout of so many lines, each of them zeros.
    unsafe { Box::from_raw(std::ptr::slice_from_raw_parts_mut(start, count)) }.into_vec()
}

/// Cache lines of `len` elements.
fn lines_of<T>(len: usize) -> usize {
    len.saturating_mul(size_of::<T>()).div_ceil(64)
}

/// Lines that a thread keeps between tasks (8 MiB); a larger buffer is freed after its task.
const KEPT: usize = (8 << 20) / 64;

thread_local! {
    static BUFFER: RefCell<Vec<Line>> = const { RefCell::new(Vec::new()) };
}

/// Calls `work` with `len` elements of arbitrary but initialised memory, 64-byte aligned. Inside another call the memory
/// is fresh, which costs an allocation.
pub fn with_scratch<T: Plain, R>(len: usize, work: impl FnOnce(&mut [T]) -> R) -> R {
    with_lines(lines_of::<T>(len), |lines| work(Arena { lines }.take(len)))
}

/// [`with_scratch`] of whole lines.
fn with_lines<R>(lines: usize, work: impl FnOnce(&mut [Line]) -> R) -> R {
    let mut buffer = BUFFER.take();
    if buffer.len() < lines {
        drop(std::mem::take(&mut buffer));
        buffer = zeros(lines);
    }
    let result = work(&mut buffer[..lines]);
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

/// Scratch memory handed out part by part, each of its own type and from the start of a cache line.
pub struct Arena<'a> {
    lines: &'a mut [Line],
}

impl<'a> Arena<'a> {
    /// Calls `work` with room for parts of so many bytes.
    pub fn with<R, const N: usize>(bytes: [usize; N], work: impl FnOnce(Arena<'_>) -> R) -> R {
        let lines = bytes.iter().fold(0, |sum: usize, &bytes| sum.saturating_add(bytes.div_ceil(64)));
        with_lines(lines, |lines| work(Arena { lines }))
    }

    /// The next `len` elements, of arbitrary value.
    pub fn take<T: Plain>(&mut self, len: usize) -> &'a mut [T] {
        const { assert!(align_of::<T>() <= align_of::<Line>()) };
        let (part, after) = std::mem::take(&mut self.lines).split_at_mut(lines_of::<T>(len));
        self.lines = after;
        // SAFETY: whole lines that hold so many elements, aligned, handed out once; any bits are a `T`.
        unsafe { std::slice::from_raw_parts_mut(part.as_mut_ptr().cast(), len) }
    }
}

/// A value from the start of a cache line. On the stack others lie anywhere, so that loads of whole registers are split over two
/// lines in some processes and not in others: top k took 1.22 of the time in half of them.
#[derive(Clone, Copy)]
#[repr(align(64))]
pub struct OnLine<T>(pub T);

/// Memory on the stack, of arbitrary value, from the start of a cache line.
#[repr(align(64))]
pub struct Stack<const BYTES: usize>(MaybeUninit<[u8; BYTES]>);

impl<const BYTES: usize> Stack<BYTES> {
    /// Costs nothing.
    #[inline(always)]
    #[must_use]
    #[expect(clippy::new_without_default, reason = "not a value: what is in it is unknown")]
    pub const fn new() -> Self {
        Self(MaybeUninit::uninit())
    }

    /// Where it begins.
    #[inline(always)]
    pub fn ptr(&mut self) -> *mut u8 {
        self.0.as_mut_ptr().cast()
    }

    /// All of it.
    #[inline(always)]
    pub fn bytes(&mut self) -> *mut [u8] {
        std::ptr::slice_from_raw_parts_mut(self.ptr(), BYTES)
    }
}

/// Frees what this thread keeps between tasks.
pub fn empty_thread() {
    drop(BUFFER.take());
}

/// [`with_scratch`], cut into buffers of these lengths.
pub fn with_buffers<T: Plain, R, const N: usize>(lens: [usize; N], work: impl FnOnce([&mut [T]; N]) -> R) -> R {
    with_scratch(lens.iter().fold(0, |sum: usize, &len| sum.saturating_add(len)), |scratch| work(cut(scratch, lens)))
}

/// Pieces of these lengths, one after the other.
pub fn cut<T, const N: usize>(mut rest: &mut [T], lens: [usize; N]) -> [&mut [T]; N] {
    lens.map(|len| {
        let (piece, after) = std::mem::take(&mut rest).split_at_mut(len);
        rest = after;
        piece
    })
}

#[cfg(test)]
mod tests;
