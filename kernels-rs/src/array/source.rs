//! What walkers read: the elements of a walk in row-major order, wherever they come from.

use super::axes::{merged, offset};
use super::narrow::widen;
use super::shape::Inline;
use super::strided;
use crate::dtype::DType;
use std::ops::Range;

/// Elements of a walk, read a part at a time. Maps, folds and rows take what they read as one.
pub trait Source: Sync {
    /// Bytes of a stored element.
    fn size(&self) -> usize;

    /// Elements that a part of `len` may put into the caller's room.
    fn room(&self, len: usize) -> usize;

    /// Elements of a walk of `count` that lie together, at least.
    fn run(&self, count: usize) -> usize {
        count.min(1)
    }

    /// Whether it is one element all along, and a part is that element.
    fn is_one(&self) -> bool {
        false
    }

    /// Where elements `range` are together: where they lie, or in `to`. Panics where those bytes are too few.
    ///
    /// # Safety
    /// The range lies inside the walk; `to` is the caller's to write, and aligned for the elements.
    unsafe fn part(&self, range: Range<usize>, to: *mut [u8]) -> *const u8;
}

/// An operand of any layout.
pub struct Strided {
    from: *const u8,
    size: usize,
    /// (length, step) of each axis that has more than one element, neighbours merged.
    dims: Inline<(usize, isize)>,
    dense: bool,
}

// SAFETY: it only reads, and arrays are not written while they are shared.
unsafe impl Sync for Strided {}

impl Strided {
    /// Elements of `size` bytes, the first one there, of axes with these lengths and steps.
    pub fn new(from: *const u8, size: usize, axes: impl IntoIterator<Item = (usize, isize)>) -> Self {
        let dims = merged(axes);
        Self { from, size, dims, dense: matches!(dims[..], [] | [(_, 1)]) }
    }

    /// No elements, or some that lie together.
    pub fn dense(from: *const u8, size: usize) -> Self {
        Self { from, size, dims: Inline::empty(), dense: true }
    }

    /// Whether it is one element over and over.
    pub fn is_constant(&self) -> bool {
        matches!(self.dims[..], [(_, 0)])
    }

    /// Elements from the place `at` of the walk on that lie together; 0 where single ones are gathered.
    pub fn together(&self, at: usize) -> usize {
        match self.dims.last() {
            _ if self.dense => usize::MAX,
            Some(&(len, 1)) => len - at % len,
            _ => 0,
        }
    }

    /// Length of the run that comes over and over.
    pub fn cycle(&self) -> Option<usize> {
        if let [(_, 0), (len, _)] = self.dims[..] { Some(len) } else { None }
    }

    #[inline(never)]
    unsafe fn gathered(&self, range: Range<usize>, to: *mut [u8]) -> *const u8 {
        let run = self.run(0);
        if range.is_empty() {
            return self.from;
        }
        if run != 1 && range.start / run == (range.end - 1) / run {
            return self.from.wrapping_offset(offset(&self.dims, range.start) * self.size as isize);
        }
        assert!(range.len() * self.size <= to.len(), "too little room for a part");
        let to = to.cast();
        strided::gather(self.size, to, self.from, &self.dims, range.start, range.len());
        to
    }
}

impl Source for Strided {
    fn size(&self) -> usize {
        self.size
    }

    #[inline]
    fn room(&self, len: usize) -> usize {
        if self.dense { 0 } else { len }
    }

    #[inline]
    fn run(&self, count: usize) -> usize {
        match self.dims.last() {
            _ if self.dense => count,
            Some(&(len, 1)) => len,
            _ => 1,
        }
    }

    #[inline]
    unsafe fn part(&self, range: Range<usize>, to: *mut [u8]) -> *const u8 {
        if self.dense {
            return self.from.wrapping_add(range.start * self.size);
        }
        self.gathered(range, to)
    }
}

/// An operand of which what repeats is held ready.
pub struct Operand<'a> {
    /// As it lies.
    pub lying: &'a Strided,
    /// What is read instead.
    pub held: Held,
}

impl Strided {
    /// Holds so many copies of the one element.
    ///
    /// # Safety
    /// `to` has room for them, and is the caller's to write for as long as they are held, and aligned for the elements.
    pub unsafe fn hold_block(&self, count: usize, to: *mut u8) -> Held {
        // SAFETY: a step of 0 stays at the element.
        strided::gather(self.size, to, self.from, &[(count, 0)], 0, count);
        Held::Block(to)
    }

    /// Holds the run that comes over and over: it and the elements of a part that begins in it.
    ///
    /// # Safety
    /// `to` is the caller's to write for as long as it is held, and aligned for the elements.
    pub unsafe fn hold_cycle(&self, len: usize, part: usize, to: *mut [u8]) -> Held {
        assert!((len + part) * self.size <= to.len(), "too little room for a run");
        let ((line, to), steps) = ((len, to.cast()), self.dims[1].1);
        // SAFETY: a line of the walk as often as it fills the room, some of it the last time.
        strided::gather(self.size, to, self.from, &[(part / line + 2, 0), (line, steps)], 0, line + part);
        Held::Cycle(to, len)
    }
}

/// What stands for elements that repeat.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Held {
    /// Nothing.
    No,
    /// The one element.
    One,
    /// A block of copies of the one element, as long as any part.
    Block(*const u8),
    /// The run of so many elements that comes over and over, from its start on and as long as it and any part.
    Cycle(*const u8, usize),
}

// SAFETY: what is held is only read, by the task that holds it.
unsafe impl Sync for Operand<'_> {}

impl Source for Operand<'_> {
    fn size(&self) -> usize {
        self.lying.size
    }

    fn room(&self, len: usize) -> usize {
        if self.held == Held::No { self.lying.room(len) } else { 0 }
    }

    #[inline]
    fn is_one(&self) -> bool {
        self.held == Held::One
    }

    #[inline]
    unsafe fn part(&self, range: Range<usize>, to: *mut [u8]) -> *const u8 {
        match self.held {
            Held::No => self.lying.part(range, to),
            Held::One => self.lying.from,
            Held::Block(at) => at,
            Held::Cycle(at, len) => at.wrapping_add(range.start % len * self.lying.size),
        }
    }
}

/// Elements of a narrow float as `f32`, where they are to be widened.
pub struct Widened<S> {
    /// What is stored.
    pub source: S,
    /// The narrow float.
    pub narrow: Option<DType>,
}

impl<S: Source> Source for Widened<S> {
    fn size(&self) -> usize {
        if self.narrow.is_some() { size_of::<f32>() } else { self.source.size() }
    }

    fn room(&self, len: usize) -> usize {
        // Narrow elements lie behind the wide ones.
        self.source.room(len) + if self.narrow.is_some() { len } else { 0 }
    }

    #[inline]
    fn is_one(&self) -> bool {
        self.source.is_one()
    }

    #[inline]
    unsafe fn part(&self, range: Range<usize>, to: *mut [u8]) -> *const u8 {
        let Some(dtype) = self.narrow else {
            return self.source.part(range, to);
        };
        let len = if self.is_one() { 1 } else { range.len() };
        let (wide, bytes) = (to.cast::<u8>(), len * size_of::<f32>());
        assert!(bytes <= to.len(), "too little room for a part");
        let behind = std::ptr::slice_from_raw_parts_mut(wide.wrapping_add(bytes), to.len() - bytes);
        // SAFETY: the caller promises the range and the room, of which the two parts do not meet.
        let from = self.source.part(range, behind);
        widen(dtype, from.cast(), wide.cast(), len);
        wide
    }
}
