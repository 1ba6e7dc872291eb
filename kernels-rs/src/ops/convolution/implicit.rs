//! The correlation as a matrix product `[outputs, taps] @ [taps, positions]` whose right side is never stored: blocks of
//! source channels are copied into a band, and panels of a few registers of positions are packed from it through the
//! offset table, as they are needed. Weights are read where they lie, results are written where they belong.
//!
//! Every result is one chain of multiply-adds over channels and taps in order, so it depends on nothing else.

use super::Correlation;
use super::axis::Axis;
use super::band::{Layout, Plane};
use super::panel::{self, LANES, REGISTERS, Segment, Segments};
use crate::machine::lanes::{Kernel, Lanes, Real, lane_count, launch};
use crate::machine::threads::{self, SharedMut};
use crate::memory::scratch::{reserved, with_scratch};
use std::mem::MaybeUninit;

/// Taps per block: a panel of them is a good part of the first-level cache, and its source stays in the second.
const BLOCK: usize = 256;
/// Elements of partial sums that a task keeps, inside the second-level cache.
const SUMS: usize = 64 << 10;
/// Elements of the band, likewise.
const BAND: usize = 96 << 10;

/// How the result is cut into tasks.
#[derive(Clone, Copy, Debug)]
struct Cut {
    images: usize,
    rows: usize,
    cols: usize,
    outputs: usize,
    /// Source channels per block.
    channels: usize,
}

struct Plan<'a, T> {
    call: &'a Correlation<'a, T>,
    out: SharedMut<T>,
    cut: Cut,
    layout: Layout,
    /// Where each tap of a block reads in the band, and in a row of weights.
    offsets: Vec<usize>,
    taps: Vec<usize>,
    row_tiles: usize,
    col_tiles: usize,
    chunks: usize,
}

/// Whether the panels pay, against computing straight from the band.
pub fn applies<T: Real>(call: &Correlation<'_, T>) -> bool {
    let (rows, cols, lanes) = (call.row_axis.count, call.col_axis.count, lane_count::<T>());
    let taps = call.channels * call.row_axis.taps.len() * call.col_axis.taps.len();
    let from_band = call.outputs * rows * cols.next_multiple_of(lanes) * (taps + 1);
    let images = if rows * cols < 256 { call.batch } else { 1 };
    // Weights are brought in the order of the band at each call, whatever the batch.
    let reordered = call.outputs * taps * lanes * images / call.batch;
    cost(call.outputs, taps, images * rows * cols, lanes) * lanes < images * from_band + reordered
}

/// Cycles per register of multiply-adds, roughly, for `outputs` channels of one group over `positions`.
fn cost(outputs: usize, taps: usize, positions: usize, lanes: usize) -> usize {
    // 3 for packing a register, 6 for moving a result.
    positions.div_ceil(lanes) * (taps * (outputs.next_multiple_of(2) + 3) + 6 * outputs)
}

/// Runs the correlation, writing the results at the places that the axes name.
///
/// # Safety
/// `out` holds `batch * groups * outputs * out_size` elements that nobody else touches; no size is 0.
pub unsafe fn run<T: Real>(call: &Correlation<'_, T>, out: SharedMut<T>) {
    let (row_axis, col_axis) = (call.row_axis, call.col_axis);
    let cut = choose(call, lane_count::<T>(), threads::num_threads());
    let layout = Layout::new(row_axis, col_axis, cut.rows, cut.cols);
    let offsets = layout.offsets(row_axis, col_axis, cut.channels);
    let weight = &call.weight;
    let mut taps = reserved(offsets.len());
    for c in 0..cut.channels {
        for row in &row_axis.taps {
            let line = c * weight.channel + row.index * weight.kernel_cols;
            taps.extend(col_axis.taps.iter().map(|col| line + col.index));
        }
    }
    let plan = Plan {
        call,
        out,
        cut,
        layout,
        offsets,
        taps,
        row_tiles: row_axis.count.div_ceil(cut.rows),
        col_tiles: col_axis.count.div_ceil(cut.cols),
        chunks: call.outputs.div_ceil(cut.outputs),
    };
    let tasks = call.batch.div_ceil(cut.images) * call.groups * plan.row_tiles * plan.col_tiles * plan.chunks;
    let len = plan.band_len() + plan.offsets.len() * LANES + plan.sums_len(lane_count::<T>());
    threads::parallel(tasks, &|index| with_scratch(len, |scratch| launch(Task { plan: &plan, scratch, index })));
}

