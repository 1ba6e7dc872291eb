//! The gradient with respect to the kernel: `dw[o, c, tap] = sum over images and positions of g[o, p] * x[c, p + tap]`.
//!
//! The positions are cut into chunks by shape alone; each chunk sums into its own copy, and the copies are added in
//! order, so the result does not depend on the number of threads.

use super::Window;
use super::axis::{Axis, WindowAxis};
use super::band::{Layout, Plane};
use super::{rows, wide};
use crate::array::Array;
use crate::error::Result;
use crate::machine::lanes::{Block, Kernel, Lanes, Real, lane_count, launch};
use crate::machine::threads::{self, SharedMut};
use crate::memory::scratch::{grow, with_scratch};

/// Bytes of source that a task copies at a time when lanes are positions.
const BAND_BYTES: usize = 192 << 10;
/// Tasks to aim for: by shape, not by threads, since the parts of a sum are added up.
const TASKS: usize = 32;
/// Bytes of partial sums to stay below.
const PARTIAL_BYTES: usize = 64 << 20;
/// Positions of a tile when lanes are channels: two registers of each fill half of the first-level cache.
const POSITIONS: usize = 128;
/// Taps of a task, whose sums stay in the second-level cache.
const TAPS: usize = 1152;
/// Sums of a task that computes several lane blocks.
const SUMS: usize = 64 << 10;

struct Job<'a, T> {
    window: &'a Window,
    row_axis: Axis,
    col_axis: Axis,
    /// From a position to the next, in the band.
    step: (usize, usize),
    /// Rows and columns of positions of a tile.
    tile: (usize, usize),
    layout: Layout,
    x: &'a [T],
    g: &'a [T],
    /// Where each tap reads, filled up to a whole number of tap blocks.
    offsets: Vec<usize>,
    /// Input channels of a task.
    channels: usize,
    tap_block: usize,
    /// Output channels per lane block; 1 when lanes are positions.
    width: usize,
    /// Lane blocks of a task, which share the band.
    blocks: usize,
    /// Tasks for the same part of the result, each with its own copy.
    chunks: usize,
    row_tiles: usize,
    partial: SharedMut<T>,
}

/// Computes all of `out`, `[outputs, inputs / groups, kh, kw]`.
pub fn run<T: Real>(window: &Window, g: &[T], x: &[T], out: &mut [T]) -> Result<()> {
    let channels = window.inputs / window.groups;
    let outputs = window.outputs / window.groups;
    let kernel = window.row.kernel * window.col.kernel;
    let cols = window.col.output;
    let lanes = lane_count::<T>();
    let parts = (channels * kernel).div_ceil(TAPS).min(channels);
    let width = lane_block(outputs, channels * kernel, cols, lanes);
    let channels = if width == 1 { channels } else { channels.div_ceil(parts).next_multiple_of(4).min(channels) };
    let tap_block = tap_block(width, channels * kernel, lanes);
    let planes = window.batch * window.groups * outputs.div_ceil(width);
    let mut job = Job::new(window, (g, x), width, channels, TASKS.div_ceil(planes));
    job.tap_block = tap_block;
    let enough = |blocks: usize| {
        blocks * width * channels * kernel <= SUMS
            && outputs.div_ceil(blocks * width) * parts * window.batch * window.groups * job.row_tiles >= TASKS / 4
    };
    job.blocks = (2..=outputs.div_ceil(width).min(8)).rev().find(|&blocks| enough(blocks)).unwrap_or(1);
    let units = job.units();
    grow(&mut job.offsets, (channels * kernel).next_multiple_of(tap_block), 0);
    let copy = job.copy();
    let room = (PARTIAL_BYTES / size_of::<T>() / (units * copy)).max(1);
    job.chunks = TASKS.div_ceil(units).min(window.batch * job.row_tiles).min(room);
    let mut partial = Array::uninit(T::DTYPE, &[job.chunks * units * copy])?;
    job.partial = SharedMut::new(partial.mut_ptr::<T>());
    let len = job.layout.len(channels) + job.tile.0 * job.tile.1 * width.max(lanes);
    threads::parallel(job.chunks * units, &|index| {
        with_scratch(len, |scratch| launch(Chunk { job: &job, index, scratch }));
    });
    job.add_up(out);
    Ok(())
}

