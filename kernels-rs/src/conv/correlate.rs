//! The correlation that is both the forward pass and the input gradient: plan, weight packing and tiles.

use super::axis::Axis;
use super::band::{Layout, Plane, SLACK};
use super::{implicit, rows, wide};
use crate::lanes::{Block, Kernel, Lanes, Real, lane_count, launch};
use crate::scratch::{Aligned, with_scratch};
use crate::threads::{self, SharedMut};
use std::mem::MaybeUninit;

/// Bytes of source that a task copies at a time: well inside a second-level cache, beside the weights.
const BAND_BYTES: usize = 256 << 10;
/// Tasks to aim for. By shape, not by threads, though the cut does not change the result here.
const TASKS: usize = 32;

/// `out[n, o, t, u] = bias[o] + sum over c and taps of w[o, c, tap] * source[n, c, ...]`, per group.
pub struct Correlation<'a, T> {
    /// Batch, groups.
    pub batch: usize,
    /// Groups.
    pub groups: usize,
    /// Channels of the source, per group.
    pub channels: usize,
    /// Channels of the result, per group.
    pub outputs: usize,
    /// Rows and columns of the source.
    pub source_size: (usize, usize),
    /// Rows and columns of the result.
    pub out_size: (usize, usize),
    /// The source, row-major.
    pub source: &'a [T],
    /// The kernel.
    pub weight: Weights<'a, T>,
    /// One per output channel.
    pub bias: Option<&'a [T]>,
    /// Row axis.
    pub row_axis: &'a Axis,
    /// Column axis.
    pub col_axis: &'a Axis,
}

/// A kernel tensor with the meaning of its axes.
#[derive(Clone, Copy)]
pub struct Weights<'a, T> {
    /// Row-major `[.., .., kh, kw]`.
    pub data: &'a [T],
    /// From one group to the next.
    pub group: usize,
    /// From one output channel to the next.
    pub output: usize,
    /// From one source channel to the next.
    pub channel: usize,
    /// Columns of the kernel.
    pub kernel_cols: usize,
}

/// What all tasks share.
struct Job<'a, T> {
    call: &'a Correlation<'a, T>,
    layout: Layout,
    offsets: Vec<usize>,
    packed: Aligned<T>,
    /// Packed elements per group.
    packed_group: usize,
    lanes_are_channels: bool,
    out: SharedMut<T>,
    row_tiles: usize,
    col_tiles: usize,
    /// Output channels per task, a multiple of the block.
    output_chunk: usize,
}

/// Runs the correlation, writing the results at the places that the axes name.
///
/// # Safety
/// `out` holds `batch * groups * outputs * out_size` elements that nobody else touches.
pub unsafe fn run<T: Real>(call: &Correlation<'_, T>, out: SharedMut<T>) {
    let (row_axis, col_axis) = (call.row_axis, call.col_axis);
    if call.batch * call.groups * call.outputs * row_axis.count * col_axis.count == 0 {
        return;
    }
    let positions = row_axis.count * col_axis.count;
    let taps = call.channels * row_axis.taps.len() * col_axis.taps.len();
    let by_positions = call.outputs * row_axis.count * col_axis.count.next_multiple_of(lane_count::<T>()) * (taps + 1);
    let images = if positions < 256 { call.batch } else { 1 };
    if implicit::cost(call.outputs, taps, images * positions, lane_count::<T>()) * lane_count::<T>() < images * by_positions {
        // SAFETY: the caller's.
        return unsafe { implicit::run(call, out) };
    }
    let planes = call.batch * call.groups;
    let budget = BAND_BYTES / size_of::<T>();
    let layout =
        Layout::fit(row_axis, col_axis, call.channels, budget, TASKS.div_ceil(planes).min(row_axis.count.div_ceil(4)));
    let (row_tiles, col_tiles) = (row_axis.count.div_ceil(layout.rows), col_axis.count.div_ceil(layout.cols));
    let offsets = layout.offsets(row_axis, col_axis, call.channels);
    let lanes = lane_count::<T>();
    let lanes_are_channels = prefer_channels(call.outputs, layout.cols, offsets.len(), lanes);
    let block = if lanes_are_channels { 2 * lanes } else { 8 };
    let chunks = TASKS.div_ceil(planes * row_tiles * col_tiles).min(call.outputs.div_ceil(block));
    let output_chunk = call.outputs.div_ceil(block).div_ceil(chunks) * block;
    let (packed, packed_group) = pack(call, offsets.len(), if lanes_are_channels { lanes } else { 1 });
    let job = Job {
        call,
        layout,
        offsets,
        packed,
        packed_group,
        lanes_are_channels,
        out,
        row_tiles,
        col_tiles,
        output_chunk,
    };
    let chunks = call.outputs.div_ceil(output_chunk);
    let len = job.layout.len(call.channels);
    threads::parallel(planes * row_tiles * col_tiles * chunks, &|index| {
        with_scratch(len, |band| launch(Tile { job: &job, band, index }));
    });
}