/// Source channels per block: equal blocks of about [`BLOCK`] taps.
fn channel_block(channels: usize, taps: usize) -> usize {
    channels.div_ceil((channels * taps).div_ceil(BLOCK + BLOCK / 2).max(1)).max(1)
}

/// The cut with the least estimated time. What it is has no influence on the results.
fn choose<T: Real>(call: &Correlation<'_, T>, lanes: usize, threads: usize) -> Cut {
    let (rows, cols) = (call.row_axis.count, call.col_axis.count);
    let channels = channel_block(call.channels, call.row_axis.taps.len() * call.col_axis.taps.len());
    let mut best = (usize::MAX, Cut { images: 1, rows: 1, cols, outputs: call.outputs, channels });
    for col_tiles in 1..=cols.div_ceil(48) {
        let cols = cols.div_ceil(col_tiles);
        for row_tiles in 1..=rows {
            let rows = rows.div_ceil(row_tiles);
            for image_shift in 0..4 {
                let whole = row_tiles == 1 && col_tiles == 1;
                if image_shift > 0 && (!whole || call.batch < 1 << image_shift) {
                    break;
                }
                for output_shift in 0..5 {
                    let outputs = call.outputs.div_ceil(1 << output_shift).next_multiple_of(8).min(call.outputs);
                    let cut = Cut { images: 1 << image_shift, rows, cols, outputs, channels };
                    if let Some(time) = estimate(call, &cut, lanes, threads)
                        && time < best.0
                    {
                        best = (time, cut);
                    }
                }
            }
            if rows * cols < 2 * LANES {
                break;
            }
        }
    }
    best.1
}

/// Estimated cycles of a cut, none when it does not fit the caches.
fn estimate<T: Real>(call: &Correlation<'_, T>, cut: &Cut, lanes: usize, threads: usize) -> Option<usize> {
    let layout = Layout::new(call.row_axis, call.col_axis, cut.rows, cut.cols);
    let positions = cut.images * cut.rows * cut.cols;
    let registers = positions.div_ceil(lanes);
    let taps = call.channels * call.row_axis.taps.len() * call.col_axis.taps.len();
    let (band, sums) = (layout.channel * cut.channels * cut.images, registers * lanes * cut.outputs);
    let smallest = cut.rows == 1 && cut.images == 1 && cut.cols <= LANES;
    if !smallest && (band > BAND || (cut.channels < call.channels && sums > SUMS)) {
        return None;
    }
    let segments = cut.images * cut.rows * if layout.pitch == cut.cols { 0 } else { 2 } + registers / REGISTERS;
    let pack = taps * (2 * registers + 2 * segments);
    let fill = call.channels * cut.images * layout.channel / 4;
    let blocks = call.channels.div_ceil(cut.channels);
    let product = cut.outputs.next_multiple_of(8) * registers * (taps + 4 * blocks + 6);
    let tiles = call.batch.div_ceil(cut.images) * call.row_axis.count.div_ceil(cut.rows);
    let tasks = call.groups * tiles * call.col_axis.count.div_ceil(cut.cols) * call.outputs.div_ceil(cut.outputs);
    // A task more or less per thread is luck: half a task is lost on average when there are many.
    let turns = tasks.div_ceil(threads) * 4 + 1;
    Some((pack + fill + product + 1000).saturating_mul(turns))
}

struct Task<'a, T> {
    plan: &'a Plan<'a, T>,
    scratch: &'a mut [T],
    index: usize,
}

/// Where a task lies.
struct Place {
    group: usize,
    images: (usize, usize),
    first: (usize, usize),
    rows: usize,
    cols: usize,
    outputs: (usize, usize),
}

/// The three parts of a task's scratch.
struct Parts<T> {
    band: *mut T,
    panel: *mut T,
    sums: *mut T,
}

