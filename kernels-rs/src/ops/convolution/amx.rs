//! Correlations of bfloat16 by tiles: 32 channels of the result times 32 positions at a time, by the unit that multiplies them
//! ([`crate::machine::amx`]).
//!
//! A band of the source holds pairs of channels, so that a tile on the right is sixteen pairs by sixteen neighboring positions,
//! read where they lie for each tap; nothing is packed but the kernel, once a call. Sums stay in tiles over all taps and
//! channels, in an order that depends on the kernel alone.

pub mod gradient;

use super::band::{Layout, Plane, SLACK};
use super::panel::{Segment, Segments};
use super::window::{self, Window};
use super::{Correlation, columns, few};
use crate::dtype::{BF16, Float};
use crate::error::Result;
use crate::machine::amx::{Apart, LINES, STEP, Unit};
use crate::machine::caches::second_level;
use crate::machine::lanes::{Kernel, Lanes, launch};
use crate::machine::simd;
use crate::machine::threads::{self, SharedMut};
use crate::memory::owned::Memory;
use crate::memory::scratch::{Arena, collected};
use crate::ops::contraction::Matrix;
use crate::ops::contraction::amx::{DEEP, SIDE, pack};
use std::arch::x86_64::*;
use std::marker::PhantomData;
use std::ops::Range;

/// Channels on either side of a group below which tiles are mostly empty.
const NARROWEST: usize = 8;
/// Positions of all images below which packing the kernel takes longer than the product.
const POSITIONS: usize = 64;
/// Positions of a task below which it is not cut.
const FEWEST: usize = 256;
/// Pairs of channels of a step.
const PAIRS: usize = DEEP / 2;

/// Whether a convolution of bfloat16, and its gradients, go by tiles.
pub fn applies(window: &Window) -> bool {
    simd::has_amx() && fills(window) && !few::applies(window) && !columns::applies(window)
}

/// Whether tiles would be well filled.
fn fills(window: &Window) -> bool {
    let positions = window.batch * window.row.output * window.col.output;
    window.inputs.min(window.outputs) >= NARROWEST * window.groups && positions >= POSITIONS
}

/// Writes all of `out`.
pub fn forward<U: Unit>(
    window: &Window,
    x: &[BF16],
    weight: &[BF16],
    bias: Option<&[BF16]>,
    out: &mut [BF16],
) -> Result<()> {
    window::forward(window, x, weight, bias, out, correlation::<U>)
}

/// Writes all of `out`: the input gradient, and what is added to each channel of it.
pub fn input_grad<U: Unit>(
    window: &Window,
    g: &[BF16],
    weight: &[BF16],
    bias: Option<&[BF16]>,
    out: &mut [BF16],
) -> Result<()> {
    window::input_grad(window, g, weight, bias, out, correlation::<U>)
}

/// Runs a correlation, writing the results at the places that the axes name.
///
/// # Safety
/// As [`super::correlation`]; the unit and AVX-512 with bfloat16 are there.
unsafe fn correlation<U: Unit>(call: &Correlation<'_, BF16>, out: SharedMut<BF16>) -> Result<()> {
    let (positions, taps) =
        (call.row_axis.count * call.col_axis.count, call.row_axis.taps.len() * call.col_axis.taps.len());
    if call.batch * call.groups * call.outputs * positions == 0 {
        return Ok(());
    }
    let blocks = call.outputs.div_ceil(SIDE);
    let steps = call.channels.div_ceil(DEEP) * taps;
    let kernel = Memory::new(call.groups * blocks * steps * STEP)?;
    let cells = SharedMut::new(kernel.data());
    threads::parallel(call.groups * blocks, &|index| {
        let to = cells.ptr().wrapping_add(index * steps * STEP);
        // SAFETY: each task has its own part of the memory; the machine is as the caller promises.
        pack_kernel(call, index / blocks, index % blocks * SIDE, to);
    });
    let rows = rows_of_a_task(call);
    let layout = Layout::new(call.row_axis, call.col_axis, rows, call.col_axis.count);
    let taps = layout.offsets(call.row_axis, call.col_axis, 1);
    let below = (0..call.channels.div_ceil(DEEP)).map(|deep| deep * PAIRS * layout.channel);
    let offsets = collected(below.flat_map(|below| taps.iter().map(move |tap| (below + tap) * size_of::<f32>())));
    let tiles = call.row_axis.count.div_ceil(rows);
    let many = call.batch * call.groups * tiles;
    // Where there are few tasks, each makes the band for some channels of the result only.
    let chunks = if many < threads::num_threads() { blocks.min(threads::num_threads().div_ceil(many)) } else { 1 };
    let chunk = blocks.div_ceil(chunks) * SIDE;
    let chunks = call.outputs.div_ceil(chunk);
    let plan = Plan::<U> { call, out, kernel: cells, layout, offsets, steps, unit: PhantomData };
    threads::parallel(many * chunks, &|index| {
        let (index, first) = (index / chunks, index % chunks * chunk);
        let (index, row) = (index / tiles, index % tiles * rows);
        let place = Place {
            image: index / call.groups,
            group: index % call.groups,
            rows: row..call.row_axis.count.min(row + rows),
            outputs: first..call.outputs.min(first + chunk),
        };
        // SAFETY: each task has its own results.
        plan.task(&place);
    });
    Ok(())
}

