//! Walks over operands of any layout, which end in kernel calls over contiguous runs: directly, run by run along the last
//! axis; in tiles, where operands that are strided or narrow (float16, bfloat16) are first gathered and widened into a
//! buffer in the first-level cache; or in bands, where an operand is transposed ([`super::band`]).

use super::run::Run;
use super::{Input, Plan, stream};
#[cfg(any(target_arch = "x86_64", test))]
use crate::array::Array;
use crate::array::axes::{Axis, Steps, merged};
use crate::array::narrow;
use crate::array::shape::{self, Inline, Shape, Strides};
use crate::array::source::{Held, Operand, Source, Strided, Widened};
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
    fn new(plan: &Plan, source: Input<'_>, strides: Strides) -> Self {
        match source {
            Input::Array(array) => {
                let narrow = (!plan.raw && is_narrow(array.dtype())).then_some(array.dtype());
                let size = array.dtype().itemsize();
                Self { data: array.data(), value: 0, is_value: false, size, narrow, strides }
            }
            Input::Value(value) => {
                Self { data: std::ptr::null(), value, is_value: true, size: 0, narrow: None, strides }
            }
        }
    }

    /// Elements as they are stored.
    #[cfg(target_arch = "x86_64")]
    #[inline]
    pub(crate) fn stored(array: &Array, strides: Strides) -> Self {
        let size = array.dtype().itemsize();
        Self { data: array.data(), value: 0, is_value: false, size, narrow: None, strides }
    }

    #[inline]
    pub(super) fn flat(plan: &Plan, source: Input<'_>) -> Self {
        let step = isize::from(matches!(source, Input::Array(_)));
        Self::new(plan, source, Strides::filled(step, 1))
    }

    pub(super) fn broadcast(plan: &Plan, source: Input<'_>, to: &[usize]) -> Self {
        let strides = match source {
            Input::Array(array) => shape::broadcast_strides(array.shape(), array.strides(), to),
            Input::Value(_) => Strides::filled(0, to.len()),
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

    /// Address of the element at 0.
    #[inline]
    pub(crate) fn start(&self) -> *const u8 {
        if self.is_value { (&raw const self.value).cast() } else { self.data }
    }

    /// Bytes from one element to the next along an axis.
    #[inline]
    pub(super) fn bytes(&self, axis: usize) -> isize {
        self.strides[axis] * self.size as isize
    }

    /// The operand as it is stored, over these axes.
    pub(crate) fn lying(&self, dims: &[usize]) -> Strided {
        let size = if self.is_value { size_of::<u64>() } else { self.size };
        Strided::new(self.start(), size, dims.iter().copied().zip(self.strides.iter().copied()))
    }
}

#[inline]
pub(super) fn is_narrow(dtype: DType) -> bool {
    matches!(dtype, DType::F16 | DType::BF16)
}

/// An axis of operands that hold their steps apart.
#[derive(Clone, Copy)]
struct Apart<'a> {
    len: usize,
    /// Which it is.
    at: usize,
    views: &'a [View],
}

impl Axis for Apart<'_> {
    fn len(&self) -> usize {
        self.len
    }
    fn with_len(self, len: usize) -> Self {
        Self { len, ..self }
    }
    fn spans(&self, inner: &Self) -> bool {
        self.views.iter().all(|view| view.strides[self.at] == view.strides[inner.at] * inner.len as isize)
    }
}