/// A block of source channels: where its weights start, how many taps it has, and whether it is the first or last.
#[derive(Clone, Copy)]
struct Block {
    weights: usize,
    taps: usize,
    first: bool,
    last: bool,
}

impl<T: Real> Kernel<T> for Task<'_, T> {
    const BASELINE: bool = false;
    #[inline(always)]
    unsafe fn run<V: Lanes<Elem = T>>(self) {
        let Task { plan, scratch, index } = self;
        let place = plan.place(index);
        let (band, rest) = scratch.split_at_mut(plan.band_len());
        let (panel, sums) = rest.split_at_mut(plan.offsets.len() * LANES);
        let parts = Parts { band: band.as_mut_ptr(), panel: panel.as_mut_ptr(), sums: sums.as_mut_ptr() };
        // SAFETY: the scratch was sized for a full task; the results belong to this task.
        plan.work::<V>(&place, &parts);
    }
}

impl<T: Real> Plan<'_, T> {
    fn band_len(&self) -> usize {
        self.layout.len(self.cut.channels * self.cut.images).next_multiple_of(16)
    }

    fn sums_len(&self, lanes: usize) -> usize {
        if self.cut.channels >= self.call.channels {
            return 0;
        }
        (self.cut.images * self.cut.rows * self.cut.cols).next_multiple_of(lanes) * self.cut.outputs.next_multiple_of(8)
    }

    fn place(&self, index: usize) -> Place {
        let (call, cut) = (self.call, &self.cut);
        let (index, chunk) = (index / self.chunks, index % self.chunks);
        let (index, col_tile) = (index / self.col_tiles, index % self.col_tiles);
        let (index, row_tile) = (index / self.row_tiles, index % self.row_tiles);
        let (image, group) = (index / call.groups * cut.images, index % call.groups);
        let first = (row_tile * cut.rows, col_tile * cut.cols);
        Place {
            group,
            images: (image, (image + cut.images).min(call.batch)),
            first,
            rows: cut.rows.min(call.row_axis.count - first.0),
            cols: cut.cols.min(call.col_axis.count - first.1),
            outputs: (chunk * cut.outputs, ((chunk + 1) * cut.outputs).min(call.outputs)),
        }
    }

    #[inline(always)]
    unsafe fn work<V: Lanes<Elem = T>>(&self, place: &Place, parts: &Parts<T>) {
        let (call, cut) = (self.call, &self.cut);
        let taps = self.offsets.len() / cut.channels;
        let positions = (place.images.1 - place.images.0) * place.rows * place.cols;
        let registers = positions.div_ceil(V::N);
        let panels = registers.div_ceil(REGISTERS);
        let mut channel = 0;
        // One pass even without channels: the results are then the bias.
        loop {
            let end = (channel + cut.channels).min(call.channels);
            // SAFETY: the caller promises the instructions of `V` and buffers for a whole task, of which this is a part.
            self.fill::<V>(place, (channel, end), parts.band);
            let block = Block {
                weights: place.group * call.weight.group + channel * call.weight.channel,
                taps: (end - channel) * taps,
                first: channel == 0,
                last: end == call.channels,
            };
            let mut register = 0;
            for panel in 0..panels {
                // Equal panels: 4 registers are 2 and 2.
                let count = (registers - register).div_ceil(panels - panel);
                let first = register * V::N;
                let segments = self.segments(place, first, (first + count * V::N).min(positions));
                let sums = parts.sums.wrapping_add(first * cut.outputs.next_multiple_of(8));
                let strip = Strip { plan: self, place, segments, block, panel: parts.panel, sums };
                // SAFETY: each strip has its own sums.
                match count {
                    1 => strip.run::<V, 1>(parts.band),
                    2 => strip.run::<V, 2>(parts.band),
                    _ => strip.run::<V, REGISTERS>(parts.band),
                }
                register += count;
            }
            channel = end;
            if block.last {
                return;
            }
        }
    }

    #[inline(always)]
    unsafe fn fill<V: Lanes<Elem = T>>(&self, place: &Place, (first, end): (usize, usize), band: *mut T) {
        let call = self.call;
        let (rows, cols) = call.source_size;
        let axes: (&Axis, &Axis) = (call.row_axis, call.col_axis);
        for image in place.images.0..place.images.1 {
            let slot = (image - place.images.0) * self.cut.channels;
            for c in first..end {
                let plane = (image * call.groups + place.group) * call.channels + c;
                // SAFETY: inside the source; the band holds all channels of all images and the slack.
                let at = call.source.as_ptr().add(plane * rows * cols);
                let to = band.add((slot + c - first) * self.layout.channel);
                self.layout.fill::<V>(axes, place.first, Plane { at, rows, cols }, to);
            }
        }
    }

    /// The positions `first..end` of a task, as pieces of its rows.
    #[inline(always)]
    fn segments(&self, place: &Place, first: usize, end: usize) -> Segments {
        let call = self.call;
        let (row_axis, col_axis) = (call.row_axis, call.col_axis);
        let mut segments = Segments::new();
        let mut position = first;
        while position < end {
            let (line, u) = (position / place.cols, position % place.cols);
            let (image, t) = (line / place.rows, line % place.rows);
            let len = (place.cols - u).min(end - position);
            let from = image * self.cut.channels * self.layout.channel + t * self.layout.pitch + u;
            let plane = ((place.images.0 + image) * call.groups + place.group) * call.outputs;
            let row = row_axis.out_start + (place.first.0 + t) * row_axis.out_step;
            let col = col_axis.out_start + (place.first.1 + u) * col_axis.out_step;
            let to = (plane * call.out_size.0 + row) * call.out_size.1 + col;
            segments.push(Segment { from, at: position - first, len, to }, col_axis.out_step);
            position += len;
        }
        segments
    }
}