/// Whether lanes should be output channels (else neighbouring positions): the estimated cycles per row decide.
fn prefer_channels(outputs: usize, cols: usize, taps: usize, lanes: usize) -> bool {
    // 8 and 1: moving a finished register to its place. 1.1: registers that straddle cache lines.
    let by_channels = outputs.next_multiple_of(lanes) * cols * (taps + 8);
    let by_positions = outputs * cols.next_multiple_of(lanes) * (taps + 1);
    by_channels * 10 < by_positions * 11
}

/// Weights in the order in which the inner loops read them: blocks of output channels, inside a block tap by tap. With
/// `lanes > 1` a block is two registers, or one at the end, filled up with zeros; else it is [`block_of`] channels.
fn pack<T: Real>(call: &Correlation<'_, T>, taps: usize, lanes: usize) -> (Aligned<T>, usize) {
    let width = call.outputs.next_multiple_of(lanes);
    let group = width * taps;
    let mut packed = Aligned::zeros(group * call.groups);
    let start = SharedMut::new(packed.as_mut_ptr());
    let step = if lanes > 1 { 2 * lanes } else { 8 };
    let blocks = width.div_ceil(step);
    let grain = (1 << 14) / (step * taps).max(1) + 1;
    threads::for_ranges(blocks * call.groups, grain, &|range| {
        for index in range {
            let (g, first) = (index / blocks, index % blocks * step);
            let last = (first + step).min(width);
            // SAFETY: each block is written by one task.
            let part = unsafe { start.slice(g * group + first * taps..g * group + last * taps) };
            let mut rest = &mut *part;
            let mut o = first;
            while o < last {
                let size = if lanes > 1 { last - first } else { block_of(last - o) };
                let (head, tail) = rest.split_at_mut(size * taps);
                pack_block(call, g, o, size, head);
                rest = tail;
                o += size;
            }
        }
    });
    (packed, group)
}

fn pack_block<T: Real>(call: &Correlation<'_, T>, g: usize, first: usize, size: usize, block: &mut [T]) {
    let weight = &call.weight;
    let filled = size.min(call.outputs - first);
    let mut lines = block.chunks_exact_mut(size);
    for c in 0..call.channels {
        for row in &call.row_axis.taps {
            for col in &call.col_axis.taps {
                let tap = row.index * weight.kernel_cols + col.index;
                let at = g * weight.group + first * weight.output + c * weight.channel + tap;
                let values = weight.data[at..].iter().step_by(weight.output);
                let line = lines.next().expect("one line per tap");
                line[..filled].iter_mut().zip(values).for_each(|(slot, &value)| *slot = value);
            }
        }
    }
}

/// Output channels in the next block when lanes are positions and so many channels are left.
fn block_of(left: usize) -> usize {
    match left {
        8.. => 8,
        4.. => 4,
        2.. => 2,
        _ => 1,
    }
}

/// One task.
struct Tile<'a, T> {
    job: &'a Job<'a, T>,
    band: &'a mut [T],
    index: usize,
}

/// Where a tile lies.
struct Place {
    image: usize,
    group: usize,
    outputs: (usize, usize),
    first: (usize, usize),
    rows: usize,
    cols: usize,
}

impl<T: Real> Kernel<T> for Tile<'_, T> {
    #[inline(always)]
    unsafe fn run<V: Lanes<Elem = T>>(self) {
        let Tile { job, band, index } = self;
        let place = job.place(index);
        // SAFETY: the band has room for the slack; the tile belongs to this task.
        unsafe {
            job.fill::<V>(&place, band);
            if job.lanes_are_channels {
                job.by_channels::<V>(&place, band);
            } else {
                job.by_positions::<V>(&place, band);
            }
        }
    }
}

