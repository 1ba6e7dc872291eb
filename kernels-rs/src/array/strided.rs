//! Copies between strided boxes, by element size alone: every data movement ends here.

use super::axes::{Steps, merged};
use super::shape::Inline;
pub use super::transpose::Axis;
use super::transpose::{Tile, copy_line, transpose};
use crate::machine::threads::{self, SharedMut};
use std::ops::Range;

/// Bytes that are worth a task of their own.
const GRAIN: usize = 1 << 17;
/// Bytes of a block of lines.
const BLOCK_BYTES: usize = 1 << 14;
/// Results of this many bytes are written past the caches: half of the 32 MiB of third-level cache of our machines.
const STREAM: usize = 16 << 20;

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
    if let Some(plan) = Plan::new(size, axes) {
        // SAFETY: the caller promises that all steps stay inside both sides, and the blocks cut that walk.
        plan.run(to, from, 0..plan.blocks);
    }
}

/// Copies a box, on several threads when it is large.
///
/// # Safety
/// That of [`copy_serial`].
pub unsafe fn copy(size: usize, to: *mut u8, from: *const u8, axes: &[Axis]) {
    let Some(plan) = Plan::new(size, axes) else { return };
    if plan.bytes < 2 * GRAIN {
        // SAFETY: the caller promises that all steps stay inside both sides, and the blocks cut that walk.
        return plan.run(to, from, 0..plan.blocks);
    }
    let together = (plan.blocks / (plan.bytes / GRAIN)).max(1);
    let (to, from) = (SharedMut::new(to), SharedMut::new(from.cast_mut()));
    threads::parallel(plan.blocks.div_ceil(together), &|task| {
        let blocks = task * together..plan.blocks.min((task + 1) * together);
        // SAFETY: the blocks are disjoint parts of the caller's box.
        plan.run(to.ptr(), from.ptr(), blocks);
    });
}

/// A copy as blocks of planes of two axes, which any thread may copy in any order.
pub struct Plan {
    size: usize,
    bytes: usize,
    /// The axes beside those of the plane.
    outer: Axes,
    /// The axes of a plane: `line` is the inner one of the destination.
    across: Axis,
    line: Axis,
    /// Lengths of a block along them.
    block: (usize, usize),
    /// The source is closer to a run along `across` than along `line`.
    turned: bool,
    /// Blocks in all planes.
    blocks: usize,
    stream: bool,
}

impl Plan {
    /// `None` for an empty box. `size` is the element size.
    pub fn new(size: usize, axes: &[Axis]) -> Option<Self> {
        let mut outer = simplify(axes)?;
        let count: usize = outer.iter().map(|axis| axis.len).product();
        let one = Axis { len: 1, to: 1, from: 1 };
        let line = outer.pop().unwrap_or(one);
        let closer = |axis: &Axis| axis.from != 0 && axis.from.abs() < line.from.abs();
        let index = (0..outer.len()).filter(|&i| closer(&outer[i])).min_by_key(|&i| outer[i].from.abs());
        let turned = line.to == 1 && index.is_some();
        let across = match index {
            Some(index) if turned => {
                let across = outer[index];
                outer.remove(index);
                across
            }
            _ => outer.pop().unwrap_or(one),
        };
        let block = if turned {
            // Both sides are read and written in pieces of some cache lines, and few pages are in use at a time.
            ((1024 / size).min(across.len), (256 / size).min(line.len))
        } else {
            let width = (GRAIN / size).min(line.len);
            ((BLOCK_BYTES / (width * size)).clamp(1, across.len), width)
        };
        let planes: usize = outer.iter().map(|axis| axis.len).product();
        let blocks = planes * across.len.div_ceil(block.0) * line.len.div_ceil(block.1);
        let bytes = count * size;
        Some(Self { size, bytes, outer, across, line, block, turned, blocks, stream: bytes >= STREAM })
    }

    /// Whether the box is one run on both sides.
    pub fn is_run(&self) -> bool {
        self.blocks == 1 && self.across.len == 1 && (self.line.to, self.line.from) == (1, 1)
    }

    /// Copies all blocks on this thread.
    ///
    /// # Safety
    /// That of [`copy_serial`].
    pub unsafe fn run_all(&self, to: *mut u8, from: *const u8) {
        self.run(to, from, 0..self.blocks);
    }

    /// # Safety
    /// That of [`copy_serial`]; the addresses are those of the whole box.
    unsafe fn run(&self, to: *mut u8, from: *const u8, blocks: Range<usize>) {
        match self.size {
            1 => self.run_typed::<u8>(to, from, blocks),
            2 => self.run_typed::<u16>(to.cast(), from.cast(), blocks),
            4 => self.run_typed::<u32>(to.cast(), from.cast(), blocks),
            _ => self.run_typed::<u64>(to.cast(), from.cast(), blocks),
        }
    }

