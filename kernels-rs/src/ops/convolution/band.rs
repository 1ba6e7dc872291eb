//! The part of the source that a tile of results reads, copied into scratch: padding becomes zeros, strides become
//! phases, so that every tap reads at a fixed distance from its result and neighbours lie side by side.
//!
//! Layout: `[channel][row phase][row][column phase][column]`, or [`Layout::apart`]. Result `(t, u)` of the tile reads, for tap
//! `l`, element `offsets[l] + t * pitch + u`.

use super::axis::Axis;
use crate::machine::lanes::Lanes;
use crate::memory::scratch::reserved;
use crate::vectorize;

/// Elements after the end that kernels may read (and ignore): two registers and a row of positions.
pub const SLACK: usize = 64;

/// A plane of the source and its size.
#[derive(Clone, Copy)]
pub struct Plane<T> {
    /// First element.
    pub at: *const T,
    /// Rows.
    pub rows: usize,
    /// Columns.
    pub cols: usize,
}

/// A row of the source.
#[derive(Clone, Copy)]
struct Line<T> {
    at: *const T,
    len: usize,
}

/// The sizes of a band.
#[derive(Clone, Debug)]
pub struct Layout {
    /// Result rows of a full tile.
    pub rows: usize,
    /// Result columns of a full tile.
    pub cols: usize,
    /// Elements from one row to the next.
    pub pitch: usize,
    /// Elements from one channel to the next.
    pub channel: usize,
    /// Rows of a row phase.
    pub row_extent: usize,
    /// Columns of a column phase.
    pub col_extent: usize,
    /// Elements from one row phase to the next, and from one column phase.
    row_phase: usize,
    col_phase: usize,
}

impl Layout {
    /// For tiles of `rows x cols` results.
    pub fn new(row_axis: &Axis, col_axis: &Axis, rows: usize, cols: usize) -> Self {
        let (row_extent, col_extent) = (row_axis.extent(rows), col_axis.extent(cols));
        let pitch = col_axis.slots() * col_extent;
        // An odd number of cache lines, so that channels do not fall into the same cache sets.
        let lines = (row_axis.slots() * row_extent * pitch).div_ceil(16) | 1;
        let (row_phase, col_phase) = (row_extent * pitch, col_extent);
        Self { rows, cols, pitch, channel: lines * 16, row_extent, col_extent, row_phase, col_phase }
    }

    /// As [`Self::new`], but for `[channel][row phase][column phase][row][column]`: between the results of a row and the next
    /// lie no other phases.
    pub fn apart(row_axis: &Axis, col_axis: &Axis, rows: usize, cols: usize) -> Self {
        let layout = Self::new(row_axis, col_axis, rows, cols);
        let (pitch, col_phase) = (layout.col_extent, layout.row_extent * layout.col_extent);
        Self { pitch, col_phase, ..layout }
    }

    /// Where a row of a phase begins in a channel.
    #[inline(always)]
    fn line(&self, (row_slot, col_slot): (usize, usize), row: usize) -> usize {
        row_slot * self.row_phase + row * self.pitch + col_slot * self.col_phase
    }

    /// The largest tiles whose band fits `budget` elements, with at least `tiles` of them where rows allow.
    pub fn fit(row_axis: &Axis, col_axis: &Axis, channels: usize, budget: usize, tiles: usize) -> Self {
        let fits = |rows, cols| Self::new(row_axis, col_axis, rows, cols).channel * channels <= budget;
        let mut cols = col_axis.count.max(1);
        while cols > 56 && !fits(1, cols) {
            cols = cols.div_ceil(2);
        }
        let mut rows = row_axis.count.div_ceil(tiles.max(1)).max(1);
        while rows > 1 && !fits(rows, cols) {
            rows -= rows.div_ceil(8);
        }
        // Equal tiles.
        rows = row_axis.count.max(1).div_ceil(row_axis.count.max(1).div_ceil(rows));
        Self::new(row_axis, col_axis, rows, cols)
    }

    /// Elements of a band of so many channels, slack included.
    pub fn len(&self, channels: usize) -> usize {
        self.channel * channels + SLACK
    }

