//! Reading at indices: `take`, `take_along_axis`, `nonzero`.

use super::resolve::{Target, Unchecked, resolve};
use super::{check_axis, split};
use crate::array::Array;
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::movement::dense;
use crate::movement::strided::{Axes, Axis, Plan};
use crate::shape::{MAX_RANK, Shape};
use crate::simd::prefetch;
use crate::threads::{self, SharedMut};
use crate::vectorize;

/// Bytes that are worth a task of their own.
const GRAIN: usize = 1 << 16;
/// Slices at scattered places are asked for this many slices before they are read.
const AHEAD: usize = 8;
/// Indices that are checked together.
const TOGETHER: usize = 128;
/// Bytes of a slice that are asked for; the rest follows in order.
const FETCHED: usize = 512;

/// Slices of `x` at `indices` (of any rank) along an axis, which the axes of the indices replace.
pub fn take(x: &Array, indices: &Array, axis: usize) -> Result<Array> {
    check_axis("take", x, axis)?;
    if x.rank() - 1 + indices.rank() > MAX_RANK {
        let text = format!("rank too large: got {}, expected at most {MAX_RANK}", x.rank() - 1 + indices.rank());
        return Err(Error::value("take", text));
    }
    let places = resolve(indices, Target { op: "take", axis, size: x.shape()[axis] })?;
    let mut shape = Shape::empty();
    let lengths = x.shape()[..axis].iter().chain(indices.shape().iter()).chain(&x.shape()[axis + 1..]);
    lengths.for_each(|&len| shape.push(len));
    let out = Array::uninit(x.dtype(), &shape)?;
    // A small operand is cheaper to make dense than to walk in another order.
    let x = if x.numel() <= out.numel() { dense(x)? } else { x.clone() };
    let mut job = Take {
        x: &x,
        axis,
        places: places.values(),
        to: SharedMut::new(out.storage().data()),
        inner: Axes::empty(),
        row: 1,
    };
    for at in axis + 1..x.rank() {
        job.inner.push(Axis { len: x.shape()[at], to: 0, from: x.strides()[at] });
    }
    for axis in job.inner.iter_mut().rev() {
        axis.to = job.row as isize;
        job.row *= axis.len;
    }
    if out.numel() > 0 {
        job.run();
    }
    Ok(out)
}

/// Asks for the first cache lines of a slice; never faults.
#[inline]
fn fetch(from: *const u8, bytes: usize) {
    for at in (0..bytes.min(FETCHED)).step_by(64) {
        prefetch(from.wrapping_add(at));
    }
}

/// Where the slices or lines along an axis begin: the offset of a row-major number in the axes before it.
fn outer_offset(x: &Array, axis: usize, mut number: usize) -> isize {
    let mut at = 0;
    for axis in (0..axis).rev() {
        let len = x.shape()[axis];
        at += (number % len) as isize * x.strides()[axis];
        number /= len;
    }
    at
}

struct Take<'a> {
    x: &'a Array,
    axis: usize,
    places: &'a [i64],
    to: SharedMut<u8>,
    /// Axes of one slice, and its number of elements.
    inner: Axes,
    row: usize,
}

impl Take<'_> {
    fn run(&self) {
        let size = self.x.dtype().itemsize();
        let rows = self.x.shape()[..self.axis].iter().product::<usize>() * self.places.len();
        let together = (GRAIN / (self.row * size)).max(1);
        let slice = Plan::new(size, &self.inner).expect("the result is not empty");
        threads::parallel(rows.div_ceil(together), &|task| {
            let mut row = task * together;
            let end = rows.min(row + together);
            while row < end {
                let (outer, first) = (row / self.places.len(), row % self.places.len());
                let places = &self.places[first..self.places.len().min(first + end - row)];
                // SAFETY: offsets inside the operand; each row of the result belongs to one task.
                unsafe {
                    let from = self.x.data().offset(outer_offset(self.x, self.axis, outer) * size as isize);
                    let to = self.to.ptr().add(row * self.row * size);
                    match (self.row, size) {
                        (1, 1) => self.elements::<u8>(places, to, from),
                        (1, 2) => self.elements::<u16>(places, to, from),
                        (1, 4) => self.elements::<u32>(places, to, from),
                        (1, _) => self.elements::<u64>(places, to, from),
                        _ => self.slices(places, to, from, &slice),
                    }
                }
                row += places.len();
            }
        });
    }

    unsafe fn elements<T: Copy>(&self, places: &[i64], to: *mut u8, from: *const u8) {
        let step = self.x.strides()[self.axis];
        for (k, &place) in places.iter().enumerate() {
            // SAFETY: as in `run`.
            unsafe { to.cast::<T>().add(k).write(*from.cast::<T>().offset(place as isize * step)) };
        }
    }

    unsafe fn slices(&self, places: &[i64], to: *mut u8, from: *const u8, slice: &Plan) {
        let size = self.x.dtype().itemsize();
        let (bytes, step) = (self.row * size, self.x.strides()[self.axis] * size as isize);
        let dense = slice.is_run();
        for (k, &place) in places.iter().enumerate() {
            if dense && let Some(&next) = places.get(k + AHEAD) {
                fetch(from.wrapping_offset(next as isize * step), bytes);
            }
            // SAFETY: as in `run`.
            unsafe {
                let (to, from) = (to.add(k * bytes), from.offset(place as isize * step));
                if dense {
                    from.copy_to_nonoverlapping(to, bytes);
                } else {
                    slice.run_all(to, from);
                }
            }
        }
    }
}

