//! Copies between strided boxes, by element size alone: every data movement ends here.

use super::transpose::{Tile, transpose};
use crate::shape::{Inline, MAX_RANK};
use crate::threads::{self, SharedMut};

/// Bytes that are worth a task of their own.
const GRAIN: usize = 1 << 17;

/// One axis of a copy; steps in elements, of either sign, 0 allowed on the source side.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Axis {
    /// Length.
    pub len: usize,
    /// Step of the destination.
    pub to: isize,
    /// Step of the source.
    pub from: isize,
}

/// The axes of a copy.
pub type Axes = Inline<Axis>;

/// Axes for a copy of `shape` with these steps. The three have one length.
pub fn axes(shape: &[usize], to: &[isize], from: &[isize]) -> Axes {
    let mut out = Axes::empty();
    for ((&len, &to), &from) in shape.iter().zip(to).zip(from) {
        out.push(Axis { len, to, from });
    }
    out
}

/// Copies a box on this thread.
///
/// # Safety
/// All addresses reached lie in bounds; the destination does not overlap the source, and no element of it is reached
/// twice. `size` is the element size: 1, 2, 4 or 8.
pub unsafe fn copy_serial(size: usize, to: *mut u8, from: *const u8, axes: &[Axis]) {
    let Some(axes) = simplify(axes) else { return };
    // SAFETY: as the caller promises.
    unsafe { copy_simple(size, to, from, &axes) }
}

/// Copies a box, on several threads when it is large.
///
/// # Safety
/// That of [`copy_serial`].
pub unsafe fn copy(size: usize, to: *mut u8, from: *const u8, axes: &[Axis]) {
    let Some(axes) = simplify(axes) else { return };
    let bytes = axes.iter().map(|axis| axis.len).product::<usize>() * size;
    if bytes < 2 * GRAIN {
        // SAFETY: as the caller promises.
        return unsafe { copy_simple(size, to, from, &axes) };
    }
    // The outer axes that make enough pieces are flattened into task numbers; the next one is cut.
    let mut outer = 0;
    let mut rows = 1;
    while outer + 1 < axes.len() && rows * axes[outer].len <= bytes / GRAIN {
        rows *= axes[outer].len;
        outer += 1;
    }
    let cut = axes[outer];
    let pieces = (bytes / GRAIN / rows).clamp(1, cut.len);
    let step = cut.len.div_ceil(pieces).next_multiple_of(if outer + 1 < axes.len() { 1 } else { 64 });
    let pieces = cut.len.div_ceil(step);
    let to = SharedMut::new(to);
    let from = SharedMut::new(from.cast_mut());
    threads::parallel(rows * pieces, &|task| {
        let (mut row, first) = (task / pieces, task % pieces * step);
        let mut inner = Axes::from_slice(&axes[outer..]).expect("fewer axes than before");
        inner[0].len = step.min(cut.len - first);
        let (mut to_at, mut from_at) = (first as isize * cut.to, first as isize * cut.from);
        for axis in axes[..outer].iter().rev() {
            to_at += (row % axis.len) as isize * axis.to;
            from_at += (row % axis.len) as isize * axis.from;
            row /= axis.len;
        }
        let size_step = size as isize;
        // SAFETY: the pieces are disjoint parts of the caller's box.
        unsafe {
            copy_simple(size, to.ptr().offset(to_at * size_step), from.ptr().offset(from_at * size_step), &inner);
        };
    });
}

/// Copies elements `start .. start + count` of the row-major order of a strided box to a dense run, on this thread.
///
/// # Safety
/// That of [`copy_serial`]; the range lies inside the box.
pub unsafe fn gather(size: usize, to: *mut u8, from: *const u8, dims: &[(usize, isize)], start: usize, count: usize) {
    let Some((&(_, step), rest)) = dims.split_first() else {
        // SAFETY: a box without axes has one element.
        return unsafe { std::ptr::copy_nonoverlapping(from, to, size * count) };
    };
    let inner: usize = rest.iter().map(|dim| dim.0).product();
    let (mut to, mut row, mut left) = (to, start / inner, count);
    // SAFETY: rows of the box, one after another; `to` moves by what was written.
    unsafe {
        let row_at = |row: usize| from.offset(row as isize * step * size as isize);
        if !start.is_multiple_of(inner) {
            let head = left.min(inner - start % inner);
            gather(size, to, row_at(row), rest, start % inner, head);
            (to, row, left) = (to.add(head * size), row + 1, left - head);
        }
        let full = left / inner;
        if full > 0 {
            let mut axes = Axes::filled(Axis { len: full, to: inner as isize, from: step }, dims.len());
            let mut dense = inner as isize;
            for (axis, &(len, from)) in axes[1..].iter_mut().zip(rest) {
                dense /= len as isize;
                *axis = Axis { len, to: dense, from };
            }
            copy_serial(size, to, row_at(row), &axes);
            (to, row, left) = (to.add(full * inner * size), row + full, left - full * inner);
        }
        if left > 0 {
            gather(size, to, row_at(row), rest, 0, left);
        }
    }
}