/// One panel against the output channels of a task.
struct Strip<'a, T> {
    plan: &'a Plan<'a, T>,
    place: &'a Place,
    segments: Segments,
    block: Block,
    panel: *mut T,
    sums: *mut T,
}

impl<T: Real> Strip<'_, T> {
    #[inline(always)]
    unsafe fn run<V: Lanes<Elem = T>, const Q: usize>(&self, band: *const T) {
        panel::pack::<V, Q>(&self.segments, &self.plan.offsets[..self.block.taps], band, self.panel);
        let (mut output, end) = self.place.outputs;
        while output < end {
            output += match end - output {
                8.. if V::ROWS > 6 => self.rows::<V, 8, Q>(output),
                4.. => self.rows::<V, 4, Q>(output),
                2.. => self.rows::<V, 2, Q>(output),
                _ => self.rows::<V, 1, Q>(output),
            };
        }
    }

    #[inline(always)]
    unsafe fn rows<V: Lanes<Elem = T>, const M: usize, const Q: usize>(&self, output: usize) -> usize {
        let (call, block) = (self.plan.call, &self.block);
        let sums = self.sums.wrapping_add((output - self.place.outputs.0) * Q * V::N);
        let base = call.weight.data.as_ptr().wrapping_add(block.weights + output * call.weight.output);
        // SAFETY: rows and taps lie inside the weights; sums and results belong to this task.
        let mut acc = [[V::splat(T::default()); Q]; M];
        if !block.first {
            for (i, slot) in acc.as_flattened_mut().iter_mut().enumerate() {
                *slot = V::load(sums.add(i * V::N));
            }
        } else if let Some(bias) = call.bias {
            let first = self.place.group * call.outputs + output;
            for (line, &value) in acc.iter_mut().zip(&bias[first..first + M]) {
                *line = [V::splat(value); Q];
            }
        }
        let rows = std::array::from_fn(|m| base.wrapping_add(m * call.weight.output));
        panel::multiply::<V, M, Q>(&self.plan.taps[..block.taps], rows, self.panel, &mut acc);
        let mut tile = MaybeUninit::<[[V; Q]; M]>::uninit();
        let to = if block.last { tile.as_mut_ptr().cast::<T>() } else { sums };
        for (i, value) in acc.as_flattened().iter().enumerate() {
            value.store(to.add(i * V::N));
        }
        if block.last {
            let plane = call.out_size.0 * call.out_size.1;
            let out = self.plan.out.ptr().add(output * plane);
            panel::scatter::<V, M>(&self.segments, to, Q * V::N, out, (plane, call.col_axis.out_step));
        }
        M
    }
}
