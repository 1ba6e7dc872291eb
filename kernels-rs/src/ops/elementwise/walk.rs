//! Walks over operands of any layout, which end in kernel calls over contiguous runs: directly, run by run along the last
//! axis; in tiles, where operands that are strided or narrow (float16, bfloat16) are first gathered and widened into a
//! buffer in the first-level cache; or in bands, where an operand is transposed ([`super::band`]).

use super::run::Run;
use super::{Plan, Source, stream};
use crate::array::Array;
use crate::array::narrow;
use crate::array::shape::{self, Shape, Strides, carry, unravel};
use crate::dtype::DType;
use crate::machine::threads::SharedMut;
use crate::memory::scratch::Stack;

/// Elements per tile.
const TILE: usize = 512;
/// Room for two tiles of the widest element.
type Tiles = Stack<{ 2 * TILE * size_of::<u64>() }>;

/// An operand as the walkers see it.
#[derive(Clone, Copy)]
pub(crate) struct View {
    pub(crate) data: *const u8,
    pub(super) value: u64,
    pub(super) is_value: bool,
    /// Bytes per stored element.
    pub(crate) size: usize,
    /// Widened before the kernel sees it.
    pub(super) narrow: Option<DType>,
    /// In elements, per merged axis.
    pub(crate) strides: Strides,
}

// SAFETY: the pointer is only read, and the arrays behind it outlive the walk.
unsafe impl Sync for View {}

impl View {
    #[inline]
    fn new(plan: &Plan, source: Source<'_>, strides: Strides) -> Self {
        match source {
            Source::Array(array) => {
                let narrow = (!plan.raw && is_narrow(array.dtype())).then_some(array.dtype());
                let size = array.dtype().itemsize();
                Self { data: array.data(), value: 0, is_value: false, size, narrow, strides }
            }
            Source::Value(value) => {
                Self { data: std::ptr::null(), value, is_value: true, size: 0, narrow: None, strides }
            }
        }
    }

    /// Elements as they are stored.
    #[inline]
    pub(crate) fn stored(array: &Array, strides: Strides) -> Self {
        let size = array.dtype().itemsize();
        Self { data: array.data(), value: 0, is_value: false, size, narrow: None, strides }
    }

    #[inline]
    pub(super) fn flat(plan: &Plan, source: Source<'_>) -> Self {
        let step = isize::from(matches!(source, Source::Array(_)));
        Self::new(plan, source, Strides::filled(step, 1))
    }

    pub(super) fn broadcast(plan: &Plan, source: Source<'_>, to: &[usize]) -> Self {
        let strides = match source {
            Source::Array(array) => shape::broadcast_strides(array.shape(), array.strides(), to),
            Source::Value(_) => Strides::filled(0, to.len()),
        };
        Self::new(plan, source, strides)
    }

    /// With its axes in another order.
    pub(crate) fn permuted(mut self, order: &[usize]) -> Self {
        let strides = self.strides;
        order.iter().zip(self.strides.iter_mut()).for_each(|(&axis, step)| *step = strides[axis]);
        self
    }

    #[inline]
    pub(crate) fn last(&self) -> isize {
        self.strides.last().copied().unwrap_or(1)
    }

    /// Address of the element at these coordinates.
    #[inline]
    pub(crate) fn at(&self, index: &[usize]) -> *const u8 {
        if self.is_value {
            return (&raw const self.value).cast();
        }
        let offset: isize = index.iter().zip(self.strides.iter()).map(|(&i, &step)| i as isize * step).sum();
        self.data.wrapping_offset(offset * self.size as isize)
    }
}

#[inline]
pub(super) fn is_narrow(dtype: DType) -> bool {
    matches!(dtype, DType::F16 | DType::BF16)
}

/// Drops axes of length 1 and merges neighbours that every operand steps through alike. At least one axis is left.
pub(crate) fn merge_axes(views: &mut [View], shape: &[usize]) -> Shape {
    let mut dims = Shape::empty();
    for (axis, &len) in shape.iter().enumerate().filter(|&(_, &len)| len != 1) {
        let next = dims.len();
        let spans = |view: &View| view.strides[next - 1] == view.strides[axis] * len as isize;
        let at = if next > 0 && views.iter().all(spans) { next - 1 } else { next };
        if at == next {
            dims.push(len);
        } else {
            dims[at] *= len;
        }
        // Never an axis that is still to be read.
        for view in views.iter_mut() {
            view.strides[at] = view.strides[axis];
        }
    }
    if dims.is_empty() {
        dims.push(1);
        for view in views.iter_mut() {
            view.strides = Strides::filled(1, 1);
        }
    }
    for view in views {
        while view.strides.len() > dims.len() {
            view.strides.pop();
        }
    }
    dims
}

