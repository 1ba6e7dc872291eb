//! [`Array`]: storage, shape, strides, offset and dtype. Immutable once shared; every view shares the storage.

pub mod axes;
pub mod copy;
pub mod float;
pub mod fold;
pub mod key;
pub mod narrow;
pub mod number;
pub mod reader;
pub mod scalar;
pub mod shape;
pub mod source;
pub mod strided;
mod transpose;
pub mod view;

use crate::array::shape::{Shape, Strides};
use crate::dtype::{DType, Element};
use crate::error::{Error, Result};
use crate::memory::storage::Storage;
use std::sync::Arc;

/// Shape and strides with what follows from them. Shared between arrays, so that an `Array` is four words to move.
struct Geometry {
    shape: Shape,
    strides: Strides,
    numel: usize,
    contiguous: bool,
}

impl Geometry {
    /// Row-major; `numel` is that of the checked shape.
    #[inline]
    fn dense(shape: &[usize], numel: usize) -> Arc<Self> {
        Self::written(shape, numel, true, |strides| {
            let mut step = 1isize;
            for axis in (0..shape.len()).rev() {
                strides[axis] = step;
                step = step.wrapping_mul(shape[axis] as isize);
            }
        })
    }

    /// Any checked steps.
    #[inline]
    fn strided(shape: &[usize], steps: &[isize], numel: usize) -> Arc<Self> {
        let contiguous = shape::is_contiguous(shape, steps);
        Self::written(shape, numel, contiguous, |strides| strides.copy_from_slice(steps))
    }

    /// Written where it stays: moving inline arrays costs as much as a small kernel.
    #[inline]
    fn written(shape: &[usize], numel: usize, contiguous: bool, fill: impl FnOnce(&mut [isize])) -> Arc<Self> {
        let mut fresh = Arc::<Self>::new_uninit();
        let target = Arc::get_mut(&mut fresh).expect("a new Arc is unique").as_mut_ptr();
        // SAFETY: the memory is ours; every field is written before `assume_init`, and read after it is written only.
        unsafe {
            (&raw mut (*target).shape).write(Shape::empty());
            (&raw mut (*target).strides).write(Strides::filled(0, shape.len()));
            for &n in shape {
                (*target).shape.push(n);
            }
            fill(&mut (*target).strides);
            (&raw mut (*target).numel).write(numel);
            (&raw mut (*target).contiguous).write(contiguous);
            fresh.assume_init()
        }
    }
}

/// An n-dimensional array. Cheap to clone: clones share the data.
///
/// What holds for each, since [`Array::uninit`], [`Array::with_geometry`] and [`Array::moved_to`] are the only ways to make one
/// of another shape or place and check it: at most [`shape::MAX_ELEMENTS`] elements, also without the axes of length 0, and all of them lie in the storage.
#[derive(Clone)]
pub struct Array {
    storage: Storage,
    geometry: Arc<Geometry>,
    offset: usize,
    dtype: DType,
}

impl Array {
    /// A fresh row-major array with arbitrary contents: write every element before you hand it out. The bytes are those of an
    /// earlier array or zeros, so any read of numbers is defined; bytes of bools may be other than 0 and 1 and are written only.
    #[inline]
    pub(crate) fn uninit(dtype: DType, shape: &[usize]) -> Result<Self> {
        shape::check_rank(shape.len())?;
        let count = shape::checked_numel(shape)?;
        let storage = Storage::uninit(count * dtype.itemsize())?;
        Ok(Self { storage, geometry: Geometry::dense(shape, count), offset: 0, dtype })
    }

    /// [`Array::uninit`] with the shape of `self`.
    #[inline]
    pub(crate) fn uninit_like(&self, dtype: DType) -> Result<Self> {
        if !self.geometry.contiguous || dtype.itemsize() > self.dtype.itemsize() {
            return Self::uninit(dtype, &self.geometry.shape);
        }
        // No larger than `self`, so the byte count does not overflow.
        let storage = Storage::uninit(self.geometry.numel * dtype.itemsize())?;
        Ok(Self { storage, geometry: self.geometry.clone(), offset: 0, dtype })
    }

