//! Reading at indices: `take`, `take_along_axis`.

use super::check_axis;
use super::resolve::{Check, Converted, Indices, Target};
use crate::array::Array;
use crate::array::axes::{merged, offset};
use crate::array::copy::dense_copy;
use crate::array::shape::{Inline, MAX_RANK, Shape, around};
use crate::array::strided::{Axes, Axis, Plan};
use crate::array::view;
use crate::error::{Error, Result};
use crate::machine::simd::prefetch;
use crate::machine::threads::{self, SharedMut};
use std::ops::Range;

/// Bytes that are worth a task of their own.
const GRAIN: usize = 1 << 16;
/// Slices at scattered places are asked for this many slices before they are read.
const AHEAD: usize = 8;
/// Indices that are checked together.
const TOGETHER: usize = 128;
/// Bytes of a slice that are asked for; the rest follows in order.
const FETCHED: usize = 512;
/// Bytes of a slice that are made dense at a time.
const PANEL: usize = 32;
/// Bytes of an operand that is made dense first: a part of the second-level cache.
const SMALL: usize = 1 << 18;

/// Slices of `x` at `indices` (of any rank) along an axis, which the axes of the indices replace.
pub fn take(x: &Array, indices: &Array, axis: usize) -> Result<Array> {
    check_axis("take", x, axis)?;
    if x.rank() - 1 + indices.rank() > MAX_RANK {
        let text = format!("rank too large: got {}, expected at most {MAX_RANK}", x.rank() - 1 + indices.rank());
        return Err(Error::value("take", text));
    }
    let places = Indices::new(indices, Target { op: "take", axis, size: x.shape()[axis] })?;
    let mut shape = Shape::empty();
    let lengths = x.shape()[..axis].iter().chain(indices.shape().iter()).chain(&x.shape()[axis + 1..]);
    lengths.for_each(|&len| shape.push(len));
    let out = Array::uninit(x.dtype(), &shape)?;
    // A small operand is cheaper to make dense than to walk in another order.
    let small = x.numel() <= out.numel().min(SMALL / x.dtype().itemsize());
    let x = if small { x.contiguous()? } else { x.clone() };
    let to = SharedMut::new(out.storage().data());
    if out.numel() == 0 {
        places.check_all();
    } else if let Some(width) = panel(&x, &out, axis) {
        let (mut start, mut part) = (Shape::filled(0, x.rank()), *x.shape());
        let (last, row) = (x.rank() - 1, x.shape()[axis + 1]);
        for first in (0..row).step_by(width) {
            (start[last], part[last]) = (first, width.min(row - first));
            let dense = dense_copy(&view::slice(&x, &start, &part, &[1; MAX_RANK][..x.rank()])?)?;
            let to = SharedMut::new(to.ptr().wrapping_add(first * x.dtype().itemsize()));
            Take { pitch: row, ..Take::new(&dense, axis, &places, to) }.run();
        }
    } else {
        Take::new(&x, axis, &places, to).run();
    }
    places.finish()?;
    Ok(out)
}

/// Columns that are made dense at a time, where slices have one axis along which they jump from one cache line to
/// another: a small part of them.
fn panel(x: &Array, out: &Array, axis: usize) -> Option<usize> {
    let (width, size) = (PANEL / x.dtype().itemsize(), x.dtype().itemsize());
    let jumps = axis + 2 == x.rank() && x.strides()[axis + 1].unsigned_abs() * size >= 64;
    (jumps && x.numel() <= out.numel() && x.shape()[axis + 1] >= 8 * width).then_some(width)
}

/// Asks for the first cache lines of a slice; never faults.
#[inline]
fn fetch(from: *const u8, bytes: usize) {
    for at in (0..bytes.min(FETCHED)).step_by(64) {
        prefetch(from.wrapping_add(at));
    }
}

/// The axes before this one: where the slices or lines along it begin.
fn before(x: &Array, axis: usize) -> Inline<(usize, isize)> {
    merged(x.shape()[..axis].iter().copied().zip(x.strides().iter().copied()))
}

struct Take<'a> {
    x: &'a Array,
    axis: usize,
    before: Inline<(usize, isize)>,
    places: &'a Indices,
    to: SharedMut<u8>,
    /// Axes of one slice, and its number of elements.
    inner: Axes,
    row: usize,
    /// From one slice of the result to the next.
    pitch: usize,
}