    unsafe fn run_typed<T: Tile>(&self, to: *mut T, from: *const T, blocks: Range<usize>) {
        let cuts = (self.across.len.div_ceil(self.block.0), self.line.len.div_ceil(self.block.1));
        let mut steps = Steps::new(&self.outer, blocks.start / (cuts.0 * cuts.1));
        let (mut row, mut column) = (blocks.start / cuts.1 % cuts.0, blocks.start % cuts.1);
        for _ in blocks {
            let (first, start) = (row * self.block.0, column * self.block.1);
            let across = Axis { len: self.block.0.min(self.across.len - first), ..self.across };
            let line = Axis { len: self.block.1.min(self.line.len - start), ..self.line };
            let (first, start) = (first as isize, start as isize);
            // SAFETY: a block of the caller's box.
            let (plane_to, plane_from) = steps.at();
            let to = to.offset(plane_to + first * across.to + start * line.to);
            let from = from.offset(plane_from + first * across.from + start * line.from);
            if self.turned {
                transpose(to, from, across, line, self.stream);
            } else {
                copy_lines(to, from, across, line);
            }
            column += 1;
            if column == cuts.1 {
                (column, row) = (0, row + 1);
                if row == cuts.0 {
                    row = 0;
                    steps.step();
                }
            }
        }
    }
}

/// Bytes up to which elements are gathered line by line: a plan would take longer than the copy. Two tiles of an elementwise op.
const FEW: usize = 8 << 10;

/// Copies elements `start .. start + count` of the row-major order of a strided box to a dense run, on this thread.
///
/// # Safety
/// That of [`copy_serial`]; the range lies inside the box.
pub unsafe fn gather(size: usize, to: *mut u8, from: *const u8, dims: &[(usize, isize)], start: usize, count: usize) {
    if size * count <= FEW {
        return match size {
            1 => gather_lines::<u8>(to, from, dims, start, count),
            2 => gather_lines::<u16>(to.cast(), from.cast(), dims, start, count),
            4 => gather_lines::<u32>(to.cast(), from.cast(), dims, start, count),
            _ => gather_lines::<u64>(to.cast(), from.cast(), dims, start, count),
        };
    }
    let Some((&(_, step), rest)) = dims.split_first() else {
        // SAFETY: a box without axes has one element.
        return std::ptr::copy_nonoverlapping(from, to, size * count);
    };
    let inner: usize = rest.iter().map(|dim| dim.0).product();
    let (mut to, mut row, mut left) = (to, start / inner, count);
    // SAFETY: rows of the box, one after another; `to` moves by what was written.
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

/// # Safety
/// As for [`gather`].
unsafe fn gather_lines<T: Copy>(to: *mut T, from: *const T, dims: &[(usize, isize)], start: usize, count: usize) {
    let (line, outer) = dims.split_last().map_or(((count.max(1), 0), dims), |(&line, outer)| (line, outer));
    let (mut steps, mut first) = (Steps::new(outer, start / line.0), start % line.0);
    let mut done = 0;
    while done < count {
        let len = (line.0 - first).min(count - done);
        // SAFETY: a part of a line of the box, and room for it.
        let from = from.offset(steps.at() + first as isize * line.1);
        match line.1 {
            1 => std::ptr::copy_nonoverlapping(from, to.add(done), len),
            step => copy_line(to.add(done), from, Axis { len, to: 1, from: step }),
        }
        (done, first) = (done + len, 0);
        steps.step();
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
    Some(merged(sorted.iter().copied()))
}

/// Copies `across.len` lines.
///
/// # Safety
/// That of [`copy_serial`].
unsafe fn copy_lines<T: Tile>(to: *mut T, from: *const T, across: Axis, line: Axis) {
    let rows = 0..across.len as isize;
    let bytes = line.len * size_of::<T>();
    let at = |row: isize| (to.offset(row * across.to), from.offset(row * across.from));
    match (line.to, line.from) {
        // Short runs of a known length are moved without a call.
        (1, 1) if bytes == 8 => rows.for_each(|row| run::<T, 8>(at(row))),
        (1, 1) if bytes == 16 => rows.for_each(|row| run::<T, 16>(at(row))),
        (1, 1) if bytes == 32 => rows.for_each(|row| run::<T, 32>(at(row))),
        (1, 1) if bytes == 64 => rows.for_each(|row| run::<T, 64>(at(row))),
        (1, 1) if bytes == 128 => rows.for_each(|row| run::<T, 128>(at(row))),
        (1, 1) => rows.for_each(|row| std::ptr::copy_nonoverlapping(at(row).1, at(row).0, line.len)),
        _ => rows.for_each(|row| copy_line(at(row).0, at(row).1, line)),
    }
}

#[inline(always)]
unsafe fn run<T, const BYTES: usize>((to, from): (*mut T, *const T)) {
    to.cast::<[u8; BYTES]>().write_unaligned(from.cast::<[u8; BYTES]>().read_unaligned());
}
