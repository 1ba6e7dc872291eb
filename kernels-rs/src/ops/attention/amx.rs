//! Many queries of bfloat16 by tiles, as [`super::forward`] does it by registers: blocks of 32 queries against tiles of keys.
//!
//! Scores are `keys @ queries^T`, 32 x 32 at a time: a row per key, a lane per query, in float32 from there to the weights.
//! Weights go back to the unit as two bfloat16 each, their upper half and what that leaves over, so that nothing is lost of
//! them that the result could show; the sums are `values^T @ weights`, again with a lane per query.

mod backward;
mod lanes;
mod sides;

use super::hidden::Part;
use super::scores::{self, State};
use super::tile::Turn;
use super::{Job, Place};
use crate::array::Array;
use crate::array::float::RowElement;
use crate::dtype::BF16;
use crate::machine::amx::{LINE, LINES, STEP, Unit};
use crate::machine::lanes::Block;
use crate::machine::simd;
use crate::machine::threads::{self, SharedMut};
use crate::memory::scratch::Arena;
use crate::ops::contraction::amx::{DEEP, SIDE};
use crate::vectorize;
use std::marker::PhantomData;
use std::ops::Range;

/// Keys of a tile: scores and weights of a block stay in the first-level cache.
const TILE: usize = 128;
/// Blocks of queries that share a tile of packed keys, at most.
const BLOCKS: usize = 8;
/// Queries (or keys, for cotangents), and elements of a row, below which tiles are mostly empty.
const FEWEST: usize = 16;
const NARROWEST: usize = 8;

/// Whether a call goes by tiles.
pub fn applies(job: &Job<BF16>) -> bool {
    simd::has_amx() && job.queries >= FEWEST && job.size.min(job.values) >= NARROWEST
}

/// Whether its cotangents do.
pub fn pulls(job: &Job<BF16>) -> bool {
    applies(job) && job.keys >= FEWEST
}

/// The cut of the work, and the sizes of a task.
struct Plan {
    /// Steps along a query, and along a tile of keys.
    steps: (usize, usize),
    /// Blocks of 32 values.
    across: usize,
}

pub use backward::run as pull;

/// Fills the result, which is row-major `[.., heads, queries, values]`.
pub fn run<U: Unit>(job: &Job<BF16>, out: &mut Array) {
    let out = SharedMut::new(out.mut_ptr::<BF16>());
    let steps = (job.size.div_ceil(DEEP), TILE.min(job.keys).div_ceil(DEEP));
    let plan = Plan { steps, across: job.values.div_ceil(SIDE) };
    // No sum goes over queries, so the cut may follow the threads.
    job.in_blocks(SIDE, (BLOCKS, 2 * threads::num_threads()), &|shared, range| {
        Task::<U> { job, plan: &plan, out, unit: PhantomData }.run(shared, range);
    });
}

struct Task<'a, U> {
    job: &'a Job<BF16>,
    plan: &'a Plan,
    out: SharedMut<BF16>,
    unit: PhantomData<fn() -> U>,
}

/// Buffers of a task.
struct Buffers<'a> {
    /// For each block: the queries, packed as a right side.
    queries: &'a mut [u8],
    /// For each block: the sums over the keys so far, a row of 32 queries for each value.
    sums: &'a mut [f32],
    /// For each block: top, total and fade.
    state: &'a mut [f32],
    scores: &'a mut [f32],
    /// The weights, packed as a right side of two parts.
    weights: &'a mut [u8],
    /// The keys of a tile, and its values turned over, packed as left sides.
    keys: &'a mut [u8],
    values: &'a mut [u8],
    /// Whether all these values are finite: a hidden one is multiplied with 0 then.
    finite: bool,
    stage: &'a mut [f32],
    changes: &'a mut [f32],
}

