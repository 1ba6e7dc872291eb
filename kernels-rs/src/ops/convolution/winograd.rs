//! Kernels of 3 x 3 with stride 1 by tiles of 2 x 2 results: 16 products per tile and pair of channels instead of 36.
//! Source: Winograd, "Arithmetic Complexity of Computations" (1980); Lavin and Gray, arXiv 1509.09308, F(2x2, 3x3).
//!
//! This size of tile rounds no worse than the definition, since it adds fewer products, and a result reads no element
//! that the definition does not read. Where an infinity meets it, a difference of infinities may turn up: a result
//! that is not finite sends the whole convolution to [`super::implicit`].

pub mod gradient;
mod points;
mod tiles;
mod weights;

use super::Correlation;
use super::axis::{Axis, WindowAxis};
use super::band::{Layout, Plane};
use super::panel::{self, REGISTERS, Segment, Segments};
use crate::array::Array;
use crate::error::Result;
use crate::machine::lanes::{Kernel, Lanes, Real, lane_count, launch};
use crate::machine::threads::{self, SharedMut};
use crate::memory::scratch::with_scratch;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use tiles::{product, results, transform};
use weights::Weights;

/// Frequencies of a tile.
const POINTS: usize = 16;
/// Output channels that lie together in the transformed weights.
const ROWS: usize = 8;
/// Elements between the points of a panel, so that they do not fall into the same cache set.
const PAD: usize = 16;
/// Points whose panels are there at a time: a row of them.
const LINE: usize = 4;
/// Elements of the transformed panels, inside the second-level cache.
const PANEL: usize = 48 << 10;
/// Elements of the products, beside them.
const PRODUCTS: usize = 72 << 10;
/// Elements of a band, beside it.
const BAND: usize = 96 << 10;
/// Pairs of channels whose transformed weights stay in the third-level cache.
const PAIRS: usize = 1 << 16;

struct Plan<'a, T> {
    call: &'a Correlation<'a, T>,
    out: SharedMut<T>,
    cut: Cut,
    row_axis: Axis,
    col_axis: Axis,
    layout: Layout,
    offsets: Vec<usize>,
    /// `[group][point][block of outputs][channel][ROWS]`.
    weights: SharedMut<T>,
    row_tiles: usize,
    chunks: usize,
    infinite: AtomicBool,
}

/// Images, rows of tiles and output channels of a task.
#[derive(Clone, Copy)]
struct Cut {
    images: usize,
    rows: usize,
    outputs: usize,
}

/// Runs the correlation where this algorithm is faster. False: the results are not written, or not all right.
///
/// # Safety
/// As for [`super::implicit::run`].
pub unsafe fn run<T: Real>(call: &Correlation<'_, T>, out: SharedMut<T>) -> Result<bool> {
    let (Some(row_axis), Some(col_axis)) =
        (tiles(call.row_axis, call.source_size.0), tiles(call.col_axis, call.source_size.1))
    else {
        return Ok(false);
    };
    let lanes = lane_count::<T>();
    let Some(cut) = choose(call, (&row_axis, &col_axis), lanes) else { return Ok(false) };
    let blocks = call.outputs.div_ceil(ROWS);
    let mut weights = Array::uninit(T::DTYPE, &[call.groups * POINTS * point_pitch(call)])?;
    let layout = Layout::new(&row_axis, &col_axis, cut.rows, col_axis.count);
    let plan = Plan {
        call,
        out,
        cut,
        offsets: layout.offsets(&row_axis, &col_axis, call.channels),
        layout,
        weights: SharedMut::new(weights.mut_ptr::<T>()),
        row_tiles: row_axis.count.div_ceil(cut.rows),
        chunks: call.outputs.div_ceil(cut.outputs),
        row_axis,
        col_axis,
        infinite: AtomicBool::new(false),
    };
    threads::parallel(call.groups * blocks, &|index| launch(Weights { plan: &plan, index }));
    let tasks = call.batch.div_ceil(cut.images) * call.groups * plan.row_tiles * plan.chunks;
    let len = plan.band_len() + plan.panel_len(lanes) + plan.products_len(lanes) + 4 * ROWS * plan.width(lanes);
    threads::parallel(tasks, &|index| with_scratch(len, |scratch| launch(Task { plan: &plan, scratch, index })));
    Ok(!plan.infinite.into_inner())
}