/// Rows of results whose band stays in the second-level cache, and which leave something for each thread. The cut changes
/// no sum.
fn rows_of_a_task(call: &Correlation<'_, BF16>) -> usize {
    let (all, cols) = (call.row_axis.count, call.col_axis.count);
    let threads = threads::num_threads();
    let wanted = if threads == 1 { 1 } else { (2 * threads).div_ceil(call.batch * call.groups) };
    let planes = call.channels.next_multiple_of(DEEP) / 2;
    let fits = |rows| {
        let layout = Layout::new(call.row_axis, call.col_axis, rows, cols);
        layout.channel * planes * size_of::<f32>() <= second_level() / 4
    };
    let mut rows = all;
    while rows > 1 && (!fits(rows) || all.div_ceil(rows) < wanted && rows * cols >= 2 * FEWEST) {
        rows = rows.div_ceil(2);
    }
    all.div_ceil(all.div_ceil(rows))
}

/// Packs the kernel of 32 channels of the result.
unsafe fn pack_kernel(call: &Correlation<'_, BF16>, group: usize, first: usize, to: *mut u8) {
    let weight = &call.weight;
    let (rows, mut step) = (SIDE.min(call.outputs - first), 0);
    for channel in (0..call.channels).step_by(DEEP) {
        let size = (rows, DEEP.min(call.channels - channel));
        let start = group * weight.group + first * weight.output + channel * weight.channel;
        for row in &call.row_axis.taps {
            for col in &call.col_axis.taps {
                let at = start + row.index * weight.kernel_cols + col.index;
                let from = weight.data.as_ptr().wrapping_add(at).cast_mut();
                let from = Matrix::new(from, (weight.output as isize, weight.channel as isize));
                // SAFETY: inside the kernel.
                pack::left(from, size, to.wrapping_add(step * STEP));
                step += 1;
            }
        }
    }
}

/// A call and how it is cut.
struct Plan<'a, U> {
    call: &'a Correlation<'a, BF16>,
    out: SharedMut<BF16>,
    /// The packed kernel.
    kernel: SharedMut<u8>,
    /// Of pairs of channels.
    layout: Layout,
    /// Where each step reads in the band, in bytes.
    offsets: Vec<usize>,
    steps: usize,
    unit: PhantomData<fn() -> U>,
}

/// Where a task lies.
struct Place {
    image: usize,
    group: usize,
    rows: Range<usize>,
    outputs: Range<usize>,
}

/// The cut of a task into sixteen neighbors of the band at a time: all along it, or row by row, which leaves out what lies
/// between rows.
#[derive(Clone, Copy)]
struct Neighbors {
    count: usize,
    /// How many in a row; none where rows do not matter.
    across: Option<usize>,
}

impl Neighbors {
    fn new(rows: usize, cols: usize, pitch: usize) -> Self {
        let (along, across) = (((rows - 1) * pitch + cols).div_ceil(LINES), cols.div_ceil(LINES));
        if along <= rows * across {
            return Self { count: along, across: None };
        }
        Self { count: rows * across, across: Some(across) }
    }