impl<U: Unit> Task<'_, U> {
    fn run(&self, shared: usize, range: Range<usize>) {
        let (job, plan, count) = (self.job, self.plan, range.len());
        let (deep, long) = plan.steps;
        let bytes = [count * deep, 2 * long, long * deep, plan.across * long].map(|steps| steps * STEP);
        let floats = [count * plan.across * SIDE * SIDE, count * 3 * SIDE, long * SIDE * SIDE, SIDE * job.values];
        let changes = job.changes.buffer(long * SIDE, SIDE);
        let all = bytes.iter().sum::<usize>() + (floats.iter().sum::<usize>() + changes) * size_of::<f32>();
        // Each part begins on a line.
        Arena::with([all + 9 * LINE], |mut room| {
            let [queries, weights, keys, values] = bytes.map(|len| room.take(len));
            let [sums, state, scores, stage] = floats.map(|len| room.take(len));
            let changes = room.take(changes);
            let buffers = Buffers { queries, sums, state, scores, weights, keys, values, finite: true, stage, changes };
            // SAFETY: whoever chose the unit says that it is there, and all that comes with it.
            unsafe {
                U::rows(LINES, LINES);
                self.all(shared, range, buffers);
                U::release();
            }
        });
    }

    /// All keys, tile by tile, against some blocks of queries.
    unsafe fn all(&self, shared: usize, range: Range<usize>, mut buffers: Buffers<'_>) {
        let job = self.job;
        let mut seen = 0;
        for (slot, block) in range.clone().enumerate() {
            let place = job.place(SIDE, shared, block);
            // SAFETY: the block lies inside the operand.
            self.load(slot, place, &mut buffers);
            seen = seen.max(place.seen);
        }
        for first in (0..seen).step_by(TILE) {
            let keys = (first, TILE.min(seen - first));
            // SAFETY: the rows lie inside the operands, the buffers are as large as planned.
            self.pack(shared, keys, &mut buffers);
            for (slot, block) in range.clone().enumerate() {
                self.step(slot, job.place(SIDE, shared, block), keys, &mut buffers);
            }
        }
        for (slot, block) in range.enumerate() {
            self.store(slot, job.place(SIDE, shared, block), seen == 0, &mut buffers);
        }
    }

    /// Packs the queries of a block, and starts its state.
    unsafe fn load(&self, slot: usize, place: Place, buffers: &mut Buffers<'_>) {
        let (job, deep) = (self.job, self.plan.steps.0);
        let rows = job.query.get(place.head).from(place.first, 0);
        // SAFETY: inside the operand.
        sides::right(rows, (place.count, job.size), &mut buffers.queries[slot * deep * STEP..]);
        let state = &mut buffers.state[slot * 3 * SIDE..][..3 * SIDE];
        state[..SIDE].fill(f32::NEG_INFINITY);
        state[SIDE..].fill(0.0);
    }

    /// Packs a tile of keys, and its values.
    unsafe fn pack(&self, shared: usize, (first, count): (usize, usize), buffers: &mut Buffers<'_>) {
        let job = self.job;
        let (keys, values) = (job.key.get(shared).from(first, 0), job.value.get(shared).from(first, 0));
        // SAFETY: inside the operands.
        sides::left(keys, (count, job.size), buffers.keys);
        sides::left(sides::turned(values), (job.values, count), buffers.values);
        let packed = &buffers.values[..self.plan.across * count.div_ceil(DEEP) * STEP];
        buffers.finite = finite(packed);
    }

    /// One block of queries against one tile of keys.
    unsafe fn step(&self, slot: usize, place: Place, keys: (usize, usize), buffers: &mut Buffers<'_>) {
        let (job, deep) = (self.job, self.plan.steps.0);
        let count = place.seen.saturating_sub(keys.0).min(keys.1);
        if count == 0 {
            return;
        }
        let queries = &buffers.queries[slot * deep * STEP..];
        for row in (0..count).step_by(SIDE) {
            let sides = sides::packed(&buffers.keys[row / SIDE * deep * STEP..], queries, deep, STEP);
            // SAFETY: packed sides, and 32 x 32 scores.
            U::multiply(sides, buffers.scores[row * SIDE..].as_mut_ptr(), false);
        }
        let block = &mut buffers.scores[..count * SIDE];
        let part = Part { head: place.head, queries: (place.first, place.count), keys: (keys.0, count) };
        let (top, rest) = buffers.state[slot * 3 * SIDE..][..3 * SIDE].split_at_mut(SIDE);
        let (total, fade) = rest.split_at_mut(SIDE);
        let size = self.plan.across * SIDE * SIDE;
        let sums = &mut buffers.sums[slot * size..][..size];
        // SAFETY: inside the operands; packed sides, and the sums of the block.
        let unit = changed(job, part, block, buffers.changes, None);
        let rose = lanes::weigh(block, unit, State { top, total, fade: &mut *fade }, buffers.weights);
        if rose && keys.0 > 0 {
            lanes::fade(sums, fade);
        }
        let mut long = keys.1.div_ceil(DEEP);
        if !buffers.finite {
            // Those that no query of the block sees, which others of the task may see, are left out.
            let values = job.value.get(place.head / (job.heads / job.shared)).from(keys.0, 0);
            sides::left(sides::turned(values), (job.values, count), buffers.values);
            long = count.div_ceil(DEEP);
        }
        for (across, sums) in sums.chunks_exact_mut(SIDE * SIDE).enumerate() {
            let left = &buffers.values[across * long * STEP..];
            let sides = sides::packed(left, buffers.weights, count.div_ceil(DEEP), STEP);
            U::multiply_right_parts(sides, sums.as_mut_ptr(), keys.0 > 0);
        }
    }

    /// Writes the rows of a block.
    unsafe fn store(&self, slot: usize, place: Place, unseen: bool, buffers: &mut Buffers<'_>) {
        let (job, values) = (self.job, self.job.values);
        let total = &mut buffers.state[(slot * 3 + 1) * SIDE..][..SIDE];
        let size = self.plan.across * SIDE * SIDE;
        let sums = &mut buffers.sums[slot * size..][..size];
        if unseen || place.seen == 0 {
            sums.fill(0.0);
        }
        for total in total.iter_mut() {
            *total = if *total == 0.0 { 1.0 } else { 1.0 / *total };
        }
        // SAFETY: the stage has room for a block.
        lanes::fade(&mut sums[..values * SIDE], total);
        let from = Block { at: sums.as_ptr(), pitch: SIDE, rows: values, cols: SIDE };
        Turn { from, to: buffers.stage.as_mut_ptr(), width: values }.run();
        let start = (place.head * job.queries + place.first) * values;
        let rows = &buffers.stage[..place.count * values];
        // SAFETY: each task has its own rows.
        BF16::save(rows, self.out.slice(start..start + rows.len()));
    }
}