/// Drops axes of length 1 and merges neighbours that every operand steps through alike. At least one axis is left.
pub(crate) fn merge_axes(views: &mut [View], shape: &[usize]) -> Shape {
    let (mut dims, mut kept) = (Shape::empty(), Shape::empty());
    for axis in merged(shape.iter().enumerate().map(|(at, &len)| Apart { len, at, views })).iter() {
        dims.push(axis.len);
        kept.push(axis.at);
    }
    for view in views {
        let mut strides = if kept.is_empty() { Strides::filled(1, 1) } else { Strides::empty() };
        kept.iter().for_each(|&at| strides.push(view.strides[at]));
        view.strides = strides;
    }
    if dims.is_empty() {
        dims.push(1);
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
            (run.src[k], run.unit[k]) =
                (view.start().wrapping_offset(start as isize * view.bytes(0)), view.last() == 1);
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
        let (last, mut outer) = (self.dims.len() - 1, Inline::<(usize, [isize; 3])>::empty());
        for (axis, &len) in self.dims[..last].iter().enumerate() {
            let mut steps = [0; 3];
            self.views.iter().zip(&mut steps).for_each(|(view, step)| *step = view.bytes(axis));
            outer.push((len, steps));
        }
        let mut run = Run { src: [std::ptr::null(); 3], unit: [false; 3], dst: std::ptr::null_mut(), len: 0 };
        for (k, view) in self.views.iter().enumerate() {
            run.unit[k] = view.last() == 1;
        }
        let (mut steps, mut first) = (Steps::new(&outer, start / self.dims[last]), start % self.dims[last]);
        let mut at = start;
        while at < end {
            for (k, view) in self.views.iter().enumerate() {
                run.src[k] = view.start().wrapping_offset(steps.at()[k] + first as isize * view.bytes(last));
            }
            run.len = (self.dims[last] - first).min(end - at);
            run.dst = self.slot(at);
            // SAFETY: the run lies inside each operand (steps 0 or 1 along the last axis) and inside this task's part of
            // the fresh result.
            unsafe { (self.plan.kernel)(&run) };
            (at, first) = (at + run.len, 0);
            steps.step();
        }
    }

    /// A kernel call per tile; operands are gathered and widened as needed.
    fn tiled(&self, start: usize, end: usize) {
        let lying = self.views.each_ref().map(|view| view.lying(self.dims));
        let mut held = [const { Tiles::new() }; N];
        let mut operands = std::array::from_fn(|k| {
            let held = self.held(&lying[k], &mut held[k]);
            Widened { source: Operand { lying: &lying[k], held }, narrow: self.views[k].narrow }
        });
        // At least one has to move, since kernels need a run.
        if operands.iter().all(Source::is_one)
            && let Some(at) = self.views.iter().position(|view| !view.is_value)
        {
            operands[at].source.held = Held::No;
        }
        self.tiles(&operands, start, end);
    }

    /// What is held of an operand: one element, where the kernel takes it so, or a short run that comes over and over.
    fn held(&self, lying: &Strided, room: &mut Tiles) -> Held {
        match (lying.is_constant(), lying.cycle()) {
            (true, _) if self.plan.scalars => Held::One,
            // SAFETY: the room is that of two tiles, and lives as long as the walk.
            (_, Some(len)) if len <= TILE => unsafe { lying.hold_cycle(len, TILE, room.bytes()) },
            _ => Held::No,
        }
    }

    /// A kernel call per tile of any sources of the elements that the kernel reads.
    fn tiles<S: Source>(&self, sources: &[S; N], start: usize, end: usize) {
        let mut rooms = [const { Tiles::new() }; N];
        let mut narrow_out = Tiles::new();
        let narrowing = (!self.plan.raw && is_narrow(self.plan.dtype)).then_some(self.plan.dtype);
        let mut run = Run { src: [std::ptr::null(); 3], unit: [false; 3], dst: std::ptr::null_mut(), len: 0 };
        for (unit, source) in run.unit.iter_mut().zip(sources) {
            *unit = !source.is_one();
        }
        let mut at = start;
        while at < end {
            run.len = TILE.min(end - at);
            for k in 0..N {
                // SAFETY: a part of the walk; the room holds two tiles of the widest elements.
                run.src[k] = unsafe { sources[k].part(at..at + run.len, rooms[k].bytes()) };
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
}

#[cfg(test)]
mod tests;
