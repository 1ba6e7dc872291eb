//! The gradient with respect to the kernel: `dw[o, c, tap] = sum over images and positions of g[o, p] * x[c, p + tap]`.
//!
//! The positions are cut into chunks by shape alone; each chunk sums into its own copy, and the copies are added in
//! order, so the result does not depend on the number of threads.

use super::Window;
use super::axis::Axis;
use super::band::{Layout, Plane};
use super::{rows, wide};
use crate::lanes::{Block, Kernel, Lanes, Real, lane_count, launch};
use crate::scratch::{Aligned, with_scratch};
use crate::threads::{self, SharedMut};

/// Bytes of source and gradient that a task copies at a time.
const BAND_BYTES: usize = 192 << 10;
/// Tasks to aim for.
const TASKS: usize = 32;
/// Bytes of partial sums to stay below.
const PARTIAL_BYTES: usize = 64 << 20;

struct Job<'a, T> {
    window: &'a Window,
    row_axis: Axis,
    col_axis: Axis,
    layout: Layout,
    x: &'a [T],
    g: &'a [T],
    /// Where each tap reads, filled up to a whole number of tap blocks.
    offsets: Vec<usize>,
    taps: usize,
    tap_block: usize,
    /// Output channels per lane block; 1 when lanes are positions.
    width: usize,
    chunks: usize,
    row_tiles: usize,
    partial: SharedMut<T>,
}

/// Computes all of `out`, `[outputs, inputs / groups, kh, kw]`.
pub fn run<T: Real>(window: &Window, g: &[T], x: &[T], out: &mut [T]) {
    out.fill(T::default());
    let (row_axis, col_axis) = (Axis::forward(window.row), Axis::forward(window.col));
    let channels = window.inputs / window.groups;
    let outputs = window.outputs / window.groups;
    let taps = channels * window.row.kernel * window.col.kernel;
    if out.is_empty() || window.batch * row_axis.count * col_axis.count == 0 {
        return;
    }
    let lanes = lane_count::<T>();
    let (width, tap_block) = choose(outputs, taps, col_axis.count, lanes);
    let blocks = outputs.div_ceil(width) * window.groups;
    let budget = BAND_BYTES / size_of::<T>();
    let layout = Layout::fit(&row_axis, &col_axis, channels, budget, TASKS.div_ceil(window.batch * blocks));
    let row_tiles = row_axis.count.div_ceil(layout.rows);
    let mut offsets = layout.offsets(&row_axis, &col_axis, channels);
    offsets.resize(taps.next_multiple_of(tap_block), 0);
    let copy = blocks * width * offsets.len();
    let room = (PARTIAL_BYTES / size_of::<T>() / copy).max(1);
    let chunks = TASKS.div_ceil(blocks).min(window.batch * row_tiles).min(room);
    let mut partial = Aligned::zeros(chunks * copy);
    let start = SharedMut::new(partial.as_mut_ptr());
    let job = Job {
        window,
        row_axis,
        col_axis,
        layout,
        x,
        g,
        offsets,
        taps,
        tap_block,
        width,
        chunks,
        row_tiles,
        partial: start,
    };
    let len = job.layout.len(channels) + job.layout.rows * job.layout.cols * width.max(lanes);
    threads::parallel(chunks * blocks, &|index| {
        with_scratch(len, |scratch| launch(Chunk { job: &job, index, scratch }));
    });
    job.add_up(out);
}

/// Lane block and tap block: lanes are output channels unless those would stay mostly empty.
fn choose(outputs: usize, taps: usize, cols: usize, lanes: usize) -> (usize, usize) {
    let by_channels = outputs.next_multiple_of(lanes) * cols * (taps + 4);
    let by_positions = outputs * cols.next_multiple_of(lanes) * (taps + 1);
    let most = if lanes >= 8 && crate::simd::level() == crate::simd::Level::Avx512 { 14 } else { 6 };
    if by_channels * 10 < by_positions * 13 {
        (if outputs > lanes { 2 * lanes } else { lanes }, best_block(taps, most))
    } else {
        (1, best_block(taps, 9))
    }
}

/// The block size that wastes the fewest taps; the larger of equals.
fn best_block(taps: usize, most: usize) -> usize {
    let sizes = [1, 2, 3, 4, 6, 9, 12, 14];
    let cost = |&size: &usize| (taps.next_multiple_of(size) * (size + 2)).div_ceil(size);
    sizes.into_iter().rev().filter(|&size| size <= most).min_by_key(cost).unwrap_or(1)
}

struct Chunk<'a, T> {
    job: &'a Job<'a, T>,
    index: usize,
    scratch: &'a mut [T],
}

/// One tile of one image.
struct Tile {
    image: usize,
    group: usize,
    /// First output channel and how many.
    outputs: (usize, usize),
    first: (usize, usize),
    rows: usize,
    cols: usize,
}