vectorize!(finite(packed: &[u8]) -> bool => finite_body);

/// Whether all of these bfloat16 are finite.
#[inline(always)]
fn finite_body(packed: &[u8]) -> bool {
    const EXPONENT: u8 = 0x7f;
    // The upper half of the exponent, and its last bit in the byte before.
    let all = |[low, high]: &[u8; 2]| u8::from(high & EXPONENT == EXPONENT && low & 0x80 != 0);
    packed.as_chunks::<2>().0.iter().fold(0, |found, cell| found | all(cell)) == 0
}

vectorize!(scale(values: &mut [f32], by: f32) => scale_body);

#[inline(always)]
fn scale_body(values: &mut [f32], by: f32) {
    for slot in values {
        *slot *= by;
    }
}

/// Caps a block of scores, and adds and hides what mask, bias and causality say; where the tangents of a cap are wanted, they are
/// kept. What the scores are still to be multiplied with.
///
/// # Safety
/// The part lies inside the operands.
unsafe fn changed(
    job: &Job<BF16>,
    part: Part,
    block: &mut [f32],
    buffer: &mut [f32],
    tangents: Option<&mut [f32]>,
) -> f32 {
    let unit = job.query_unit() as f32;
    // Hidden scores stay what they are by a positive factor.
    let late = unit > 0.0 && job.cap_unit().is_none() && job.changes.bias.is_none();
    if !late {
        scale(block, unit);
    }
    if let Some(cap) = job.cap_unit() {
        match tangents {
            None => scores::cap(block, cap as f32),
            Some(tangents) => {
                scores::cap(block, 1.0);
                tangents.copy_from_slice(block);
                scale(block, cap as f32);
            }
        }
    }
    job.changes.apply(part, SIDE, block, buffer);
    if late { unit } else { 1.0 }
}

#[cfg(test)]
mod tests;