/// From a point of the transformed weights to the next: an odd number of cache lines more than they need, so that the
/// points of a weight do not fall into the same cache set.
fn point_pitch<T>(call: &Correlation<'_, T>) -> usize {
    (call.outputs.div_ceil(ROWS) * ROWS * call.channels).next_multiple_of(32) + 16
}

/// The axis of the tiles: windows of 4, 2 apart. None when the axis is not three neighbors with stride 1.
fn tiles(axis: &Axis, source: usize) -> Option<Axis> {
    let (base, step) = axis.source(0, 0);
    let neighbors = axis.taps.len() == 3 && axis.taps.iter().map(|tap| tap.shift).max() == Some(2);
    if !neighbors || axis.slots() != 1 || step != 1 || axis.out_step != 1 || base > 0 {
        return None;
    }
    let (output, pad) = (axis.count.div_ceil(2), base.unsigned_abs());
    Some(Axis::forward(WindowAxis { input: source, output, kernel: 4, stride: 2, pad, dilation: 1 }))
}

/// Most registers per row of a transformed panel.
fn registers(channels: usize, lanes: usize) -> usize {
    (PANEL / (LINE * channels * lanes)).clamp(1, REGISTERS)
}

/// Threads on which this is compared with the definition. A constant: the algorithm decides the bits of the result.
const COMPARED: usize = 2;

/// The fastest cut, if it is faster than the definition. The cut is that for the threads there are: it changes no bit.
fn choose<T: Real>(call: &Correlation<'_, T>, axes: (&Axis, &Axis), lanes: usize) -> Option<Cut> {
    let (channels, outputs) = (call.channels, call.outputs);
    // 20 for the transform of a weight and its way through the caches, measured on Zen 4; the definition takes 9
    // products per result.
    let (time, cut) = fastest(call, axes, lanes, COMPARED)?;
    let time = time / 4 + 20 * channels * outputs * call.groups / COMPARED;
    let results = call.batch * call.groups * call.row_axis.count * call.col_axis.count;
    if time >= results.div_ceil(lanes * COMPARED) * (10 * channels * outputs + 30 * channels) {
        return None;
    }
    match threads::num_threads() {
        COMPARED => Some(cut),
        count => fastest(call, axes, lanes, count).map(|(_, cut)| cut),
    }
}

/// The fastest cut on so many threads, and its time.
fn fastest<T: Real>(
    call: &Correlation<'_, T>,
    axes: (&Axis, &Axis),
    lanes: usize,
    count: usize,
) -> Option<(usize, Cut)> {
    let (rows, cols) = (axes.0.count, axes.1.count);
    let (channels, outputs) = (call.channels, call.outputs);
    if channels < 16 || outputs < 32 || channels * outputs > PAIRS || LINE * channels * lanes > PANEL {
        return None;
    }
    let mut best = None;
    for row_tiles in 1..=rows {
        let rows = rows.div_ceil(row_tiles);
        for image_shift in 0..4 {
            if image_shift > 0 && (row_tiles > 1 || call.batch < 1 << image_shift) {
                break;
            }
            let images = 1 << image_shift;
            let layout = Layout::new(axes.0, axes.1, rows, cols);
            if layout.channel * channels * images > BAND {
                continue;
            }
            let tiles = (images * rows * cols).div_ceil(lanes);
            let width = tiles.min(registers(channels, lanes)) * lanes;
            for output_shift in 0..5 {
                let chunk = outputs.div_ceil(1 << output_shift).next_multiple_of(ROWS);
                if chunk > ROWS && chunk * POINTS * width > PRODUCTS {
                    continue;
                }
                // 80 for the transform of an input and for that of a result, 12 for a register of the band.
                let lines = 4 * images * (rows + 1) * (cols + 1).div_ceil(lanes);
                let time = channels * (12 * lines + 80 * tiles) + chunk * tiles * (POINTS * channels + 80) + 2000;
                let tasks = call.batch.div_ceil(images) * row_tiles * call.groups * outputs.div_ceil(chunk);
                let time = time * (4 * tasks.div_ceil(count) + 1);
                if best.is_none_or(|(least, _)| time < least) {
                    best = Some((time, Cut { images, rows, outputs: chunk }));
                }
            }
        }
    }
    best
}

struct Task<'a, T> {
    plan: &'a Plan<'a, T>,
    scratch: &'a mut [T],
    index: usize,
}

