//! Maxima of the windows of one row.

use super::PoolAxis;
use crate::array::number::Ordered;
use crate::memory::scratch::filled;

/// Folds rows. A row of a strided pool is first split into its phases (every `stride`-th element from 0, from 1, ...),
/// each once, so that what a tap reads for the windows side by side lies side by side.
pub struct Folder<T> {
    split: Vec<T>,
    /// Elements of a phase.
    room: usize,
    /// Which phases hold this row.
    ready: Vec<bool>,
}

impl<T: Ordered> Folder<T> {
    #[inline(always)]
    pub fn new(axis: &PoolAxis) -> Self {
        let room = axis.input.div_ceil(axis.stride);
        let phases = axis.stride.min(axis.input);
        let split = if phases > 1 { filled(T::LOWEST, room * phases) } else { Vec::new() };
        Self { split, room, ready: filled(false, phases) }
    }

    /// Writes the maxima. False when the row has a NaN.
    #[inline(always)]
    pub fn fold(&mut self, axis: &PoolAxis, row: &[T], out: &mut [T]) -> bool {
        let interior = axis.interior();
        for at in (0..interior.start).chain(interior.end..axis.output) {
            let mut best = T::LOWEST;
            for (i, tap) in axis.taps(at).enumerate() {
                let value = row[axis.position(at, tap)];
                best = if i == 0 || value.beats(best) { value } else { best };
            }
            out[at] = best;
        }
        if interior == (0..axis.output) && axis.stride == axis.kernel && axis.dilation == 1 {
            // In one pass, which another one follows only where it met a NaN.
            let row = &row[axis.position(0, 0)..];
            let clean = match axis.kernel {
                2 => groups::<T, 2>(row, out),
                3 => groups::<T, 3>(row, out),
                4 => groups::<T, 4>(row, out),
                _ => false,
            };
            if clean {
                return true;
            }
        }
        let clean = is_clean(row);
        let out = &mut out[interior.clone()];
        self.ready.fill(false);
        for tap in 0..axis.kernel * usize::from(!interior.is_empty()) {
            let from = self.read(axis, row, axis.position(interior.start, tap), out.len());
            match (tap, clean) {
                (0, _) => out.copy_from_slice(from),
                (_, true) => larger::<T, true>(out, from),
                (_, false) => larger::<T, false>(out, from),
            }
        }
        clean
    }

    /// [`Folder::fold`] with the column of each maximum, -1 where the window is empty.
    #[inline(always)]
    pub fn fold_with_indices(&mut self, axis: &PoolAxis, row: &[T], out: &mut [T], columns: &mut [i32]) -> bool {
        let interior = axis.interior();
        for at in (0..interior.start).chain(interior.end..axis.output) {
            (out[at], columns[at]) = (T::LOWEST, -1);
            for (i, tap) in axis.taps(at).enumerate() {
                let position = axis.position(at, tap);
                if i == 0 || row[position].beats(out[at]) {
                    (out[at], columns[at]) = (row[position], position as i32);
                }
            }
        }
        let clean = is_clean(row);
        let (out, columns) = (&mut out[interior.clone()], &mut columns[interior.clone()]);
        let stride = axis.stride as i32;
        self.ready.fill(false);
        for tap in 0..axis.kernel * usize::from(!interior.is_empty()) {
            let position = axis.position(interior.start, tap);
            let from = self.read(axis, row, position, out.len());
            let first = position as i32;
            match (tap, clean) {
                (0, _) => {
                    out.copy_from_slice(from);
                    for (i, column) in columns.iter_mut().enumerate() {
                        *column = first + i as i32 * stride;
                    }
                }
                (_, true) => larger_at::<T, true>(out, columns, from, first, stride),
                (_, false) => larger_at::<T, false>(out, columns, from, first, stride),
            }
        }
        clean
    }

    /// `count` elements of the row from `first` on, `stride` apart, side by side.
    // No closures around this: they would not inherit the instruction set.
    #[inline(always)]
    fn read<'a>(&'a mut self, axis: &PoolAxis, row: &'a [T], first: usize, count: usize) -> &'a [T] {
        if self.split.is_empty() {
            return &row[first..first + count];
        }
        let phase = first % axis.stride;
        let slot = phase * self.room;
        if !std::mem::replace(&mut self.ready[phase], true) {
            let len = (row.len() - phase).div_ceil(axis.stride);
            pick(&row[phase..], axis.stride, &mut self.split[slot..slot + len]);
        }
        &self.split[slot + first / axis.stride..][..count]
    }
}

/// Every `stride`-th element.
#[inline(always)]
fn pick<T: Copy>(row: &[T], stride: usize, out: &mut [T]) {
    let row = &row[..=out.len().saturating_sub(1) * stride];
    // A known stride makes a loop that vectorises.
    if stride == 2 {
        for (i, slot) in out.iter_mut().enumerate() {
            *slot = row[i * 2];
        }
    } else {
        for (i, slot) in out.iter_mut().enumerate() {
            *slot = row[i * stride];
        }
    }
}

#[inline(always)]
fn is_clean<T: Ordered>(row: &[T]) -> bool {
    let mut any = false;
    for &value in row {
        any |= value.is_nan();
    }
    !any
}

/// Without NaN one comparison tells.
#[inline(always)]
fn wins<T: Ordered, const CLEAN: bool>(value: T, other: T) -> bool {
    if CLEAN { value > other } else { value.beats(other) }
}

/// The largest of each `K` elements side by side. False, and of no use, where one is NaN.
#[inline(always)]
fn groups<T: Ordered, const K: usize>(row: &[T], out: &mut [T]) -> bool {
    let mut dirty = false;
    for (slot, group) in out.iter_mut().zip(row.as_chunks::<K>().0) {
        *slot = group[1..].iter().fold(group[0], |best, &value| if value > best { value } else { best });
        dirty |= group.iter().fold(false, |any, value| any | value.is_nan());
    }
    !dirty
}

/// The larger of each pair.
#[inline(always)]
pub fn larger<T: Ordered, const CLEAN: bool>(out: &mut [T], other: &[T]) {
    for (slot, &value) in out.iter_mut().zip(other) {
        *slot = if wins::<T, CLEAN>(value, *slot) { value } else { *slot };
    }
}

#[inline(always)]
fn larger_at<T: Ordered, const CLEAN: bool>(out: &mut [T], columns: &mut [i32], from: &[T], first: i32, stride: i32) {
    for (i, ((slot, column), &value)) in out.iter_mut().zip(columns).zip(from).enumerate() {
        let wins = wins::<T, CLEAN>(value, *slot);
        *slot = if wins { value } else { *slot };
        *column = if wins { first + i as i32 * stride } else { *column };
    }
}

/// [`larger`] of two rows with the places of their elements; a column of -1 is an empty window.
#[inline(always)]
pub fn larger_with_indices<T: Ordered, const CLEAN: bool>(
    line: &mut [T],
    places: &mut [i32],
    other: &[T],
    columns: &[i32],
    row_start: i32,
) {
    for (((slot, place), &value), &column) in line.iter_mut().zip(places).zip(other).zip(columns) {
        // The first row with an element inside takes an empty slot, also with the lowest value.
        let wins = (column >= 0) & ((*place < 0) | wins::<T, CLEAN>(value, *slot));
        *slot = if wins { value } else { *slot };
        *place = if wins { row_start + column } else { *place };
    }
}