impl<T: Real> Job<'_, T> {
    fn place(&self, index: usize) -> Place {
        let call = self.call;
        let chunks = call.outputs.div_ceil(self.output_chunk);
        let (index, chunk) = (index / chunks, index % chunks);
        let (index, col_tile) = (index / self.col_tiles, index % self.col_tiles);
        let (plane, row_tile) = (index / self.row_tiles, index % self.row_tiles);
        let first = (row_tile * self.layout.rows, col_tile * self.layout.cols);
        Place {
            image: plane / call.groups,
            group: plane % call.groups,
            outputs: (chunk * self.output_chunk, ((chunk + 1) * self.output_chunk).min(call.outputs)),
            first,
            rows: self.layout.rows.min(call.row_axis.count - first.0),
            cols: self.layout.cols.min(call.col_axis.count - first.1),
        }
    }

    #[inline(always)]
    unsafe fn fill<V: Lanes<Elem = T>>(&self, place: &Place, band: &mut [T]) {
        let call = self.call;
        let (rows, cols) = call.source_size;
        let first_channel = (place.image * call.groups + place.group) * call.channels;
        for c in 0..call.channels {
            // SAFETY: inside the source; the band holds all channels and the slack.
            unsafe {
                let at = call.source.as_ptr().add((first_channel + c) * rows * cols);
                let to = band.as_mut_ptr().add(c * self.layout.channel);
                self.layout.fill::<V>((call.row_axis, call.col_axis), place.first, Plane { at, rows, cols }, to);
            }
        }
    }

    /// Address of the result for an output channel of the group, and tile position `(t, u)`.
    #[inline(always)]
    fn target(&self, place: &Place, output: usize, t: usize, u: usize) -> *mut T {
        let call = self.call;
        let plane = (place.image * call.groups + place.group) * call.outputs + output;
        let row = call.row_axis.out_start + (place.first.0 + t) * call.row_axis.out_step;
        let col = call.col_axis.out_start + (place.first.1 + u) * call.col_axis.out_step;
        let at = (plane * call.out_size.0 + row) * call.out_size.1 + col;
        self.out.ptr().wrapping_add(at)
    }

    #[inline(always)]
    unsafe fn by_channels<V: Lanes<Elem = T>>(&self, place: &Place, band: &[T]) {
        let block = 2 * V::N;
        let mut first = place.outputs.0;
        while first < place.outputs.1 {
            let count = (place.outputs.1 - first).min(block);
            let strip = Strip { job: self, place, band, first, count };
            // SAFETY: passed on.
            unsafe { if count > V::N { strip.run::<V, 2>() } else { strip.run::<V, 1>() } }
            first += block;
        }
    }

    #[inline(always)]
    unsafe fn by_positions<V: Lanes<Elem = T>>(&self, place: &Place, band: &[T]) {
        let mut first = place.outputs.0;
        while first < place.outputs.1 {
            let count = block_of(place.outputs.1 - first);
            let strip = Strip { job: self, place, band, first, count };
            // SAFETY: passed on.
            unsafe {
                match (count, V::ROWS > 6) {
                    (8, true) => strip.positions::<V, 8, 3>(),
                    (8, false) => strip.positions::<V, 8, 1>(),
                    (4, true) => strip.positions::<V, 4, 4>(),
                    (4, false) => strip.positions::<V, 4, 2>(),
                    (2, _) => strip.positions::<V, 2, 4>(),
                    _ => strip.positions::<V, 1, 8>(),
                }
            }
            first += count;
        }
    }
}

/// A block of output channels over one tile.
struct Strip<'a, T> {
    job: &'a Job<'a, T>,
    place: &'a Place,
    band: &'a [T],
    first: usize,
    count: usize,
}