impl<'a> Take<'a> {
    fn new(x: &'a Array, axis: usize, places: &'a Indices, to: SharedMut<u8>) -> Self {
        let (mut inner, mut row) = (Axes::empty(), 1);
        for at in axis + 1..x.rank() {
            inner.push(Axis { len: x.shape()[at], to: 0, from: x.strides()[at] });
        }
        for axis in inner.iter_mut().rev() {
            axis.to = row as isize;
            row *= axis.len;
        }
        Self { x, axis, before: before(x, axis), places, to, inner, row, pitch: row }
    }

    fn run(&self) {
        let size = self.x.dtype().itemsize();
        let rows = self.x.shape()[..self.axis].iter().product::<usize>() * self.places.len();
        let together = (GRAIN / (self.row * size)).max(1);
        let slice = Plan::new(size, &self.inner).expect("the result is not empty");
        threads::parallel(rows.div_ceil(together), &|task| {
            let (mut row, mut room) = (task * together, Converted::default());
            let end = rows.min(row + together);
            while row < end {
                let (outer, first) = (row / self.places.len(), row % self.places.len());
                let count = (self.places.len() - first).min(end - row).min(self.places.part_len());
                let indices = self.places.part(first..first + count, &mut room);
                // SAFETY: offsets inside the operand; each row of the result belongs to one task.
                let bad = unsafe {
                    let from = self.x.data().offset(offset(&self.before, outer) * size as isize);
                    let to = self.to.ptr().add(row * self.pitch * size);
                    match (self.row, size) {
                        (1, 1) => self.elements::<u8>(indices, to, from),
                        (1, 2) => self.elements::<u16>(indices, to, from),
                        (1, 4) => self.elements::<u32>(indices, to, from),
                        (1, _) => self.elements::<u64>(indices, to, from),
                        _ => self.slices(indices, to, from, &slice),
                    }
                };
                self.places.note(bad);
                row += count;
            }
        });
    }

    unsafe fn elements<T: Copy>(&self, indices: &[i64], to: *mut u8, from: *const u8) -> bool {
        // SAFETY: the caller gives room for an element of each index; `pick` reads places on the axis alone.
        pick(indices, self.places.check(), to.cast::<T>(), from.cast(), self.x.strides()[self.axis])
    }

    unsafe fn slices(&self, indices: &[i64], to: *mut u8, from: *const u8, slice: &Plan) -> bool {
        let size = self.x.dtype().itemsize();
        let (bytes, step) = (self.row * size, self.x.strides()[self.axis] * size as isize);
        let (dense, check, mut bad) = (slice.is_run(), self.places.check(), false);
        for (k, &index) in indices.iter().enumerate() {
            if dense && let Some(&next) = indices.get(k + AHEAD) {
                fetch(from.wrapping_offset(check.place(next).unwrap_or(0) as isize * step), bytes);
            }
            let Some(place) = check.place(index) else {
                bad = true;
                continue;
            };
            // SAFETY: the caller gives room for a slice of each index; the place is on the axis.
            let (to, from) = (to.add(k * self.pitch * size), from.offset(place as isize * step));
            if dense {
                from.copy_to_nonoverlapping(to, bytes);
            } else {
                slice.run_all(to, from);
            }
        }
        bad
    }
}

/// Writes the elements at these indices one after the other, but for those out of range; whether there were such.
///
/// # Safety
/// The places lie in bounds, `step` apart, and there is room for the elements.
#[inline(always)]
unsafe fn pick<T: Copy>(indices: &[i64], check: Check, to: *mut T, from: *const T, step: isize) -> bool {
    let mut bad = false;
    for (at, indices) in indices.chunks(TOGETHER).enumerate() {
        let to = to.wrapping_add(at * TOGETHER);
        // SAFETY: each place is checked.
        if check.all_places(indices) {
            for (k, &index) in indices.iter().enumerate() {
                to.add(k).write(*from.offset(index as isize * step));
            }
            continue;
        }
        for (k, &index) in indices.iter().enumerate() {
            match check.place(index) {
                Some(place) => to.add(k).write(*from.offset(place as isize * step)),
                None => bad = true,
            }
        }
    }
    bad
}