/// The axis of a band whose rows stay as they are: results one source element apart, of which every `stride`th counts.
fn unphased(window: WindowAxis) -> Axis {
    Axis::forward(WindowAxis { output: (window.output - 1) * window.stride + 1, stride: 1, ..window })
}

/// `count` in equal parts of at most `most`.
fn equal_parts(count: usize, most: usize) -> usize {
    count.div_ceil(count.div_ceil(most.max(1)))
}

/// Output channels per lane block: lanes are output channels unless those would stay mostly empty.
fn lane_block(outputs: usize, taps: usize, cols: usize, lanes: usize) -> usize {
    let by_channels = outputs.next_multiple_of(lanes) * cols * (taps + 4);
    let by_positions = outputs * cols.next_multiple_of(lanes) * (taps + 1);
    match by_channels * 10 < by_positions * 13 {
        true if outputs > lanes => 2 * lanes,
        true => lanes,
        false => 1,
    }
}

/// Taps whose sums stay in registers together.
fn tap_block(width: usize, taps: usize, lanes: usize) -> usize {
    let wide = lanes >= 8 && crate::machine::simd::level() == crate::machine::simd::Level::Avx512;
    match (width, wide) {
        (1, _) => best_block(taps, 9),
        (_, true) => best_block(taps, 14),
        (_, false) => best_block(taps, 6),
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
#[derive(Clone, Copy)]
struct Tile {
    image: usize,
    group: usize,
    /// Of the group.
    first_channel: usize,
    /// First output channel, and where the group ends.
    outputs: (usize, usize),
    first: (usize, usize),
    rows: usize,
    cols: usize,
}

impl<T: Real> Kernel<T> for Chunk<'_, T> {
    #[inline(always)]
    unsafe fn run<V: Lanes<Elem = T>>(self) {
        let job = self.job;
        let (unit, chunk) = (self.index / job.chunks, self.index % job.chunks);
        let (group, first_output, first_channel) = job.unit(unit);
        let outputs = job.window.outputs / job.window.groups;
        let turns = job.window.batch * job.row_tiles;
        let copy = job.copy();
        let at = (chunk * job.units() + unit) * copy;
        // SAFETY: each task has its own copy.
        let partial = job.partial.slice(at..at + copy);
        partial.fill(T::default());
        let (band, packed) = self.scratch.split_at_mut(job.layout.len(job.channels));
        for turn in chunk * turns / job.chunks..(chunk + 1) * turns / job.chunks {
            let (image, row_tile) = (turn / job.row_tiles, turn % job.row_tiles);
            let mut first_col = 0;
            while first_col < job.window.col.output {
                let first = (row_tile * job.tile.0, first_col);
                let tile = Tile {
                    image,
                    group,
                    first_channel,
                    outputs: (first_output, outputs),
                    first,
                    rows: job.tile.0.min(job.window.row.output - first.0),
                    cols: job.tile.1.min(job.window.col.output - first.1),
                };
                // SAFETY: the scratch was sized for a full tile; the machine has the instructions.
                job.add_tile::<V>(&tile, band, packed, partial);
                first_col += job.tile.1;
            }
        }
    }
}

impl<'a, T: Real> Job<'a, T> {
    fn new(window: &'a Window, (g, x): (&'a [T], &'a [T]), width: usize, channels: usize, tiles: usize) -> Self {
        let (rows, cols) = (window.row.output, window.col.output);
        let (row_axis, col_axis, step, tile) = if width == 1 {
            let (row_axis, col_axis) = (Axis::forward(window.row), Axis::forward(window.col));
            let fit = Layout::fit(&row_axis, &col_axis, channels, BAND_BYTES / size_of::<T>(), tiles);
            (row_axis, col_axis, (1, 1), (fit.rows, fit.cols))
        } else {
            let cols = equal_parts(cols, POSITIONS + POSITIONS / 4);
            let tile = (equal_parts(rows, POSITIONS / cols), cols);
            (unphased(window.row), unphased(window.col), (window.row.stride, window.col.stride), tile)
        };
        let layout = Layout::new(&row_axis, &col_axis, (tile.0 - 1) * step.0 + 1, (tile.1 - 1) * step.1 + 1);
        let offsets = layout.offsets(&row_axis, &col_axis, channels);
        let row_tiles = rows.div_ceil(tile.0);
        let partial = SharedMut::new(std::ptr::null_mut());
        let (tap_block, chunks, blocks) = (1, 1, 1);
        Self {
            window,
            row_axis,
            col_axis,
            step,
            tile,
            layout,
            x,
            g,
            offsets,
            channels,
            tap_block,
            width,
            blocks,
            chunks,
            row_tiles,
            partial,
        }
    }

    /// Parts of the result.
    fn units(&self) -> usize {
        let (outputs, inputs) = (self.window.outputs / self.window.groups, self.window.inputs / self.window.groups);
        outputs.div_ceil(self.width * self.blocks) * self.window.groups * inputs.div_ceil(self.channels)
    }

    /// Group, first output channel and first input channel of a part, in the group.
    fn unit(&self, index: usize) -> (usize, usize, usize) {
        let (outputs, inputs) = (self.window.outputs / self.window.groups, self.window.inputs / self.window.groups);
        let (index, part) = (index / inputs.div_ceil(self.channels), index % inputs.div_ceil(self.channels));
        let blocks = outputs.div_ceil(self.width * self.blocks);
        (index / blocks, index % blocks * self.width * self.blocks, part * self.channels)
    }

    /// Sums of a part, block by block.
    fn copy(&self) -> usize {
        self.blocks * self.width * self.offsets.len()
    }
}

impl<T: Real> Job<'_, T> {
    #[inline(always)]
    unsafe fn add_tile<V: Lanes<Elem = T>>(&self, tile: &Tile, band: &mut [T], packed: &mut [T], partial: &mut [T]) {
        let window = self.window;
        let channels = window.inputs / window.groups;
        let (rows, cols) = (window.row.input, window.col.input);
        let first = (tile.first.0 * self.step.0, tile.first.1 * self.step.1);
        for c in 0..self.channels.min(channels - tile.first_channel) {
            let plane = (tile.image * window.groups + tile.group) * channels + tile.first_channel + c;
            // SAFETY: inside the source; the band holds all channels and the slack.
            let at = self.x.as_ptr().add(plane * rows * cols);
            let to = band.as_mut_ptr().add(c * self.layout.channel);
            self.layout.fill::<V>((&self.row_axis, &self.col_axis), first, Plane { at, rows, cols }, to);
        }
        for (block, sums) in partial.chunks_exact_mut(self.width * self.offsets.len()).enumerate() {
            let first = tile.outputs.0 + block * self.width;
            if first >= tile.outputs.1 {
                return;
            }
            let part = Tile { outputs: (first, self.width.min(tile.outputs.1 - first)), ..*tile };
            // SAFETY: the band was filled for the tile, this is a block of it.
            self.add_block::<V>(&part, band, packed, sums);
        }
    }

    /// Adds one lane block of a tile, whose `outputs` are the first channel and how many.
    #[inline(always)]
    unsafe fn add_block<V: Lanes<Elem = T>>(&self, tile: &Tile, band: &[T], packed: &mut [T], sums: &mut [T]) {
        if self.width == 1 {
            self.by_positions::<V>(tile, band, sums);
        } else {
            self.pack_gradient::<V>(tile, packed);
            if self.width > V::N {
                self.by_channels::<V, 2>(tile, band, packed, sums);
            } else {
                self.by_channels::<V, 1>(tile, band, packed, sums);
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
                    let to = packed.as_mut_ptr().add((t * len + u) * self.width + o);
                    V::transpose(Block { at, pitch, rows, cols }, to, self.width, V::N);
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
        let size = (tile.rows, tile.cols);
        let step = (self.layout.pitch * self.step.0, self.step.1);
        for first in (0..self.offsets.len()).step_by(self.tap_block) {
            let sums = &mut partial[first * self.width..(first + self.tap_block) * self.width];
            let taps = &self.offsets[first..first + self.tap_block];
            // SAFETY: `best_block` gives only these sizes, and above 6 only to 32 registers.
            match self.tap_block {
                1 => channel_block::<V, 1, R>((size, step), packed, band, taps, sums),
                2 => channel_block::<V, 2, R>((size, step), packed, band, taps, sums),
                3 => channel_block::<V, 3, R>((size, step), packed, band, taps, sums),
                4 => channel_block::<V, 4, R>((size, step), packed, band, taps, sums),
                6 => channel_block::<V, 6, R>((size, step), packed, band, taps, sums),
                9 if V::ROWS > 6 => channel_block::<V, 9, R>((size, step), packed, band, taps, sums),
                12 if V::ROWS > 6 => channel_block::<V, 12, R>((size, step), packed, band, taps, sums),
                _ => channel_block::<V, 14, R>((size, step), packed, band, taps, sums),
            }
        }
    }

    #[inline(always)]
    unsafe fn by_positions<V: Lanes<Elem = T>>(&self, tile: &Tile, band: &[T], partial: &mut [T]) {
        for first in (0..self.offsets.len()).step_by(self.tap_block) {
            let sums = &mut partial[first..first + self.tap_block];
            let taps = &self.offsets[first..first + self.tap_block];
            // SAFETY: `best_block` gives only these sizes.
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

    /// Adds the copies in order and moves the sums to their places.
    fn add_up(&self, out: &mut [T]) {
        let out = SharedMut::new(out.as_mut_ptr());
        let pieces = self.blocks * self.offsets.len().div_ceil(PIECE);
        let grain = (1 << 14) / (PIECE * self.width * self.chunks) + 1;
        threads::for_ranges(self.units() * pieces, grain, &|range| {
            for index in range {
                let (block, piece) = (index % pieces % self.blocks, index % pieces / self.blocks);
                launch(Piece { job: self, unit: index / pieces, block, first: piece * PIECE, out });
            }
        });
    }
}

/// Taps that are moved at a time.
const PIECE: usize = 128;

/// Some taps of a part of the result, to be added up and moved.
struct Piece<'a, T> {
    job: &'a Job<'a, T>,
    unit: usize,
    block: usize,
    first: usize,
    out: SharedMut<T>,
}

impl<T: Real> Kernel<T> for Piece<'_, T> {
    #[inline(always)]
    unsafe fn run<V: Lanes<Elem = T>>(self) {
        let Piece { job, unit, block, first, out } = self;
        let window = job.window;
        let (outputs, channels) = (window.outputs / window.groups, window.inputs / window.groups);
        let kernel = window.row.kernel * window.col.kernel;
        let width = job.width;
        let (group, output, channel) = job.unit(unit);
        let output = output + block * width;
        if output >= outputs {
            return;
        }
        let last = (first + PIECE).min(job.offsets.len());
        let place = |chunk: usize| {
            let at = (chunk * job.units() + unit) * job.copy() + block * width * job.offsets.len();
            at + first * width..at + last * width
        };
        // SAFETY: all tasks of the first stage have ended; each piece is its own.
        let sums = job.partial.slice(place(0));
        for chunk in 1..job.chunks {
            // SAFETY: of another chunk, so it does not meet `sums`.
            let other = job.partial.slice(place(chunk));
            sums.iter_mut().zip(other).for_each(|(sum, &mut value)| *sum = *sum + value);
        }
        let taps = job.channels.min(channels - channel) * kernel;
        let pitch = channels * kernel;
        let start = ((group * outputs + output) * channels + channel) * kernel;
        for tap in (first..last.min(taps)).step_by(V::N) {
            let rows = (last.min(taps) - tap).min(V::N);
            for o in (0..width.min(outputs - output)).step_by(V::N) {
                let cols = (width.min(outputs - output) - o).min(V::N);
                // SAFETY: inside the sums; each piece owns its places in the result.
                let at = sums.as_ptr().add((tap - first) * width + o);
                let to = out.ptr().add(start + o * pitch + tap);
                V::transpose(Block { at, pitch: width, rows, cols }, to, pitch, rows);
            }
        }
    }
}

#[inline(always)]
unsafe fn channel_block<V: Lanes, const J: usize, const R: usize>(
    walk: ((usize, usize), (usize, usize)),
    packed: &[V::Elem],
    band: &[V::Elem],
    taps: &[usize],
    sums: &mut [V::Elem],
) {
    let mut at = [0; J];
    at.copy_from_slice(taps);
    // SAFETY: `sums` holds J rows of R registers; taps stay inside the band.
    let mut acc = [[V::splat(V::Elem::default()); R]; J];
    wide::gradient::<V, J, R>(walk, packed.as_ptr(), band.as_ptr(), &at, &mut acc);
    for (i, &value) in acc.as_flattened().iter().enumerate() {
        let slot = sums.as_mut_ptr().add(i * V::N);
        V::load(slot).add(value).store(slot);
    }
}