    /// Where they begin in the band, and how many lie in that row, where rows matter.
    fn start(self, index: usize, cols: usize, pitch: usize) -> (usize, usize) {
        match self.across {
            None => (index * LINES, LINES),
            Some(across) => (index / across * pitch + index % across * LINES, LINES.min(cols - index % across * LINES)),
        }
    }
}

impl<U: Unit> Plan<'_, U> {
    unsafe fn task(&self, place: &Place) {
        let (call, layout) = (self.call, &self.layout);
        let planes = call.channels.next_multiple_of(DEEP) / 2;
        let source = (call.source_size.0 * call.source_size.1).next_multiple_of(SIDE);
        let lens = [layout.len(planes), source + SLACK, SIDE * SIDE];
        Arena::with(lens.map(|len| len * size_of::<f32>()), |mut room| {
            let [band, plane, sums] = lens.map(|len| room.take::<f32>(len).as_mut_ptr());
            // SAFETY: the scratch memory is as large as the band, a plane of pairs and 32 x 32 sums; all else is as the caller
            // promises.
            self.fill(place, plane, band);
            let rows = place.outputs.len();
            U::rows(rows.min(LINES), if rows > LINES { LINES } else { 1 });
            // As many channels of the result as have their kernel in the second-level cache.
            let some = (second_level() / 4 / (self.steps * STEP)).max(1) * SIDE;
            for first in place.outputs.clone().step_by(some) {
                self.products(place, first..place.outputs.end.min(first + some), band, sums);
            }
            U::release();
        });
    }

    /// Fills the band with the rows that a task reads.
    unsafe fn fill(&self, place: &Place, plane: *mut f32, band: *mut f32) {
        let (call, layout) = (self.call, &self.layout);
        let (rows, cols) = call.source_size;
        let (mut low, mut high) = (rows, 0);
        for slot in 0..call.row_axis.slots() {
            let (start, step) = call.row_axis.source(place.rows.start, slot);
            let last = start + ((layout.row_extent - 1) * step) as isize;
            low = low.min(start.max(0) as usize);
            high = high.max((last + 1).clamp(0, rows as isize) as usize);
        }
        let low = low.min(high);
        let first = (place.image * call.groups + place.group) * call.channels;
        for pair in 0..call.channels.next_multiple_of(DEEP) / 2 {
            let to = band.wrapping_add(pair * layout.channel);
            // SAFETY: rows inside the planes of two channels, or of one.
            if 2 * pair >= call.channels {
                std::slice::from_raw_parts_mut(to, layout.channel).fill(0.0);
                continue;
            }
            let at = |channel: usize| call.source.as_ptr().add(((first + channel) * rows + low) * cols);
            let lower = (2 * pair + 1 < call.channels).then(|| at(2 * pair + 1));
            pack::pairs(at(2 * pair), lower, (high - low) * cols, plane);
            // Of the plane, rows that the band does not read are not there.
            let from = Plane { at: plane.wrapping_sub(low * cols).cast_const(), rows, cols };
            launch(Fill { layout, call, first: place.rows.start, from, to });
        }
    }

    /// Some channels of the result at all positions of a task.
    unsafe fn products(&self, place: &Place, outputs: Range<usize>, band: *const f32, sums: *mut f32) {
        let (call, layout) = (self.call, &self.layout);
        let cols = call.col_axis.count;
        let neighbors = Neighbors::new(place.rows.len(), cols, layout.pitch);
        let blocks = call.outputs.div_ceil(SIDE);
        for index in (0..neighbors.count).step_by(2) {
            let mut segments = Segments::new();
            let both = [index, neighbors.count.min(index + 2) - 1];
            let [start, beside] = both.map(|index| neighbors.start(index, cols, layout.pitch));
            self.segments(place, start, 0, &mut segments);
            if both[0] < both[1] {
                self.segments(place, beside, LINES, &mut segments);
            }
            for first in outputs.clone().step_by(SIDE) {
                let block = place.group * blocks + first / SIDE;
                let sides = Apart {
                    left: self.kernel.ptr().wrapping_add(block * self.steps * STEP).cast_const(),
                    right: band.wrapping_add(start.0).cast(),
                    line: layout.channel * size_of::<f32>(),
                    beside: ((beside.0 - start.0) * size_of::<f32>()) as isize,
                    offsets: self.offsets.as_ptr(),
                    steps: self.steps,
                };
                let count = SIDE.min(outputs.end - first);
                // SAFETY: the packed kernel, and the band with its slack.
                U::multiply_apart(sides, sums);
                self.round(sums, (place.group * call.outputs + first, count), segments.slice());
            }
        }
    }

    /// The positions of neighbors in the band, as pieces of rows of the result.
    fn segments(&self, place: &Place, (start, count): (usize, usize), lane: usize, to: &mut Segments) {
        let (call, pitch) = (self.call, self.layout.pitch);
        let (row_axis, col_axis) = (call.row_axis, call.col_axis);
        let plane = (place.image * call.groups * call.outputs) * call.out_size.0;
        let mut at = start;
        while at < start + count && at / pitch < place.rows.len() {
            let (t, u) = (at / pitch, at % pitch);
            let len = col_axis.count.saturating_sub(u).min(start + count - at);
            if len > 0 {
                let row = plane + row_axis.out_start + (place.rows.start + t) * row_axis.out_step;
                let col = col_axis.out_start + u * col_axis.out_step;
                let next = Segment { from: at, at: lane + at - start, len, to: row * call.out_size.1 + col };
                to.push(next, col_axis.out_step);
            }
            at = (t + 1) * pitch;
        }
    }

    /// Rounds sums into channels of the result, with what is added to them.
    unsafe fn round(&self, sums: *const f32, (first, count): (usize, usize), segments: &[Segment]) {
        let (plane, step) = (self.call.out_size.0 * self.call.out_size.1, self.call.col_axis.out_step);
        for i in 0..count {
            let added = self.call.bias.map_or(0.0, |bias| bias[first + i].widen());
            let to = self.out.ptr().wrapping_add((first + i) * plane);
            // SAFETY: 32 sums; the places are those of the results.
            round(sums.add(i * SIDE), added, segments, to, step);
        }
    }
}