/// One element for each index: `out[.., j, ..] = x[.., indices[.., j, ..], ..]`. The other lengths agree.
pub fn take_along_axis(x: &Array, indices: &Array, axis: usize) -> Result<Array> {
    super::check_along("take_along_axis", x, indices, axis)?;
    let size = x.shape()[axis];
    let places = Unchecked::new(indices, Target { op: "take_along_axis", axis, size })?;
    let out = Array::uninit(x.dtype(), indices.shape())?;
    let (outer, count, inner) = split(indices.shape(), axis);
    // Along the last axis a view is read where it lies: rows may be few in a large operand.
    let x = if inner == 1 { x.clone() } else { dense(x)? };
    let step = if inner == 1 { x.strides()[axis] } else { inner as isize };
    let job = Along { x: &x, axis, places: &places, size, count, inner, step };
    let to = SharedMut::new(out.storage().data());
    let lines = outer * count;
    let together = (GRAIN / (8 * inner).max(1)).max(1);
    if out.numel() > 0 {
        threads::parallel(lines.div_ceil(together), &|task| {
            let (first, end) = (task * together, lines.min((task + 1) * together));
            // SAFETY: each line of the result belongs to one task.
            unsafe {
                match x.dtype().itemsize() {
                    1 => job.lines::<u8>(first, end, to.ptr()),
                    2 => job.lines::<u16>(first, end, to.ptr()),
                    4 => job.lines::<u32>(first, end, to.ptr()),
                    _ => job.lines::<u64>(first, end, to.ptr()),
                }
            }
        });
    }
    places.finish()?;
    Ok(out)
}

vectorize!(all_below(values: &[i64], size: usize) -> bool => all_below_loop);
/// Whether all values are places as they are: neither negative nor too large.
#[inline(always)]
fn all_below_loop(values: &[i64], size: usize) -> bool {
    let mut outside = false;
    for &value in values {
        outside |= value as u64 >= size as u64;
    }
    !outside
}

struct Along<'a> {
    x: &'a Array,
    axis: usize,
    places: &'a Unchecked,
    size: usize,
    count: usize,
    inner: usize,
    step: isize,
}

impl Along<'_> {
    /// Lines of `inner` elements of the result. Those of bad indices are left as they are.
    unsafe fn lines<T: Copy>(&self, first: usize, end: usize, to: *mut u8) {
        let (x, to) = (self.x.data().cast::<T>(), to.cast::<T>());
        let mut line = first;
        while line < end {
            let outer = line / self.count;
            let last = end.min((outer + 1) * self.count);
            let start = if self.inner == 1 {
                outer_offset(self.x, self.axis, outer)
            } else {
                (outer * self.size * self.inner) as isize
            };
            let (check, inner, step) = (self.places.check(), self.inner, self.step);
            let (indices, mut bad) = (&self.places.values()[line * inner..last * inner], false);
            // SAFETY: each place is checked, the other coordinates agree with those of the result.
            unsafe {
                let (to, x) = (to.add(line * inner), x.offset(start));
                if inner == 1 {
                    for (at, indices) in indices.chunks(TOGETHER).enumerate() {
                        let to = to.add(at * TOGETHER);
                        if all_below(indices, self.size) {
                            for (k, &index) in indices.iter().enumerate() {
                                to.add(k).write(*x.offset(index as isize * step));
                            }
                            continue;
                        }
                        for (k, &index) in indices.iter().enumerate() {
                            match check.place(index) {
                                Some(place) => to.add(k).write(*x.offset(place as isize * step)),
                                None => bad = true,
                            }
                        }
                    }
                } else {
                    for (k, indices) in indices.chunks_exact(inner).enumerate() {
                        for (column, &index) in indices.iter().enumerate() {
                            match check.place(index) {
                                Some(place) => {
                                    to.add(k * inner + column).write(*x.offset(place as isize * step).add(column));
                                }
                                None => bad = true,
                            }
                        }
                    }
                }
            }
            self.places.note(bad);
            line = last;
        }
    }
}

/// Positions of `true` in a 1-d mask, rising, as `int64`.
pub fn nonzero(mask: &Array) -> Result<Array> {
    if mask.dtype() != DType::Bool {
        return Err(Error::Rejected("nonzero takes bool"));
    }
    if mask.rank() != 1 {
        return Err(Error::value("nonzero", format!("wrong rank: got {}, expected 1", mask.rank())));
    }
    let mask = dense(mask)?;
    let flags = mask.as_slice::<bool>().expect("dense");
    let parts: Vec<&[bool]> = flags.chunks(GRAIN).collect();
    let mut starts = vec![0usize; parts.len() + 1];
    let shared = SharedMut::new(starts.as_mut_ptr());
    threads::parallel(parts.len(), &|part| {
        let count = parts[part].iter().map(|&flag| flag as usize).sum();
        // SAFETY: one slot for each part.
        unsafe { shared.ptr().add(part + 1).write(count) };
    });
    for part in 0..parts.len() {
        starts[part + 1] += starts[part];
    }
    let mut out = Array::uninit(DType::I64, &[starts[parts.len()]])?;
    let to = SharedMut::new(out.mut_ptr::<i64>());
    threads::parallel(parts.len(), &|part| {
        // SAFETY: each part has its own run of the result.
        let out = unsafe { to.slice(starts[part]..starts[part + 1]) };
        let mut found = 0;
        for (group, flags) in parts[part].chunks(64).enumerate() {
            // Written whether true or not, the next one over it: no branch to guess.
            let (mut here, mut count) = ([0i64; 64], 0);
            for (at, &flag) in flags.iter().enumerate() {
                here[count] = (part * GRAIN + group * 64 + at) as i64;
                count += flag as usize;
            }
            out[found..found + count].copy_from_slice(&here[..count]);
            found += count;
        }
    });
    Ok(out)
}