/// Operands and a dense result, whose elements in memory order are the walk over `dims`.
pub(super) struct Walk<'a, const N: usize> {
    pub(super) plan: &'a Plan,
    pub(super) views: &'a [View; N],
    pub(super) dims: &'a [usize],
    pub(super) target: SharedMut<u8>,
}

impl<const N: usize> Walk<'_, N> {
    /// Elements `start .. end`; `direct` where every run can go to the kernel as it lies.
    #[inline]
    pub(super) fn range(&self, direct: bool, start: usize, end: usize) {
        match direct {
            true if self.dims.len() == 1 && stream::pays(self.dims[0] * self.plan.dtype.itemsize()) => {
                self.streamed(start, end);
            }
            true => self.direct(start, end),
            false => self.tiled(start, end),
        }
    }

    /// One run, past the caches.
    fn streamed(&self, start: usize, end: usize) {
        let mut run = Run { src: [std::ptr::null(); 3], unit: [false; 3], dst: self.slot(start), len: end - start };
        for (k, view) in self.views.iter().enumerate() {
            (run.src[k], run.unit[k]) = (view.at(&[start]), view.last() == 1);
        }
        // SAFETY: the run lies inside each operand and is this task's part of the fresh result; results begin on lines,
        // and tasks at multiples of 64 elements.
        unsafe { stream::run(self.plan, run, self.views.each_ref().map(|view| view.size)) };
    }

    #[inline]
    fn slot(&self, at: usize) -> *mut u8 {
        self.target.ptr().wrapping_add(at * self.plan.dtype.itemsize())
    }

    /// A kernel call per run along the last axis.
    #[inline]
    fn direct(&self, start: usize, end: usize) {
        let mut run = Run { src: [std::ptr::null(); 3], unit: [false; 3], dst: std::ptr::null_mut(), len: 0 };
        for (k, view) in self.views.iter().enumerate() {
            run.unit[k] = view.last() == 1;
        }
        let last = self.dims.len() - 1;
        let mut index = unravel(self.dims, start);
        let mut at = start;
        loop {
            for (k, view) in self.views.iter().enumerate() {
                run.src[k] = view.at(&index);
            }
            // Runs up to the end of the axis before the last: from one to the next every operand takes the same step.
            let left = if last > 0 { self.dims[last - 1] - index[last - 1] } else { 1 };
            for _ in 0..left {
                let skipped = index[last];
                run.len = (self.dims[last] - skipped).min(end - at);
                run.dst = self.slot(at);
                // SAFETY: the run lies inside each operand (steps 0 or 1 along the last axis) and inside this task's
                // part of the fresh result.
                unsafe { (self.plan.kernel)(&run) };
                at += run.len;
                if at == end {
                    return;
                }
                index[last] = 0;
                for (k, view) in self.views.iter().enumerate() {
                    let step = if last > 0 { view.strides[last - 1] } else { 0 };
                    let back = if run.unit[k] { skipped as isize } else { 0 };
                    run.src[k] = run.src[k].wrapping_offset((step - back) * view.size as isize);
                }
            }
            if last > 0 {
                index[last - 1] = self.dims[last - 1] - 1;
            }
            carry(&mut index, self.dims);
        }
    }

    /// A kernel call per tile; operands are gathered and widened as needed.
    fn tiled(&self, start: usize, end: usize) {
        let mut gathered = [const { Tiles::new() }; N];
        let mut widened = [const { Tiles::new() }; N];
        let mut narrow_out = Tiles::new();
        let narrowing = (!self.plan.raw && is_narrow(self.plan.dtype)).then_some(self.plan.dtype);
        let mut run = Run { src: [std::ptr::null(); 3], unit: [false; 3], dst: std::ptr::null_mut(), len: 0 };
        let lies = self.lies();
        for (k, lie) in lies.iter().enumerate() {
            if *lie == Lie::Periodic {
                // SAFETY: the walk stays inside the operand; the buffer holds two tiles.
                unsafe { gather(&self.views[k], self.dims, &unravel(self.dims, 0), 2 * TILE, gathered[k].ptr()) };
            }
        }
        let mut at = start;
        while at < end {
            run.len = TILE.min(end - at);
            let index = unravel(self.dims, at);
            for k in 0..N {
                let view = &self.views[k];
                run.unit[k] = lies[k] != Lie::Constant;
                let count = if run.unit[k] { run.len } else { 1 };
                let mut from = match lies[k] {
                    Lie::Constant | Lie::Dense => view.at(&index),
                    Lie::Periodic => gathered[k].ptr().wrapping_add(index[index.len() - 1] * view.size).cast_const(),
                    Lie::Any => {
                        // SAFETY: the walk stays inside the operand; the buffer holds a tile.
                        unsafe { gather(view, self.dims, &index, count, gathered[k].ptr()) };
                        gathered[k].ptr().cast_const()
                    }
                };
                if let Some(dtype) = view.narrow {
                    // SAFETY: `count` stored elements are readable at `from`; the buffer holds a tile of f32.
                    unsafe { narrow::widen(dtype, from.cast(), widened[k].ptr().cast(), count) };
                    from = widened[k].ptr();
                }
                run.src[k] = from;
            }
            run.dst = if narrowing.is_some() { narrow_out.ptr() } else { self.slot(at) };
            // SAFETY: operands and result hold `len` elements of the kernel's types.
            unsafe { (self.plan.kernel)(&run) };
            if let Some(dtype) = narrowing {
                // SAFETY: the kernel wrote `len` f32 values; this task owns that part of the result.
                unsafe { narrow::narrow(dtype, narrow_out.ptr().cast(), self.slot(at).cast(), run.len) };
            }
            at += run.len;
        }
    }

    /// How each operand lies along the walk. At least one is not constant, since kernels need a run.
    fn lies(&self) -> [Lie; N] {
        let mut out = [Lie::Any; N];
        let inner = self.dims[self.dims.len() - 1];
        let dense = shape::contiguous_strides(self.dims);
        for (slot, view) in out.iter_mut().zip(self.views) {
            let outer_fixed = view.strides.iter().rev().skip(1).all(|&step| step == 0);
            *slot = if self.plan.scalars && outer_fixed && view.last() == 0 {
                Lie::Constant
            } else if view.strides.is_empty() || view.strides == dense {
                Lie::Dense
            } else if outer_fixed && inner <= TILE && !view.is_value {
                Lie::Periodic
            } else {
                Lie::Any
            };
        }
        if out.iter().all(|lie| *lie == Lie::Constant)
            && let Some(at) = self.views.iter().position(|view| !view.is_value)
        {
            out[at] = Lie::Any;
        }
        out
    }
}