/// One element for each index: `out[.., j, ..] = x[.., indices[.., j, ..], ..]`. The other lengths agree.
pub fn take_along_axis(x: &Array, indices: &Array, axis: usize) -> Result<Array> {
    super::check_along("take_along_axis", x, indices, axis)?;
    let places = Indices::new(indices, Target { op: "take_along_axis", axis, size: x.shape()[axis] })?;
    let out = Array::uninit(x.dtype(), indices.shape())?;
    let (_, count, inner) = around("take_along_axis", indices.shape(), axis)?;
    let mut middle = merged((axis + 1..x.rank()).map(|at| (x.shape()[at], x.strides()[at])));
    let line = middle.pop().unwrap_or((1, 0));
    let job = Along { x, axis, before: before(x, axis), places: &places, count, inner, middle, line };
    let to = SharedMut::new(out.storage().data());
    let together = places.part_len().max(GRAIN / 8);
    threads::parallel(out.numel().div_ceil(together), &|task| {
        let range = task * together..out.numel().min((task + 1) * together);
        // SAFETY: each part of the result belongs to one task.
        unsafe {
            match x.dtype().itemsize() {
                1 => job.fill::<u8>(range, to.ptr()),
                2 => job.fill::<u16>(range, to.ptr()),
                4 => job.fill::<u32>(range, to.ptr()),
                _ => job.fill::<u64>(range, to.ptr()),
            }
        }
    });
    places.finish()?;
    Ok(out)
}

struct Along<'a> {
    x: &'a Array,
    axis: usize,
    before: Inline<(usize, isize)>,
    places: &'a Indices,
    /// Indices along the axis, and elements of the result for each of them.
    count: usize,
    inner: usize,
    /// The axes after the indexed one but for the last, neighbours merged.
    middle: Inline<(usize, isize)>,
    /// Length and step of the last one.
    line: (usize, isize),
}

impl Along<'_> {
    /// Elements of the result in row-major order. Those of bad indices are left as they are.
    unsafe fn fill<T: Copy>(&self, range: Range<usize>, to: *mut u8) {
        let (mut room, mut bad) = (Converted::default(), false);
        let part = self.places.part_len();
        for first in range.clone().step_by(part) {
            let end = range.end.min(first + part);
            let indices = self.places.part(first..end, &mut room);
            bad |= self.some(first, indices, to.cast::<T>().wrapping_add(first));
        }
        self.places.note(bad);
    }

    /// The elements from number `first` on; whether indices were bad.
    #[inline(always)]
    unsafe fn some<T: Copy>(&self, first: usize, indices: &[i64], to: *mut T) -> bool {
        let (x, step, check) = (self.x.data().cast::<T>(), self.x.strides()[self.axis], self.places.check());
        let (mut at, mut bad) = (0, false);
        let (mut outer, rest) = (first / (self.count * self.inner), first % (self.count * self.inner));
        let (mut index, mut inside) = (rest / self.inner, rest % self.inner);
        let mut start = x.wrapping_offset(offset(&self.before, outer));
        while at < indices.len() {
            if self.inner == 1 {
                let run = (self.count - index).min(indices.len() - at);
                // SAFETY: each place is checked, the other coordinates agree with those of the result.
                bad |= pick(&indices[at..at + run], check, to.add(at), start, step);
                (at, index) = (at + run, index + run);
            } else {
                let (line, column) =
                    if self.middle.is_empty() { (0, inside) } else { (inside / self.line.0, inside % self.line.0) };
                let run = (self.line.0 - column).min(indices.len() - at);
                let from = start.wrapping_offset(offset(&self.middle, line));
                for (k, &value) in indices[at..at + run].iter().enumerate() {
                    match check.place(value) {
                        Some(place) => {
                            let from = from.offset(place as isize * step + (column + k) as isize * self.line.1);
                            to.add(at + k).write(*from);
                        }
                        None => bad = true,
                    }
                }
                (at, inside) = (at + run, inside + run);
                if inside == self.inner {
                    (inside, index) = (0, index + 1);
                }
            }
            if index == self.count {
                (index, outer) = (0, outer + 1);
                start = x.wrapping_offset(offset(&self.before, outer));
            }
        }
        bad
    }
}