impl<T: Real> Kernel<T> for Chunk<'_, T> {
    #[inline(always)]
    unsafe fn run<V: Lanes<Elem = T>>(self) {
        let job = self.job;
        let outputs = job.window.outputs / job.window.groups;
        let per_group = outputs.div_ceil(job.width);
        let (block, chunk) = (self.index / job.chunks, self.index % job.chunks);
        let (group, first_output) = (block / per_group, block % per_group * job.width);
        let units = job.window.batch * job.row_tiles;
        let copy = job.width * job.offsets.len();
        let at = (chunk * per_group * job.window.groups + block) * copy;
        // SAFETY: each task has its own copy.
        let partial = unsafe { job.partial.slice(at..at + copy) };
        let (band, packed) = self.scratch.split_at_mut(job.layout.len(job.window.inputs / job.window.groups));
        for unit in chunk * units / job.chunks..(chunk + 1) * units / job.chunks {
            let (image, row_tile) = (unit / job.row_tiles, unit % job.row_tiles);
            let mut first_col = 0;
            while first_col < job.col_axis.count {
                let first = (row_tile * job.layout.rows, first_col);
                let tile = Tile {
                    image,
                    group,
                    outputs: (first_output, job.width.min(outputs - first_output)),
                    first,
                    rows: job.layout.rows.min(job.row_axis.count - first.0),
                    cols: job.layout.cols.min(job.col_axis.count - first.1),
                };
                // SAFETY: the scratch was sized for a full tile; the machine has the instructions.
                unsafe { job.add_tile::<V>(&tile, band, packed, partial) };
                first_col += job.layout.cols;
            }
        }
    }
}