    /// Where each tap reads for result (0, 0): channel by channel, in the order of the kernel.
    pub fn offsets(&self, row_axis: &Axis, col_axis: &Axis, channels: usize) -> Vec<usize> {
        let mut offsets = reserved(channels * row_axis.taps.len() * col_axis.taps.len());
        for c in 0..channels {
            for row in &row_axis.taps {
                let at = |col: usize| c * self.channel + self.line((row.slot, col), row.shift);
                offsets.extend(col_axis.taps.iter().map(|col| at(col.slot) + col.shift));
            }
        }
        offsets
    }

    /// Copies one channel for the tile that starts at result `(first_row, first_col)`.
    ///
    /// # Safety
    /// `to` holds `self.channel` elements and a register more, the plane is readable, and the machine has the instructions of `V`.
    #[inline(always)]
    pub unsafe fn fill<V: Lanes>(
        &self,
        axes: (&Axis, &Axis),
        first: (usize, usize),
        from: Plane<V::Elem>,
        to: *mut V::Elem,
    ) {
        let (row_axis, col_axis) = axes;
        for row_slot in 0..row_axis.slots() {
            let (row_start, row_step) = row_axis.source(first.0, row_slot);
            for i in 0..self.row_extent {
                let row = row_start + (i * row_step) as isize;
                let inside = row >= 0 && (row as usize) < from.rows;
                for col_slot in 0..col_axis.slots() {
                    let at = self.line((row_slot, col_slot), i);
                    let (start, step) = col_axis.source(first.1, col_slot);
                    let at_row = from.at.wrapping_offset(row * from.cols as isize);
                    let source = Line { at: at_row, len: if inside { from.cols } else { 0 } };
                    // SAFETY: a row outside the plane is empty; the line lies inside the channel.
                    fill_line::<V>(source, start, step, to.add(at), self.col_extent);
                }
            }
        }
    }

    /// As [`Self::fill`] for a tile that is the whole plane, in a band whose padding is 0 already.
    ///
    /// # Safety
    /// As there.
    #[inline(always)]
    pub unsafe fn refill<V: Lanes>(&self, axes: (&Axis, &Axis), from: Plane<V::Elem>, to: *mut V::Elem) {
        let (row_axis, col_axis) = axes;
        for col_slot in 0..col_axis.slots() {
            let (start, step) = col_axis.source(0, col_slot);
            let (low, high) = inside(start, step, from.cols, self.col_extent);
            for row_slot in 0..row_axis.slots() {
                let (row_start, row_step) = row_axis.source(0, row_slot);
                let (first, last) = inside(row_start, row_step, from.rows, self.row_extent);
                for i in first..last {
                    let row = (row_start + (i * row_step) as isize) as usize;
                    let at = self.line((row_slot, col_slot), i);
                    let source = from.at.wrapping_add(row * from.cols);
                    // SAFETY: what is read lies inside the row.
                    copy_line::<V>(source, (start, step, from.cols), (low, high), to.add(at));
                }
            }
        }
    }

    /// Copies a plane, whose tile is the whole plane, into a band that is 0 already: elements of any type.
    ///
    /// # Safety
    /// The plane is readable, and there is room for its band.
    pub unsafe fn copy<T: Copy>(&self, (row_axis, col_axis): (&Axis, &Axis), from: Plane<T>, to: *mut T) {
        for row_slot in 0..row_axis.slots() {
            let (row_start, row_step) = row_axis.source(0, row_slot);
            let (first, last) = inside(row_start, row_step, from.rows, self.row_extent);
            for (i, col_slot) in (first..last).flat_map(|i| (0..col_axis.slots()).map(move |slot| (i, slot))) {
                let (start, step) = col_axis.source(0, col_slot);
                let (low, high) = inside(start, step, from.cols, self.col_extent);
                let row = (row_start + (i * row_step) as isize) as usize;
                let at = self.line((row_slot, col_slot), i);
                let source = from.at.wrapping_add(row * from.cols).wrapping_offset(start + (low * step) as isize);
                // SAFETY: what is read lies inside the row, what is written in the band.
                every(source, step, std::slice::from_raw_parts_mut(to.add(at + low), high - low));
            }
        }
    }
}