/// Where a task lies, in tiles.
struct Place {
    group: usize,
    images: (usize, usize),
    first_row: usize,
    rows: usize,
    outputs: (usize, usize),
}

impl<T: Real> Kernel<T> for Task<'_, T> {
    const BASELINE: bool = false;
    #[inline(always)]
    unsafe fn run<V: Lanes<Elem = T>>(self) {
        let Task { plan, scratch, index } = self;
        let place = plan.place(index);
        let (band, rest) = scratch.split_at_mut(plan.band_len());
        // SAFETY: the scratch was sized for a full task; the results belong to this task.
        plan.fill::<V>(&place, band.as_mut_ptr());
        let tiles = (place.images.1 - place.images.0) * place.rows * plan.col_axis.count;
        let count = tiles.div_ceil(V::N);
        let panels = count.div_ceil(registers(plan.call.channels, V::N));
        let mut register = 0;
        for panel in 0..panels {
            // Equal panels: 4 registers are 2 and 2.
            let next = register + (count - register).div_ceil(panels - panel);
            let range = (register * V::N, tiles.min(next * V::N));
            match next - register {
                1 => plan.work::<V, 1>(&place, range, band, rest),
                2 => plan.work::<V, 2>(&place, range, band, rest),
                _ => plan.work::<V, REGISTERS>(&place, range, band, rest),
            }
            register = next;
        }
    }
}