impl<T: Real> Strip<'_, T> {
    #[inline(always)]
    fn weights(&self) -> *const T {
        let job = self.job;
        job.packed.as_ptr().wrapping_add(self.place.group * job.packed_group + self.first * job.offsets.len())
    }

    #[inline(always)]
    fn bias(&self, output: usize) -> T {
        let at = self.place.group * self.job.call.outputs + output;
        self.job.call.bias.map_or(T::default(), |bias| bias[at])
    }

    /// Rows of the tile in runs of positions.
    #[inline(always)]
    unsafe fn run<V: Lanes<Elem = T>, const R: usize>(&self) {
        let mut bias = [T::default(); 64];
        for (i, slot) in bias[..self.count].iter_mut().enumerate() {
            *slot = self.bias(self.first + i);
        }
        let cols = self.place.cols;
        let run = run_length(cols, V::ROWS);
        for t in 0..self.place.rows {
            let mut u = 0;
            while u < cols {
                // The last run starts early rather than being short, where it can.
                let at = if u + run > cols { cols.saturating_sub(run) } else { u };
                // SAFETY: `run_length` gives only the lengths below; positions after the row are slack.
                unsafe {
                    match run {
                        1 => self.block::<V, 1, R>(t, at, &bias),
                        2 => self.block::<V, 2, R>(t, at, &bias),
                        3 => self.block::<V, 3, R>(t, at, &bias),
                        4 => self.block::<V, 4, R>(t, at, &bias),
                        6 => self.block::<V, 6, R>(t, at, &bias),
                        7 if V::ROWS > 6 => self.block::<V, 7, R>(t, at, &bias),
                        8 if V::ROWS > 6 => self.block::<V, 8, R>(t, at, &bias),
                        10 if V::ROWS > 6 => self.block::<V, 10, R>(t, at, &bias),
                        12 if V::ROWS > 6 => self.block::<V, 12, R>(t, at, &bias),
                        _ => self.block::<V, 14, R>(t, at, &bias),
                    }
                }
                u += run;
            }
        }
    }

    #[inline(always)]
    unsafe fn block<V: Lanes<Elem = T>, const J: usize, const R: usize>(&self, t: usize, u: usize, bias: &[T; 64]) {
        let job = self.job;
        // SAFETY: taps stay inside the band (and its slack); the results belong to this task.
        unsafe {
            let mut acc = [[V::splat(T::default()); R]; J];
            for r in 0..R {
                let start = V::load(bias.as_ptr().add(r * V::N));
                for line in &mut acc {
                    line[r] = start;
                }
            }
            let x = self.band.as_ptr().add(t * job.layout.pitch + u);
            wide::correlate::<V, J, R>(&job.offsets, self.weights(), x, &mut acc);
            let mut tile = MaybeUninit::<[[V; R]; J]>::uninit();
            let start = tile.as_mut_ptr().cast::<T>();
            for (i, value) in acc.as_flattened().iter().enumerate() {
                value.store(start.add(i * V::N));
            }
            self.put::<V>(start, R * V::N, (t, u), J.min(self.place.cols - u));
        }
    }

    /// Moves a tile `[position][channel]` to its places.
    #[inline(always)]
    unsafe fn put<V: Lanes<Elem = T>>(&self, tile: *const T, width: usize, (t, u): (usize, usize), positions: usize) {
        let step = self.job.call.col_axis.out_step;
        let plane = self.job.call.out_size.0 * self.job.call.out_size.1;
        for first in (0..self.count).step_by(V::N) {
            let to = self.job.target(self.place, self.first + first, t, u);
            let channels = (self.count - first).min(V::N);
            // SAFETY: the results belong to this task.
            unsafe {
                if step == 1 {
                    for p in (0..positions).step_by(V::N) {
                        let rows = (positions - p).min(V::N);
                        let at = tile.add(p * width + first);
                        V::transpose(Block { at, pitch: width, rows, cols: channels }, to.add(p), plane, rows);
                    }
                } else {
                    for c in 0..channels {
                        for p in 0..positions {
                            *to.add(c * plane + p * step) = *tile.add(p * width + first + c);
                        }
                    }
                }
            }
        }
    }

    /// All registers of neighbouring positions of the tile, `Q` at a time.
    #[inline(always)]
    unsafe fn positions<V: Lanes<Elem = T>, const M: usize, const Q: usize>(&self) {
        let (job, place) = (self.job, self.place);
        let total = place.rows * place.cols.div_ceil(V::N);
        let plane = job.call.out_size.0 * job.call.out_size.1;
        let mut bias = [T::default(); M];
        for (m, slot) in bias.iter_mut().enumerate() {
            *slot = self.bias(self.first + m);
        }
        let (mut t, mut u) = (0, 0);
        let mut first = 0;
        while first < total {
            let mut at = [(t, u); Q];
            let filled = Q.min(total - first);
            for slot in &mut at[..filled] {
                *slot = (t, u);
                u += V::N;
                if u >= place.cols {
                    (t, u) = (t + 1, 0);
                }
            }
            // SAFETY: registers past the end repeat an earlier one; lanes past the row read slack and are not stored.
            unsafe {
                let mut x = [self.band.as_ptr(); Q];
                for q in 0..Q {
                    x[q] = x[q].add(at[q].0 * job.layout.pitch + at[q].1);
                }
                let mut acc = [[V::splat(T::default()); Q]; M];
                for m in 0..M {
                    acc[m] = [V::splat(bias[m]); Q];
                }
                rows::correlate::<V, M, Q>(&job.offsets, self.weights(), x, &mut acc);
                for q in 0..filled {
                    let to = job.target(place, self.first, at[q].0, at[q].1);
                    for (m, line) in acc.iter().enumerate() {
                        self.put_register(line[q], to.add(m * plane), (place.cols - at[q].1).min(V::N));
                    }
                }
            }
            first += Q;
        }
    }

    #[inline(always)]
    unsafe fn put_register<V: Lanes<Elem = T>>(&self, value: V, to: *mut T, count: usize) {
        let step = self.job.call.col_axis.out_step;
        // SAFETY: the results belong to this task.
        unsafe {
            if step == 1 && count == V::N {
                value.store(to);
            } else if step == 1 {
                value.store_partial(to, count);
            } else {
                let mut lanes = [T::default(); 16];
                value.store(lanes.as_mut_ptr());
                for (i, &lane) in lanes[..count].iter().enumerate() {
                    *to.add(i * step) = lane;
                }
            }
        }
    }
}

/// Positions per run: the rows of a register tile, evened out over the row.
fn run_length(cols: usize, most: usize) -> usize {
    let runs = cols.div_ceil(most);
    match cols.div_ceil(runs) {
        5 => 6,
        9 => 10,
        11 => 12,
        13 => 14,
        run => run,
    }
}

const _: () = assert!(SLACK >= 2 * 16 + 14);
