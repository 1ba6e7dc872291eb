//! The walk for an operand whose last axis takes large steps while another one takes small ones: in bands of a few rows, so
//! that every cache line of it is read once, and transposed into a buffer from which the kernel reads runs.

use super::Plan;
use super::run::Run;
use super::walk::{View, is_narrow};
use crate::array::axes::offset;
use crate::array::narrow;
use crate::array::shape::{Inline, contiguous_strides};
use crate::array::strided::{Axis, copy_serial};
use crate::machine::threads::{self, SharedMut};
use crate::memory::scratch::{Stack, with_scratch};

/// Rows of a band: four cache lines of `f32`, since memory is slow to jump from line to line.
const ROWS: usize = 64;
/// Columns of a block, which stays in the second-level cache; long runs for the other operands.
const COLUMNS: usize = 1024;
/// From row to row of a block: not a power of two, which would push its rows out of the first-level cache.
const PITCH: usize = COLUMNS + 16;
/// Axes shorter than this are not worth a band.
const SHORT: usize = 8;

/// The axis along which some operand lies closer than along the last one.
pub(super) fn axis(views: &[View], dims: &[usize]) -> Option<usize> {
    let last = dims.len() - 1;
    if dims[last] < SHORT {
        return None;
    }
    views.iter().filter(|view| !view.is_value && view.last().unsigned_abs() > 1).find_map(|view| {
        let steps = |&axis: &usize| view.strides[axis].unsigned_abs();
        let near = (0..last).filter(|axis| steps(axis) > 0 && dims[*axis] >= SHORT).min_by_key(steps)?;
        (steps(&near) < view.last().unsigned_abs()).then_some(near)
    })
}

/// See the head of the file.
pub(super) struct Band<'a, const N: usize> {
    pub(super) plan: &'a Plan,
    pub(super) views: &'a [View; N],
    pub(super) dims: &'a [usize],
    /// The axis of the rows.
    pub(super) axis: usize,
    /// The dense result.
    pub(super) target: SharedMut<u8>,
}

/// A run of `f32`.
type Wide = Stack<{ COLUMNS * size_of::<f32>() }>;

impl<const N: usize> Band<'_, N> {
    /// Everything, on several threads.
    pub(super) fn run(&self, grain: usize) {
        let last = self.dims.len() - 1;
        let dense = contiguous_strides(self.dims);
        // From band to band: bytes of the operands; elements of the result, and rows.
        let (mut from, mut to) = (Inline::<(usize, [isize; 3])>::empty(), Inline::<(usize, [isize; 3])>::empty());
        for (axis, &len) in self.dims[..last].iter().enumerate() {
            let (len, by) = if axis == self.axis { (len.div_ceil(ROWS), ROWS as isize) } else { (len, 1) };
            let mut steps = [0; 3];
            self.views.iter().zip(&mut steps).for_each(|(view, step)| *step = by * view.bytes(axis));
            from.push((len, steps));
            to.push((len, [by * dense[axis], by * isize::from(axis == self.axis), 0]));
        }
        let bands: usize = from.iter().map(|axis| axis.0).product();
        let together = (grain / (ROWS * self.dims[last])).max(1);
        threads::parallel(bands.div_ceil(together), &|task| {
            with_scratch(N * ROWS * PITCH, |blocks: &mut [f64]| {
                for band in task * together..bands.min((task + 1) * together) {
                    let [to, row, _] = offset(&to, band);
                    self.band(offset(&from, band), to, row as usize, blocks);
                }
            });
        });
    }

    /// One band, from this row on, with its bytes in the operands and elements in the result; `blocks` holds a block of the
    /// widest elements for each operand.
    fn band(&self, from: [isize; 3], to: isize, row: usize, blocks: &mut [f64]) {
        let last = self.dims.len() - 1;
        let pitch = contiguous_strides(self.dims)[self.axis];
        let rows = ROWS.min(self.dims[self.axis] - row);
        for column in (0..self.dims[last]).step_by(COLUMNS) {
            let len = COLUMNS.min(self.dims[last] - column);
            let mut run = Run { src: [std::ptr::null(); 3], unit: [false; 3], dst: std::ptr::null_mut(), len };
            let mut down = [0; N];
            for (k, view) in self.views.iter().enumerate() {
                let constant = self.plan.scalars && view.last() == 0;
                let at = view.start().wrapping_offset(from[k] + column as isize * view.bytes(last));
                run.unit[k] = !constant;
                (run.src[k], down[k]) = if constant || (view.last() == 1 && !view.is_value) {
                    let step = if view.is_value { 0 } else { view.strides[self.axis] };
                    (at, step)
                } else {
                    let buffer = blocks[k * ROWS * PITCH..].as_mut_ptr().cast::<u8>();
                    let from = [view.strides[self.axis], view.strides[last]];
                    let axes =
                        [Axis { len: rows, to: PITCH as isize, from: from[0] }, Axis { len, to: 1, from: from[1] }];
                    // SAFETY: a block of the operand; the buffer holds as many of the widest elements.
                    unsafe { copy_serial(view.size, buffer, at, &axes) };
                    (buffer.cast_const(), PITCH as isize)
                };
            }
            for row in 0..rows as isize {
                self.row(&run, &down, row, (to + column as isize + row * pitch) as usize);
            }
        }
    }

    /// One kernel call.
    fn row(&self, block: &Run, down: &[isize; N], row: isize, to: usize) {
        let mut widened = [const { Wide::new() }; N];
        let mut narrowed = Wide::new();
        let mut run = Run { ..*block };
        for (k, view) in self.views.iter().enumerate() {
            run.src[k] = block.src[k].wrapping_offset(row * down[k] * view.size as isize);
            if let Some(dtype) = view.narrow {
                let to: *mut f32 = widened[k].ptr().cast();
                let count = if run.unit[k] { run.len } else { 1 };
                // SAFETY: `count` stored elements are readable there; the buffer holds a run.
                unsafe { narrow::widen(dtype, run.src[k].cast(), to, count) };
                run.src[k] = to.cast_const().cast();
            }
        }
        let slot = self.target.ptr().wrapping_add(to * self.plan.dtype.itemsize());
        let narrow = !self.plan.raw && is_narrow(self.plan.dtype);
        run.dst = if narrow { narrowed.ptr() } else { slot };
        // SAFETY: operands and result hold `len` elements of the kernel's types; each row belongs to one task.
        unsafe {
            (self.plan.kernel)(&run);
            if narrow {
                narrow::narrow(self.plan.dtype, narrowed.ptr().cast(), slot.cast(), run.len);
            }
        }
    }
}
