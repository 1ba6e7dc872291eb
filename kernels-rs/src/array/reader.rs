//! Arrays of any layout read in row-major order, a part at a time: nothing is copied whole.

use super::source::{Source, Strided};
use crate::array::Array;
use crate::dtype::{DType, Element, Plain};
use std::marker::PhantomData;
use std::ops::Range;

/// The elements of a source as slices: where they lie, or gathered into the caller's buffer.
pub struct Reader<'a, T, S = Strided> {
    source: S,
    count: usize,
    elements: PhantomData<&'a [T]>,
}

impl<'a, T: Element> Reader<'a, T> {
    /// Panics when `T` is not the dtype of the array.
    pub fn new(x: &'a Array) -> Self {
        assert!(T::DTYPE == x.dtype(), "read as another dtype");
        Self::bits(x)
    }

    /// The bits of elements of any dtype of this size.
    pub fn bits(x: &'a Array) -> Self {
        assert!(size_of::<T>() == x.dtype().itemsize() && (T::DTYPE != DType::Bool || x.dtype() == DType::Bool));
        if x.is_contiguous() {
            let source = Strided::dense(x.data(), size_of::<T>());
            return Self { source, count: x.numel(), elements: PhantomData };
        }
        Self::in_order(x, 0..x.rank())
    }

    /// With this axis as the last one.
    pub fn along(x: &'a Array, axis: usize) -> Self {
        assert!(T::DTYPE == x.dtype(), "read as another dtype");
        Self::in_order(x, (0..x.rank()).filter(|&at| at != axis).chain([axis]))
    }

    fn in_order(x: &'a Array, order: impl Iterator<Item = usize>) -> Self {
        let source = if x.numel() == 0 {
            Strided::dense(x.data(), size_of::<T>())
        } else {
            Strided::new(x.data(), size_of::<T>(), order.map(|at| (x.shape()[at], x.strides()[at])))
        };
        Self { source, count: x.numel(), elements: PhantomData }
    }

    /// Of elements that lie together.
    pub fn of(elements: &'a [T]) -> Self {
        let source = Strided::dense(elements.as_ptr().cast(), size_of::<T>());
        Self { source, count: elements.len(), elements: PhantomData }
    }
}

impl<'a, T: Element, S: Source> Reader<'a, T, S> {
    /// The `count` elements of a source.
    ///
    /// # Safety
    /// It has as many, of this type, for the lifetime of the reader.
    pub unsafe fn from_source(source: S, count: usize) -> Self {
        assert!(source.size() == size_of::<T>() && !source.is_one(), "a source of other elements");
        Self { source, count, elements: PhantomData }
    }

    /// Elements that lie together, at least.
    pub fn run(&self) -> usize {
        self.source.run(self.count)
    }

    /// Elements that a buffer for parts of `len` needs: none where the array is dense.
    pub fn room(&self, len: usize) -> usize {
        self.source.room(len)
    }

    /// These elements. The buffer has [`Reader::room`] for them, unless they are a part of one [`Reader::run`]; its own type
    /// does not matter, if it is as wide as `T`.
    #[inline]
    pub fn part<'b, W: Plain>(&self, range: Range<usize>, buffer: &'b mut [W]) -> &'b [T]
    where
        'a: 'b,
    {
        assert!(range.start <= range.end && range.end <= self.count, "part outside the array");
        const { assert!(size_of::<T>() <= size_of::<W>()) };
        let (len, room) =
            (range.len(), std::ptr::slice_from_raw_parts_mut(buffer.as_mut_ptr().cast(), size_of_val(buffer)));
        // SAFETY: the source has `count` elements `T`, and this range of them is together wherever it says; the buffer is
        // aligned for the wider type, and lives as long as what is returned.
        unsafe { std::slice::from_raw_parts(self.source.part(range, room).cast(), len) }
    }
}

#[cfg(test)]
mod tests;