/// Elements so far apart, the first of which is there.
///
/// # Safety
/// They all are, and do not overlap the others.
unsafe fn every<T: Copy>(from: *const T, step: usize, to: &mut [T]) {
    match step {
        _ if to.is_empty() => {}
        1 => std::ptr::copy_nonoverlapping(from, to.as_mut_ptr(), to.len()),
        2 => every_second(std::slice::from_raw_parts(from, 2 * to.len() - 1), to),
        _ => to.iter_mut().enumerate().for_each(|(i, to)| *to = *from.add(i * step)),
    }
}

vectorize!(every_second[T: Copy](from: &[T], to: &mut [T]) => every_second_body::<T>);

#[inline(always)]
fn every_second_body<T: Copy>(from: &[T], to: &mut [T]) {
    // All but the last one lie in pairs.
    let (whole, last) = from.as_chunks::<2>();
    for (to, from) in to.iter_mut().zip(whole) {
        *to = from[0];
    }
    if let (Some(to), Some(from)) = (to.last_mut(), last.last()) {
        *to = *from;
    }
}

/// The first `i < total`, and one past the last, for which `start + i * step` lies in `0..len`.
#[inline(always)]
fn inside(start: isize, step: usize, len: usize, total: usize) -> (usize, usize) {
    let low = if start < 0 { start.unsigned_abs().div_ceil(step) } else { 0 }.min(total);
    let room = len as isize - start;
    (low, if room <= 0 { low } else { (room as usize).div_ceil(step).clamp(low, total) })
}

/// `to[i] = source[start + i * step]` for `low <= i < high`, all inside the line.
///
/// # Safety
/// As for [`fill_line`].
#[inline(always)]
unsafe fn copy_line<V: Lanes>(
    source: *const V::Elem,
    (start, step, len): (isize, usize, usize),
    (low, high): (usize, usize),
    to: *mut V::Elem,
) {
    let mut i = low;
    while i < high {
        let count = (high - i).min(V::N);
        let first = (start + (i * step) as isize) as usize;
        // SAFETY: inside the line, and in the band.
        let (at, to) = (source.add(first), to.add(i));
        match step {
            1 => V::load_some(at, count).store_some(to, count),
            2 => {
                let room = len - first;
                let next = at.wrapping_add(V::N);
                let low = V::load_some(at, room.min(V::N));
                let high = V::load_some(next, room.saturating_sub(V::N).min(V::N));
                V::even(low, high).store_some(to, count);
            }
            _ => {
                for lane in 0..count {
                    *to.add(lane) = *at.add(lane * step);
                }
            }
        }
        i += V::N;
    }
}

/// `to[i] = source[start + i * step]`, 0 outside `0..len`, for `i < total`. Writes up to a register more: what comes
/// after the line is written later, or is slack.
///
/// # Safety
/// `source` holds `len` elements, `to` holds `total` and a register; the machine has the instructions of `V`.
#[inline(always)]
unsafe fn fill_line<V: Lanes>(source: Line<V::Elem>, start: isize, step: usize, to: *mut V::Elem, total: usize) {
    let (low, high) = inside(start, step, source.len, total);
    let from = source.at.wrapping_offset(start);
    let mut i = 0;
    while i < total {
        let lanes = (low.saturating_sub(i).min(V::N), high.saturating_sub(i).min(V::N));
        let at = from.wrapping_add(i * step);
        // SAFETY: only the lanes inside the source are read; the caller gives room for a whole register.
        let values = match step {
            1 => V::load_window(at, lanes),
            2 => {
                let (first, last) = if lanes.0 < lanes.1 { (2 * lanes.0, 2 * lanes.1 - 1) } else { (0, 0) };
                let low = V::load_window(at, (first.min(V::N), last.min(V::N)));
                let high = (first.max(V::N) - V::N, last.max(V::N) - V::N);
                V::even(low, V::load_window(at.wrapping_add(V::N), high))
            }
            _ => V::splat(V::Elem::default()),
        };
        values.store(to.add(i));
        i += V::N;
    }
    if step > 2 {
        for i in low..high {
            // SAFETY: inside the source and the line.
            *to.add(i) = *from.wrapping_add(i * step);
        }
    }
}