impl<T: Real> Job<'_, T> {
    #[inline(always)]
    unsafe fn add_tile<V: Lanes<Elem = T>>(&self, tile: &Tile, band: &mut [T], packed: &mut [T], partial: &mut [T]) {
        let window = self.window;
        let channels = window.inputs / window.groups;
        let (rows, cols) = (window.row.input, window.col.input);
        for c in 0..channels {
            let plane = (tile.image * window.groups + tile.group) * channels + c;
            // SAFETY: inside the source; the band holds all channels and the slack.
            unsafe {
                let at = self.x.as_ptr().add(plane * rows * cols);
                let to = band.as_mut_ptr().add(c * self.layout.channel);
                self.layout.fill::<V>((&self.row_axis, &self.col_axis), tile.first, Plane { at, rows, cols }, to);
            }
        }
        // SAFETY: passed on.
        unsafe {
            if self.width == 1 {
                self.by_positions::<V>(tile, band, partial);
            } else {
                self.pack_gradient::<V>(tile, packed);
                if self.width > V::N {
                    self.by_channels::<V, 2>(tile, band, packed, partial);
                } else {
                    self.by_channels::<V, 1>(tile, band, packed, partial);
                }
            }
        }
    }

    /// Address of the gradient for an output channel of the tile's block at its position `(t, 0)`.
    #[inline(always)]
    fn gradient(&self, tile: &Tile, output: usize, t: usize) -> *const T {
        let window = self.window;
        let outputs = window.outputs / window.groups;
        let plane = (tile.image * window.groups + tile.group) * outputs + tile.outputs.0 + output;
        let at = (plane * window.row.output + tile.first.0 + t) * window.col.output + tile.first.1;
        self.g.as_ptr().wrapping_add(at)
    }

    /// The gradient as `[position][channel]`.
    #[inline(always)]
    unsafe fn pack_gradient<V: Lanes<Elem = T>>(&self, tile: &Tile, packed: &mut [T]) {
        let pitch = self.window.row.output * self.window.col.output;
        // Whole rows lie one after the other, so they can be taken as one.
        let (lines, len) =
            if tile.cols == self.window.col.output { (1, tile.rows * tile.cols) } else { (tile.rows, tile.cols) };
        for t in 0..lines {
            for u in (0..len).step_by(V::N) {
                let cols = (len - u).min(V::N);
                for o in (0..self.width).step_by(V::N) {
                    let rows = tile.outputs.1.saturating_sub(o).min(V::N);
                    let at = self.gradient(tile, o, t).wrapping_add(u);
                    // SAFETY: `packed` holds rows * cols * width elements.
                    unsafe {
                        let to = packed.as_mut_ptr().add((t * len + u) * self.width + o);
                        V::transpose(Block { at, pitch, rows, cols }, to, self.width, V::N);
                    }
                }
            }
        }
    }

    #[inline(always)]
    unsafe fn by_channels<V: Lanes<Elem = T>, const R: usize>(
        &self,
        tile: &Tile,
        band: &[T],
        packed: &[T],
        partial: &mut [T],
    ) {
        let size = (tile.rows, tile.cols, self.layout.pitch);
        for first in (0..self.offsets.len()).step_by(self.tap_block) {
            let sums = &mut partial[first * self.width..(first + self.tap_block) * self.width];
            let taps = &self.offsets[first..first + self.tap_block];
            // SAFETY: `best_block` gives only these sizes, and above 6 only to 32 registers.
            unsafe {
                match self.tap_block {
                    1 => channel_block::<V, 1, R>(size, packed, band, taps, sums),
                    2 => channel_block::<V, 2, R>(size, packed, band, taps, sums),
                    3 => channel_block::<V, 3, R>(size, packed, band, taps, sums),
                    4 => channel_block::<V, 4, R>(size, packed, band, taps, sums),
                    6 => channel_block::<V, 6, R>(size, packed, band, taps, sums),
                    9 if V::ROWS > 6 => channel_block::<V, 9, R>(size, packed, band, taps, sums),
                    12 if V::ROWS > 6 => channel_block::<V, 12, R>(size, packed, band, taps, sums),
                    _ => channel_block::<V, 14, R>(size, packed, band, taps, sums),
                }
            }
        }
    }

    #[inline(always)]
    unsafe fn by_positions<V: Lanes<Elem = T>>(&self, tile: &Tile, band: &[T], partial: &mut [T]) {
        for first in (0..self.offsets.len()).step_by(self.tap_block) {
            let sums = &mut partial[first..first + self.tap_block];
            let taps = &self.offsets[first..first + self.tap_block];
            // SAFETY: `best_block` gives only these sizes.
            unsafe {
                match self.tap_block {
                    1 => self.position_block::<V, 1>(tile, band, taps, sums),
                    2 => self.position_block::<V, 2>(tile, band, taps, sums),
                    3 => self.position_block::<V, 3>(tile, band, taps, sums),
                    4 => self.position_block::<V, 4>(tile, band, taps, sums),
                    6 => self.position_block::<V, 6>(tile, band, taps, sums),
                    _ => self.position_block::<V, 9>(tile, band, taps, sums),
                }
            }
        }
    }

    #[inline(always)]
    unsafe fn position_block<V: Lanes<Elem = T>, const J: usize>(
        &self,
        tile: &Tile,
        band: &[T],
        taps: &[usize],
        sums: &mut [T],
    ) {
        let mut at = [0; J];
        at.copy_from_slice(taps);
        // SAFETY: taps stay inside the band and its slack.
        unsafe {
            let mut acc = [V::splat(T::default()); J];
            for t in 0..tile.rows {
                let g = self.gradient(tile, 0, t);
                let x = band.as_ptr().add(t * self.layout.pitch);
                for u in (0..tile.cols).step_by(V::N) {
                    let count = (tile.cols - u).min(V::N);
                    let row = if count == V::N { V::load(g.add(u)) } else { V::load_partial(g.add(u), count) };
                    rows::gradient::<V, J>(row, x.add(u), &at, count, &mut acc);
                }
            }
            for (slot, lanes) in sums.iter_mut().zip(acc) {
                *slot = *slot + lanes.sum();
            }
        }
    }

    /// Adds the copies in order and moves the sums to their places.
    fn add_up(&self, out: &mut [T]) {
        let outputs = self.window.outputs / self.window.groups;
        let per_group = outputs.div_ceil(self.width);
        let blocks = per_group * self.window.groups;
        let copy = self.width * self.offsets.len();
        let out = SharedMut::new(out.as_mut_ptr());
        threads::for_ranges(blocks, (1 << 14) / (copy * self.chunks).max(1) + 1, &|range| {
            for block in range {
                // SAFETY: all tasks of the first stage have ended.
                let first = unsafe { self.partial.slice(block * copy..(block + 1) * copy) };
                for chunk in 1..self.chunks {
                    let at = (chunk * blocks + block) * copy;
                    // SAFETY: as above.
                    let other = unsafe { self.partial.slice(at..at + copy) };
                    first.iter_mut().zip(other).for_each(|(sum, &mut value)| *sum = *sum + value);
                }
                let (group, output) = (block / per_group, block % per_group * self.width);
                for o in 0..self.width.min(outputs - output) {
                    let at = (group * outputs + output + o) * self.taps;
                    // SAFETY: each block owns its output channels.
                    let line = unsafe { out.slice(at..at + self.taps) };
                    line.iter_mut().zip(first[o..].iter().step_by(self.width)).for_each(|(to, &sum)| *to = sum);
                }
            }
        });
    }
}

#[inline(always)]
unsafe fn channel_block<V: Lanes, const J: usize, const R: usize>(
    size: (usize, usize, usize),
    packed: &[V::Elem],
    band: &[V::Elem],
    taps: &[usize],
    sums: &mut [V::Elem],
) {
    let mut at = [0; J];
    at.copy_from_slice(taps);
    // SAFETY: `sums` holds J rows of R registers; taps stay inside the band.
    unsafe {
        let mut acc = [[V::splat(V::Elem::default()); R]; J];
        wide::gradient::<V, J, R>(size, packed.as_ptr(), band.as_ptr(), &at, &mut acc);
        for (i, &value) in acc.as_flattened().iter().enumerate() {
            let slot = sums.as_mut_ptr().add(i * V::N);
            V::load(slot).add(value).store(slot);
        }
    }
}
