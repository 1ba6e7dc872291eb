//! Arrays of any layout read in row-major order, a part at a time: nothing is copied whole.

use super::axes::{merged, offset};
use super::strided;
use crate::array::Array;
use crate::array::shape::Inline;
use crate::dtype::{DType, Element, Plain};
use std::marker::PhantomData;
use std::ops::Range;

/// The elements of an array in row-major order: where they lie, or gathered into the caller's buffer.
pub struct Reader<'a, T> {
    from: *const u8,
    dense: bool,
    count: usize,
    /// (length, step) of each axis that has more than one element, neighbours merged.
    dims: Inline<(usize, isize)>,
    elements: PhantomData<&'a [T]>,
}

// SAFETY: it only reads, and arrays are not written while they are shared.
unsafe impl<T: Sync> Sync for Reader<'_, T> {}

impl<'a, T: Element> Reader<'a, T> {
    /// Panics when `T` is not the dtype of the array.
    pub fn new(x: &'a Array) -> Self {
        assert!(T::DTYPE == x.dtype(), "read as another dtype");
        Self::bits(x)
    }

    /// The bits of elements of any dtype of this size.
    pub fn bits(x: &'a Array) -> Self {
        assert!(size_of::<T>() == x.dtype().itemsize() && (T::DTYPE != DType::Bool || x.dtype() == DType::Bool));
        let dims = merged(x.shape().iter().copied().zip(x.strides().iter().copied()));
        let from = x.data();
        Self { from, dense: x.is_contiguous(), count: x.numel(), dims, elements: PhantomData }
    }

    /// With this axis as the last one.
    pub fn along(x: &'a Array, axis: usize) -> Self {
        let order = (0..x.rank()).filter(|&at| at != axis).chain([axis]);
        let dims = merged(order.map(|at| (x.shape()[at], x.strides()[at])));
        let dense = x.numel() == 0 || matches!(dims[..], [] | [(_, 1)]);
        Self { dense, dims, ..Self::new(x) }
    }

    /// Of elements that lie together.
    pub fn of(elements: &'a [T]) -> Self {
        let from = elements.as_ptr().cast();
        Self { from, dense: true, count: elements.len(), dims: Inline::empty(), elements: PhantomData }
    }

    /// Elements that a buffer for parts of `len` needs: none where the array is dense.
    pub fn room(&self, len: usize) -> usize {
        if self.dense { 0 } else { len }
    }

    /// Elements that lie together, at least.
    pub fn run(&self) -> usize {
        match self.dims.last() {
            _ if self.dense => self.count,
            Some(&(len, 1)) => len,
            _ => 1,
        }
    }

    /// These elements. The buffer has [`Reader::room`] for them, unless they are a part of one [`Reader::run`]; its own type
    /// does not matter, if it is as wide as `T`.
    #[inline]
    pub fn part<'b, W: Plain>(&self, range: Range<usize>, buffer: &'b mut [W]) -> &'b [T]
    where
        'a: 'b,
    {
        assert!(range.start <= range.end && range.end <= self.count, "part outside the array");
        if self.dense {
            // SAFETY: the array is dense and holds the range.
            return unsafe { std::slice::from_raw_parts(self.from.cast::<T>().add(range.start), range.len()) };
        }
        self.gathered(range, buffer)
    }

    /// Where these elements lie together.
    fn in_one_run(&self, range: &Range<usize>) -> Option<isize> {
        let run = self.run();
        if run == 1 || range.start / run != (range.end - 1) / run {
            return None;
        }
        Some(offset(&self.dims, range.start))
    }

    #[inline(never)]
    fn gathered<'b, W: Plain>(&self, range: Range<usize>, buffer: &'b mut [W]) -> &'b [T]
    where
        'a: 'b,
    {
        let len = range.len();
        if len == 0 {
            return &[];
        }
        if let Some(place) = self.in_one_run(&range) {
            // SAFETY: a part of a run of the array.
            return unsafe { std::slice::from_raw_parts(self.from.cast::<T>().offset(place), len) };
        }
        assert!(size_of::<T>() <= size_of::<W>() && len <= buffer.len(), "buffer too small for a part");
        let to = buffer.as_mut_ptr();
        // SAFETY: the range lies inside the box of the array; the buffer has room, is aligned for the wider type, and
        // every element that is returned has been written.
        unsafe {
            strided::gather(size_of::<T>(), to.cast(), self.from, &self.dims, range.start, len);
            std::slice::from_raw_parts(to.cast(), len)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dtype::F16;
    use crate::ops::samples::{Rng, elements, shape, view_of};

    #[test]
    fn parts_of_any_layout() {
        let mut rng = Rng::new(31);
        for round in 0..600 {
            let size = shape(&mut rng, 4, &[0, 1, 2, 3, 5, 16, 40]);
            if round % 2 == 0 {
                check::<f32>(&mut rng, &size);
            } else {
                check::<F16>(&mut rng, &size);
            }
        }
    }

    fn check<T: Element + PartialEq + std::fmt::Debug>(rng: &mut Rng, size: &[usize]) {
        let dtype = if size_of::<T>() == 4 { DType::F32 } else { DType::F16 };
        let x = view_of(rng, dtype, size, false);
        let expected = elements::<T>(&x);
        let reader = Reader::<T>::new(&x);
        let mut buffer = vec![0f32; reader.room(x.numel())];
        for _ in 0..4 {
            let start = rng.below(x.numel() + 1);
            let end = start + rng.below(x.numel() - start + 1);
            assert_eq!(reader.part(start..end, &mut buffer), &expected[start..end], "{x:?}");
        }
        assert_eq!(x.is_contiguous(), reader.room(1) == 0);
        for axis in 0..x.rank() {
            let order: Vec<usize> = (0..x.rank()).filter(|&at| at != axis).chain([axis]).collect();
            let turned = elements::<T>(&crate::array::view::permute_dims(&x, &order).unwrap());
            let (reader, len) = (Reader::<T>::along(&x, axis), x.shape()[axis]);
            let mut buffer = vec![0f32; reader.room(x.numel())];
            assert_eq!(reader.part(0..x.numel(), &mut buffer), &turned[..], "{x:?} {axis}");
            if len > 1 && x.numel() > 0 && reader.run() >= len {
                assert_eq!(reader.part::<f32>(x.numel() - len..x.numel(), &mut []), &turned[x.numel() - len..]);
            }
        }
    }
}