impl<T: Real> Plan<'_, T> {
    fn band_len(&self) -> usize {
        self.layout.len(self.call.channels * self.cut.images).next_multiple_of(16)
    }

    /// Lanes of the widest panel.
    fn width(&self, lanes: usize) -> usize {
        registers(self.call.channels, lanes) * lanes
    }

    fn panel_len(&self, lanes: usize) -> usize {
        LINE * (self.call.channels * self.width(lanes) + PAD)
    }

    fn products_len(&self, lanes: usize) -> usize {
        self.cut.outputs.next_multiple_of(ROWS) * POINTS * self.width(lanes)
    }

    /// Where the transformed weights of a block start.
    #[inline(always)]
    fn weights_at(&self, group: usize, point: usize, block: usize) -> usize {
        (group * POINTS + point) * point_pitch(self.call) + block * ROWS * self.call.channels
    }

    fn place(&self, index: usize) -> Place {
        let (call, cut) = (self.call, &self.cut);
        let (index, chunk) = (index / self.chunks, index % self.chunks);
        let (index, row_tile) = (index / self.row_tiles, index % self.row_tiles);
        let image = index / call.groups * cut.images;
        Place {
            group: index % call.groups,
            images: (image, (image + cut.images).min(call.batch)),
            first_row: row_tile * cut.rows,
            rows: cut.rows.min(self.row_axis.count - row_tile * cut.rows),
            outputs: (chunk * cut.outputs, ((chunk + 1) * cut.outputs).min(call.outputs)),
        }
    }

    #[inline(always)]
    unsafe fn fill<V: Lanes<Elem = T>>(&self, place: &Place, band: *mut T) {
        let call = self.call;
        let (rows, cols) = call.source_size;
        for image in place.images.0..place.images.1 {
            for c in 0..call.channels {
                let plane = (image * call.groups + place.group) * call.channels + c;
                let slot = (image - place.images.0) * call.channels + c;
                // SAFETY: inside the source; the band holds all channels of all images and the slack.
                let at = call.source.as_ptr().add(plane * rows * cols);
                let to = band.add(slot * self.layout.channel);
                let axes = (&self.row_axis, &self.col_axis);
                self.layout.fill::<V>(axes, (place.first_row, 0), Plane { at, rows, cols }, to);
            }
        }
    }

    /// The results of the tiles `range`, which fill `Q` registers.
    #[inline(always)]
    unsafe fn work<V: Lanes<Elem = T>, const Q: usize>(
        &self,
        place: &Place,
        range: (usize, usize),
        band: &[T],
        rest: &mut [T],
    ) {
        let (call, width) = (self.call, Q * V::N);
        let (panel, rest) = rest.split_at_mut(self.panel_len(V::N));
        let (products, tile) = rest.split_at_mut(self.products_len(V::N));
        let lines = self.lines(place, range.0, range.1);
        for line in 0..POINTS / LINE {
            // SAFETY: the parts have the sizes that the loops need.
            transform::<V, Q>(&lines.source, &self.offsets, line, band.as_ptr(), panel.as_mut_ptr());
            for at in 0..LINE {
                let point = line * LINE + at;
                let source = panel.as_ptr().add(at * (call.channels * width + PAD));
                self.products::<V, Q>(place, point, source, products.as_mut_ptr());
            }
        }
        for output in (place.outputs.0..place.outputs.1).step_by(ROWS) {
            let from = products.as_ptr().wrapping_add((output - place.outputs.0) * POINTS * width);
            // SAFETY: the results belong to this task.
            self.finish::<V, Q>(place, output, &lines, from, tile.as_mut_ptr());
        }
    }

    /// One point of all output channels of a task: `to[block][point][ROWS][lane]`. The panel stays in the first-level
    /// cache, the weights come in one long run.
    #[inline(always)]
    unsafe fn products<V: Lanes<Elem = T>, const Q: usize>(
        &self,
        place: &Place,
        point: usize,
        source: *const T,
        to: *mut T,
    ) {
        let (channels, width) = (self.call.channels, Q * V::N);
        for block in 0..(place.outputs.1 - place.outputs.0).div_ceil(ROWS) {
            let at = self.weights_at(place.group, point, place.outputs.0 / ROWS + block);
            let weights = self.weights.ptr().cast_const().wrapping_add(at);
            // SAFETY: the sizes are those of the plan.
            let to = to.add((block * POINTS + point) * ROWS * width);
            if V::ROWS > 6 {
                product::<V, ROWS, Q>(channels, weights, source, to);
            } else {
                product::<V, 4, Q>(channels, weights, source, to);
                product::<V, 4, Q>(channels, weights.add(4), source, to.add(4 * width));
            }
        }
    }

    /// Moves the results of a block of output channels to their places.
    #[inline(always)]
    unsafe fn finish<V: Lanes<Elem = T>, const Q: usize>(
        &self,
        place: &Place,
        output: usize,
        lines: &Lines,
        products: *const T,
        tile: *mut T,
    ) {
        let (call, width) = (self.call, Q * V::N);
        let count = ROWS.min(place.outputs.1 - output);
        let mut bias = [T::default(); ROWS];
        if let Some(all) = call.bias {
            let first = place.group * call.outputs + output;
            bias[..count].copy_from_slice(&all[first..first + count]);
        }
        let plane = call.out_size.0 * call.out_size.1;
        // SAFETY: the results belong to this task.
        results::<V, Q>(products, &bias, tile);
        let out = self.out.ptr().add(output * plane);
        for (row, segments) in lines.results.iter().enumerate() {
            let from = tile.cast_const().add(row * ROWS * 2 * width);
            if !panel::scatter_finite::<V>(segments, from, (2 * width, count), out, plane) {
                self.infinite.store(true, Relaxed);
            }
        }
    }

    /// Where the tiles `first..end` of a task read, and where their two rows of results go.
    #[inline(always)]
    fn lines(&self, place: &Place, first: usize, end: usize) -> Lines {
        let call = self.call;
        let (rows, cols) = (call.row_axis.count, call.col_axis.count);
        let mut lines = Lines { source: Segments::new(), results: [Segments::new(), Segments::new()] };
        let mut tile = first;
        while tile < end {
            let (line, u) = (tile / self.col_axis.count, tile % self.col_axis.count);
            let (image, t) = (line / place.rows, line % place.rows);
            let len = (self.col_axis.count - u).min(end - tile);
            let from = image * call.channels * self.layout.channel + t * self.layout.pitch + u;
            lines.source.add(Segment { from, at: tile - first, len, to: 0 });
            let plane = ((place.images.0 + image) * call.groups + place.group) * call.outputs;
            let row = 2 * (place.first_row + t);
            for (i, segments) in lines.results.iter_mut().enumerate().take(rows - row) {
                let row = call.row_axis.out_start + row + i;
                let to = (plane * call.out_size.0 + row) * call.out_size.1 + call.col_axis.out_start + 2 * u;
                segments.add(Segment { from: 0, at: 2 * (tile - first), len: (2 * len).min(cols - 2 * u), to });
            }
            tile += len;
        }
        lines
    }
}

/// The pieces of a panel of tiles.
struct Lines {
    source: Segments,
    results: [Segments; 2],
}
