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