/// Without axes of length 1, outermost destination axis first, neighbours merged. `None` for an empty box.
fn simplify(axes: &[Axis]) -> Option<Axes> {
    let mut sorted = Axes::empty();
    for &axis in axes {
        match axis.len {
            0 => return None,
            1 => {}
            _ => sorted.push(axis),
        }
    }
    if sorted.windows(2).any(|pair| pair[0].to.abs() < pair[1].to.abs()) {
        sorted.sort_by_key(|axis| std::cmp::Reverse(axis.to.abs()));
    }
    let mut out = Axes::empty();
    for &axis in sorted.iter() {
        let joins = |last: &Axis| {
            let len = axis.len as isize;
            last.to == axis.to * len && last.from == axis.from * len
        };
        match out.last_mut() {
            Some(last) if joins(last) => *last = Axis { len: last.len * axis.len, ..axis },
            _ => out.push(axis),
        }
    }
    Some(out)
}

unsafe fn copy_simple(size: usize, to: *mut u8, from: *const u8, axes: &[Axis]) {
    // SAFETY: as the caller of `copy_serial` promises.
    unsafe {
        match size {
            1 => copy_typed::<u8>(to, from, axes),
            2 => copy_typed::<u16>(to.cast(), from.cast(), axes),
            4 => copy_typed::<u32>(to.cast(), from.cast(), axes),
            _ => copy_typed::<u64>(to.cast(), from.cast(), axes),
        }
    }
}

unsafe fn copy_typed<T: Tile>(to: *mut T, from: *const T, axes: &[Axis]) {
    // SAFETY: as the caller of `copy_serial` promises.
    unsafe {
        let Some((&line, outer)) = axes.split_last() else { return to.write(*from) };
        let closer = |axis: &Axis| axis.from != 0 && axis.from.abs() < line.from.abs();
        let across = (0..outer.len()).filter(|&i| closer(&outer[i])).min_by_key(|&i| outer[i].from.abs());
        if let (Some(index), 1) = (across, line.to) {
            let across = outer[index];
            let mut rest = Axes::from_slice(outer).expect("fewer axes than before");
            rest.remove(index);
            each(&rest, |to_at, from_at| transpose(to.offset(to_at), from.offset(from_at), across, line));
        } else if line.to == 1 && line.from == 1 {
            each(outer, |to_at, from_at| {
                std::ptr::copy_nonoverlapping(from.offset(from_at), to.offset(to_at), line.len);
            });
        } else {
            each(outer, |to_at, from_at| copy_line(to.offset(to_at), from.offset(from_at), line));
        }
    }
}

/// Runs `work(to offset, from offset)` for each index into the axes, in row-major order.
#[inline(always)]
fn each(axes: &[Axis], mut work: impl FnMut(isize, isize)) {
    let mut index = [0usize; MAX_RANK];
    let (mut to, mut from) = (0, 0);
    let Some((last, outer)) = axes.split_last() else { return work(0, 0) };
    loop {
        for k in 0..last.len as isize {
            work(to + k * last.to, from + k * last.from);
        }
        let mut at = outer.len();
        loop {
            if at == 0 {
                return;
            }
            at -= 1;
            let axis = outer[at];
            index[at] += 1;
            (to, from) = (to + axis.to, from + axis.from);
            if index[at] < axis.len {
                break;
            }
            let len = axis.len as isize;
            (to, from, index[at]) = (to - len * axis.to, from - len * axis.from, 0);
        }
    }
}

/// Copies along one axis.
///
/// # Safety
/// That of [`copy_serial`].
#[inline(always)]
pub unsafe fn copy_line<T: Copy>(to: *mut T, from: *const T, line: Axis) {
    // SAFETY: as the caller of `copy_serial` promises.
    unsafe {
        match (line.to, line.from) {
            (1, 0) => std::slice::from_raw_parts_mut(to, line.len).fill(*from),
            (1, step) => (0..line.len as isize).for_each(|i| to.offset(i).write(*from.offset(i * step))),
            (step, 1) => (0..line.len as isize).for_each(|i| to.offset(i * step).write(*from.offset(i))),
            (a, b) => (0..line.len as isize).for_each(|i| to.offset(i * a).write(*from.offset(i * b))),
        }
    }
}