/// How an operand lies along a walk.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Lie {
    /// One element all along.
    Constant,
    /// The elements in the order of the walk, without gaps.
    Dense,
    /// The same run of the last axis over and over: gathered once.
    Periodic,
    /// Gathered tile by tile.
    Any,
}

/// Copies `count` elements of the walk, from `index` on, into a dense buffer.
///
/// # Safety
/// The walk stays inside the operand, and `to` holds `count` elements.
pub(crate) unsafe fn gather(view: &View, dims: &[usize], index: &[usize], count: usize, to: *mut u8) {
    // SAFETY: the caller promises that the walk stays inside the operand, and room for `count` elements.
    unsafe {
        match view.size {
            1 => gather_sized::<u8>(view, dims, index, count, to.cast()),
            2 => gather_sized::<u16>(view, dims, index, count, to.cast()),
            4 => gather_sized::<u32>(view, dims, index, count, to.cast()),
            _ => gather_sized::<u64>(view, dims, index, count, to.cast()),
        }
    }
}

/// # Safety
/// As for [`gather`].
unsafe fn gather_sized<S: Copy>(view: &View, dims: &[usize], index: &[usize], count: usize, to: *mut S) {
    let mut index = Shape::from_slice(index).expect("the rank of an array");
    let inner = dims[dims.len() - 1];
    let step = view.last();
    let mut done = 0;
    while done < count {
        let len = (inner - index[index.len() - 1]).min(count - done);
        let from = view.at(&index).cast::<S>();
        // SAFETY: the caller promises that the walk stays inside the operand, and room for `count` elements.
        unsafe {
            let out = std::slice::from_raw_parts_mut(to.add(done), len);
            if step == 1 {
                out.copy_from_slice(std::slice::from_raw_parts(from, len));
            } else if step == 0 {
                out.fill(*from);
            } else {
                for (i, slot) in out.iter_mut().enumerate() {
                    *slot = *from.offset(i as isize * step);
                }
            }
        }
        done += len;
        carry(&mut index, dims);
    }
}