    /// True when both have the same shape.
    #[inline]
    pub fn same_shape(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.geometry, &other.geometry) || self.geometry.shape == other.geometry.shape
    }

    /// A fresh row-major array of zeros (false for bool).
    pub fn zeros(dtype: DType, shape: &[usize]) -> Result<Self> {
        let out = Self::uninit(dtype, shape)?;
        // SAFETY: the storage is fresh, so unique, and holds that many bytes. All-zero bytes are a valid element.
        unsafe { out.storage.data().write_bytes(0, out.numel() * dtype.itemsize()) };
        Ok(out)
    }

    /// A fresh row-major array holding these values.
    pub fn from_slice<T: Element>(values: &[T], shape: &[usize]) -> Result<Self> {
        if shape::checked_numel(shape)? != values.len() {
            return Err(Error::value("array", format!("wrong count: got {}, expected {shape:?}", values.len())));
        }
        let mut out = Self::uninit(T::DTYPE, shape)?;
        out.as_mut_slice::<T>().copy_from_slice(values);
        Ok(out)
    }

    /// Element type.
    #[inline]
    pub fn dtype(&self) -> DType {
        self.dtype
    }

    /// Lengths of the axes.
    #[inline]
    pub fn shape(&self) -> &Shape {
        &self.geometry.shape
    }

    /// Steps along the axes, in elements.
    #[inline]
    pub fn strides(&self) -> &Strides {
        &self.geometry.strides
    }

    /// Number of axes.
    #[inline]
    pub fn rank(&self) -> usize {
        self.geometry.shape.len()
    }

    /// Number of elements.
    #[inline]
    pub fn numel(&self) -> usize {
        self.geometry.numel
    }

    /// The shared storage.
    #[inline]
    pub fn storage(&self) -> &Storage {
        &self.storage
    }

    /// True when the elements lie in row-major order without gaps.
    #[inline]
    pub fn is_contiguous(&self) -> bool {
        self.geometry.contiguous
    }

    /// Address of element (0, 0, ...), untyped.
    #[inline]
    pub fn data(&self) -> *const u8 {
        // SAFETY: the offset of a view lies inside its storage.
        unsafe { self.storage.data().add(self.offset * self.dtype.itemsize()) }
    }

    /// Address of element (0, 0, ...). Panics when `T` is not the dtype.
    #[inline]
    pub fn ptr<T: Element>(&self) -> *const T {
        assert!(T::DTYPE == self.dtype, "typed view of another dtype");
        self.data().cast()
    }

    /// The elements in row-major order, when they lie so. Panics when `T` is not the dtype.
    #[inline]
    pub fn as_slice<T: Element>(&self) -> Option<&[T]> {
        let data = self.ptr::<T>();
        // SAFETY: contiguous, in bounds, and never written while shared.
        self.is_contiguous().then(|| unsafe { std::slice::from_raw_parts(data, self.numel()) })
    }

    /// The elements of a fresh array, for writing. Panics when the array is shared, a view with gaps, or of another
    /// dtype. The contents of an array from [`Array::uninit`] are arbitrary: write before you read.
    #[inline]
    pub fn as_mut_slice<T: Element>(&mut self) -> &mut [T] {
        let count = self.numel();
        let data = self.mut_ptr::<T>();
        // SAFETY: `mut_ptr` checked that this is the only handle and that the data is contiguous.
        unsafe { std::slice::from_raw_parts_mut(data, count) }
    }

    /// Address for writing into a fresh array; the panics of [`Array::as_mut_slice`].
    #[inline]
    pub fn mut_ptr<T: Element>(&mut self) -> *mut T {
        assert!(self.storage.claim() && self.is_contiguous(), "written array is shared");
        self.ptr::<T>().cast_mut()
    }

    /// A view of the same storage with another geometry, or an error where that is too large or leaves the storage.
    #[inline]
    pub fn with_geometry(&self, shape: &[usize], strides: &[isize], offset: usize) -> Result<Self> {
        shape::check_rank(shape.len())?;
        let numel = shape::checked_numel(shape)?;
        self.check_inside(shape, strides, numel, offset)?;
        let geometry = Geometry::strided(shape, strides, numel);
        Ok(Self { storage: self.storage.clone(), geometry, offset, dtype: self.dtype })
    }

    /// A view of the same geometry that begins elsewhere in the storage, or an error where it leaves the storage.
    #[inline]
    pub fn moved_to(&self, offset: usize) -> Result<Self> {
        self.check_inside(self.shape(), self.strides(), self.numel(), offset)?;
        Ok(Self { offset, ..self.clone() })
    }

    /// An error where elements lie outside the storage.
    #[inline]
    fn check_inside(&self, shape: &[usize], strides: &[isize], numel: usize, offset: usize) -> Result<()> {
        let room = self.storage.capacity() / self.dtype.itemsize();
        let inside = match reach(shape, strides, offset) {
            _ if numel == 0 => offset <= room,
            Some((first, last)) => first >= 0 && last < room as isize,
            None => false,
        };
        if !inside || shape.len() != strides.len() {
            return Err(Error::value("view", format!("outside the storage: got {shape:?} with steps {strides:?}")));
        }
        Ok(())
    }

    /// Offset of element (0, 0, ...) from the start of the storage, in elements.
    #[inline]
    pub fn offset(&self) -> usize {
        self.offset
    }
}

/// The places of the first and the last element in memory, where they do not overflow. No length is 0.
#[inline]
fn reach(shape: &[usize], strides: &[isize], offset: usize) -> Option<(isize, isize)> {
    let start = isize::try_from(offset).ok()?;
    let (mut first, mut last) = (start, start);
    for (&n, &step) in shape.iter().zip(strides) {
        let way = step.checked_mul(n.checked_sub(1)? as isize)?;
        let end = if way < 0 { &mut first } else { &mut last };
        *end = end.checked_add(way)?;
    }
    Some((first, last))
}

impl std::fmt::Debug for Array {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Array({}, {:?}, strides {:?})", self.dtype.name(), self.shape(), self.strides())
    }
}

#[cfg(test)]
mod tests;