/// Copies the rows of a plane of pairs into the band.
struct Fill<'a> {
    layout: &'a Layout,
    call: &'a Correlation<'a, BF16>,
    first: usize,
    from: Plane<f32>,
    to: *mut f32,
}

impl Kernel<f32> for Fill<'_> {
    #[inline(always)]
    unsafe fn run<V: Lanes<Elem = f32>>(self) {
        let axes = (self.call.row_axis, self.call.col_axis);
        // SAFETY: as whoever launches it promises.
        self.layout.fill::<V>(axes, (self.first, 0), self.from, self.to);
    }
}

/// Rounds 32 sums, with what is added to them, to their places, `step` elements apart in each segment.
///
/// # Safety
/// The sums and places are there; the machine has these instructions.
#[target_feature(enable = "avx512f,avx512bw,avx512bf16")]
unsafe fn round(sums: *const f32, added: f32, segments: &[Segment], to: *mut BF16, step: usize) {
    // Masked lanes are not written.
    let added = _mm512_set1_ps(added);
    let low = _mm512_add_ps(_mm512_load_ps(sums), added);
    let high = _mm512_add_ps(_mm512_load_ps(sums.add(LINES)), added);
    let line = std::mem::transmute::<__m512bh, __m512i>(_mm512_cvtne2ps_pbh(high, low));
    for segment in segments {
        if step == 1 {
            let mask = (u32::MAX >> (SIDE - segment.len)) << segment.at;
            let to = to.wrapping_add(segment.to).wrapping_sub(segment.at);
            _mm512_mask_storeu_epi16(to.cast(), mask, line);
        } else {
            let lanes = std::mem::transmute::<__m512i, [BF16; SIDE]>(line);
            for (i, &value) in lanes[segment.at..][..segment.len].iter().enumerate() {
                *to.add(segment.to + i * step) = value;
            }
        }
    }
}

#[cfg(test)]
mod tests;
