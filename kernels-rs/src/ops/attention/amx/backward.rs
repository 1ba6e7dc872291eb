//! Cotangents of attention in bfloat16 by tiles, as [`super::super::backward`] has them by registers: some blocks of 32 queries
//! against tiles of keys, twice. First scores and the cotangents of weights, for the sums over all keys of a query; then,
//! from both, which are kept where there are few keys and computed again otherwise, the products that give the cotangents.
//!
//! A row per key and a lane per query suits them all: weights and cotangents of scores are left sides as they are, 32 queries
//! along the depth, for the sums of keys and values; those of queries, which lie turned over, take them woven in pairs of rows.

use super::super::Place;
use super::super::backward::{Cotangents, Of, Share, Targets, in_tasks};
use super::super::heads::Heads;
use super::super::hidden::Part;
use super::super::scores::{self, State};
use super::super::tile::Turn;
use super::super::{Job, heads};
use super::{changed, finite, lanes, scale, sides};
use crate::array::float::RowElement;
use crate::dtype::BF16;
use crate::error::Result;
use crate::machine::amx::{LINE, LINES, STEP, Unit};
use crate::machine::lanes::Block;
use crate::memory::scratch::Arena;
use crate::ops::contraction::amx::{DEEP, SIDE};
use std::marker::PhantomData;
use std::ops::Range;

/// Blocks of queries whose products with a tile of keys are summed at once, so that sums in memory are read and written once
/// for 128 queries. With a tile of 128 keys what is split of them takes 128 KiB of the second-level cache.
const GROUP: usize = 4;
/// Keys of a tile.
const TILE: usize = 128;
/// Keys up to which they are one tile, and scores are kept: for a group of blocks as much as what is split.
const HELD: usize = 256;
/// Elements of 32 x 32 sums.
const SUMS: usize = SIDE * SIDE;

/// The sizes of a task.
struct Plan {
    /// Steps along a query, and along a value.
    deep: (usize, usize),
    /// Blocks of 32 keys.
    long: usize,
    tile: usize,
    /// Whether the scores of a group are kept.
    held: bool,
}

/// Fills the cotangents from that of the result.
pub fn run<U: Unit>(job: &Job<BF16>, g: &Heads<BF16>, out: Cotangents<'_>) -> Result<()> {
    let held = job.keys <= HELD;
    let plan = Plan {
        deep: (job.size.div_ceil(DEEP), job.values.div_ceil(DEEP)),
        long: job.keys.div_ceil(SIDE),
        tile: if held { job.keys } else { TILE },
        held,
    };
    in_tasks(job, SIDE, out, |targets, share| {
        Task::<U> { job, g, plan: &plan, targets, unit: PhantomData }.run(&share);
    })
}

struct Task<'a, U> {
    job: &'a Job<BF16>,
    g: &'a Heads<BF16>,
    plan: &'a Plan,
    targets: &'a Targets<BF16>,
    unit: PhantomData<fn() -> U>,
}

/// Buffers of a task.
struct Buffers<'a> {
    /// Left sides: keys and values, and the keys turned over.
    keys: &'a mut [u8],
    values: &'a mut [u8],
    turned: &'a mut [u8],
    /// Whether all keys are finite, and all queries and cotangents of a group: a hidden one is multiplied with 0 then.
    finite_keys: bool,
    finite_group: bool,
    /// For each block of a group: queries and cotangents of the result, as columns of right sides, and along their depth.
    queries: &'a mut [u8],
    cotangents: &'a mut [u8],
    query_rows: &'a mut [u8],
    cotangent_rows: &'a mut [u8],
    /// Weights and cotangents of scores of a tile as left sides of two parts; the latter as a right side, too.
    weights: &'a mut [u8],
    pulls: &'a mut [u8],
    woven: &'a mut [u8],
    /// Sums of 32 x 32.
    dkey: &'a mut [f32],
    dvalue: &'a mut [f32],
    dquery: &'a mut [f32],
    /// Of a tile, for each block where they are kept.
    scores: &'a mut [f32],
    pulled: &'a mut [f32],
    tangents: &'a mut [f32],
    /// For each block: top, total, and sum of weights times their cotangents.
    state: &'a mut [f32],
    fade: &'a mut [f32],
    stage: &'a mut [f32],
    changes: &'a mut [f32],
}

impl<U: Unit> Task<'_, U> {
    fn run(&self, share: &Share) {
        let (job, Plan { deep: (deep, across), long, tile, held, .. }) = (self.job, self.plan);
        let (group, tall) = (GROUP.min(share.blocks.len()), tile.div_ceil(SIDE));
        let kept = if *held { group * tall } else { tall } * SUMS;
        let tangents = if job.cap_unit().is_some() { kept } else { 0 };
        let row = if self.targets.scores.is_some() { *tile } else { 0 };
        let of_keys = [long * deep, long * across, long * deep];
        let of_queries = [group * deep, group * across, group * deep, group * across];
        let split = [tall * group * 2, tall * group * 2, tall * 2];
        let sums = [long * deep, long * across, group * deep].map(|blocks| blocks * SUMS);
        let scores = [kept, kept, tangents];
        let wide = SIDE * job.size.max(job.values).max(row).max(SIDE);
        let rest = [group * 3 * SIDE, SIDE, wide, job.changes.buffer(*tile, SIDE)];
        let steps = of_keys.iter().chain(&of_queries).chain(&split).sum::<usize>();
        let floats = sums.iter().chain(&scores).chain(&rest).sum::<usize>();
        // Each part begins on a line.
        Arena::with([steps * STEP + floats * size_of::<f32>() + 20 * LINE], |mut room| {
            let [keys, values, turned] = of_keys.map(|steps| room.take(steps * STEP));
            let [queries, cotangents, query_rows, cotangent_rows] = of_queries.map(|steps| room.take(steps * STEP));
            let [weights, pulls, woven] = split.map(|steps| room.take(steps * STEP));
            let [dkey, dvalue, dquery] = sums.map(|len| room.take(len));
            let [scores, pulled, tangents] = scores.map(|len| room.take(len));
            let [state, fade, stage, changes] = rest.map(|len| room.take(len));
            #[rustfmt::skip]
            let mut buffers = Buffers {
                keys, values, turned, queries, cotangents, query_rows, cotangent_rows, weights, pulls, woven, dkey, dvalue, dquery,
                scores, pulled, tangents, state, fade, stage, changes, finite_keys: true, finite_group: true,
            };
            // SAFETY: whoever chose the unit says that it is there, and all that comes with it.
            unsafe {
                U::rows(LINES, LINES);
                self.pack(share, &mut buffers);
                for first in share.blocks.clone().step_by(GROUP) {
                    let blocks = first..share.blocks.end.min(first + GROUP);
                    self.group(share, blocks, first == share.blocks.start, &mut buffers);
                }
                U::release();
            }
            self.finish(share, &mut buffers);
        });
    }

    /// Packs keys and values.
    unsafe fn pack(&self, share: &Share, buffers: &mut Buffers<'_>) {
        let (job, key) = (self.job, self.job.key.get(share.head));
        // SAFETY: whole heads, and room for them.
        sides::left(key, (job.keys, job.size), buffers.keys);
        sides::left(job.value.get(share.head), (job.keys, job.values), buffers.values);
        sides::left(sides::turned(key), (job.size, job.keys), buffers.turned);
        buffers.finite_keys = finite(buffers.keys);
    }

    /// Some blocks of queries against all keys; `fresh`: the first ones of the task.
    unsafe fn group(&self, share: &Share, blocks: Range<usize>, fresh: bool, buffers: &mut Buffers<'_>) {
        let (job, plan, slots) = (self.job, self.plan, blocks.len());
        let places = || blocks.clone().map(|block| job.place(SIDE, share.head, block)).enumerate();
        let (mut seen_by, mut most) = ([0; GROUP], 0);
        buffers.finite_group = true;
        for (slot, place) in places() {
            (seen_by[slot], most) = (place.seen, most.max(place.seen));
            // SAFETY: the rows of a block lie inside the operands.
            self.load(slot, place, buffers);
            for first in (0..place.seen).step_by(plan.tile) {
                self.survey(slot, place, (first, plan.tile.min(place.seen - first)), buffers);
            }
        }
        for first in (0..job.keys).step_by(plan.tile) {
            let keys = (first, plan.tile.min(job.keys - first));
            if first < most {
                for (slot, place) in places() {
                    self.pull((slot, slots), place, keys, buffers);
                }
                // SAFETY: what every block of the group split.
                self.sum(keys, &seen_by[..slots], fresh, buffers);
            } else if fresh {
                let (rows, (deep, across)) = (first / SIDE..(first + keys.1).div_ceil(SIDE), plan.deep);
                buffers.dkey[rows.start * deep * SUMS..rows.end * deep * SUMS].fill(0.0);
                buffers.dvalue[rows.start * across * SUMS..rows.end * across * SUMS].fill(0.0);
            }
        }
        for (slot, place) in places() {
            self.store(slot, place, buffers);
        }
    }

    /// Packs queries and cotangents of a block, and starts its state and what it is to fill.
    unsafe fn load(&self, slot: usize, place: Place, buffers: &mut Buffers<'_>) {
        let (job, (deep, across)) = (self.job, self.plan.deep);
        let (query, g) = (job.query.get(place.head).from(place.first, 0), self.g.get(place.head).from(place.first, 0));
        let of_operands: [(heads::Rows<BF16>, _, _, _, _); 2] = [
            (query, job.size, deep, &mut *buffers.queries, &mut *buffers.query_rows),
            (g, job.values, across, &mut *buffers.cotangents, &mut *buffers.cotangent_rows),
        ];
        for (rows, cols, steps, columns, along) in of_operands {
            let (size, pitch) = ((place.count, cols), along.len() / steps);
            // SAFETY: inside the operand, and room for a group of blocks.
            sides::right(rows, size, &mut columns[slot * steps * STEP..]);
            sides::deep(rows, size, pitch, &mut along[slot * STEP..]);
            buffers.finite_group &= finite(&columns[slot * steps * STEP..][..steps * STEP]);
        }
        let state = &mut buffers.state[slot * 3 * SIDE..][..3 * SIDE];
        state[..SIDE].fill(f32::NEG_INFINITY);
        state[SIDE..].fill(0.0);
        let seen = place.seen;
        if seen == 0 {
            buffers.dquery[slot * deep * SUMS..][..deep * SUMS].fill(0.0);
        }
        if let Some(scores) = self.targets.scores {
            for row in place.head * job.queries + place.first..place.head * job.queries + place.first + place.count {
                // SAFETY: the rows of this block.
                scores.slice(row * job.keys + seen..(row + 1) * job.keys).fill(0.0);
            }
        }
    }

    /// Where the scores of a block are.
    fn kept(&self, slot: usize, count: usize) -> Range<usize> {
        let start = if self.plan.held { slot * self.plan.tile.div_ceil(SIDE) * SUMS } else { 0 };
        start..start + count * SIDE
    }

    /// Scores of a block with some keys, and the cotangents of their weights; what scores are still to be multiplied with.
    unsafe fn products(&self, slot: usize, place: Place, keys: (usize, usize), buffers: &mut Buffers<'_>) -> f32 {
        let (job, (deep, across)) = (self.job, self.plan.deep);
        let kept = self.kept(slot, keys.1);
        for (row, at) in (0..keys.1).step_by(SIDE).zip((kept.start..).step_by(SUMS)) {
            let block = (keys.0 + row) / SIDE;
            let query = &buffers.queries[slot * deep * STEP..];
            let g = &buffers.cotangents[slot * across * STEP..];
            let (left, right) = (&buffers.keys[block * deep * STEP..], &buffers.values[block * across * STEP..]);
            let (scores, pulled) = (&mut buffers.scores[at..][..SUMS], &mut buffers.pulled[at..][..SUMS]);
            // SAFETY: packed sides, and 32 x 32 sums.
            U::multiply(sides::packed(left, query, deep, STEP), scores.as_mut_ptr(), false);
            U::multiply(sides::packed(right, g, across, STEP), pulled.as_mut_ptr(), false);
        }
        let tangents = job.cap_unit().map(|_| &mut buffers.tangents[kept.clone()]);
        let part = Part { head: place.head, queries: (place.first, place.count), keys };
        // SAFETY: inside the operands.
        let unit = changed(job, part, &mut buffers.scores[kept.clone()], buffers.changes, tangents);
        if place.count < SIDE {
            // Lanes without a query see nothing, whatever is in keys and values.
            let (scores, pulled, tangents) = (&mut *buffers.scores, &mut *buffers.pulled, &mut *buffers.tangents);
            for (block, absent) in [(scores, f32::NEG_INFINITY), (pulled, 0.0), (tangents, 0.0)] {
                for row in block.chunks_exact_mut(SIDE).skip(kept.start / SIDE).take(keys.1) {
                    row[place.count..].fill(absent);
                }
            }
        }
        unit
    }

    /// Tops and sums of a block over some keys that it sees.
    unsafe fn survey(&self, slot: usize, place: Place, keys: (usize, usize), buffers: &mut Buffers<'_>) {
        let unit = self.products(slot, place, keys, buffers);
        let kept = self.kept(slot, keys.1);
        let (top, rest) = buffers.state[slot * 3 * SIDE..][..3 * SIDE].split_at_mut(SIDE);
        let (total, inner) = rest.split_at_mut(SIDE);
        let state = State { top, total, fade: buffers.fade };
        lanes::survey(&mut buffers.scores[kept.clone()], &buffers.pulled[kept], unit, state, inner);
    }

    /// The cotangents of the scores of a block, number `slot` of so many, with a tile of keys: split, and summed for the queries.
    unsafe fn pull(
        &self,
        (slot, slots): (usize, usize),
        place: Place,
        keys: (usize, usize),
        buffers: &mut Buffers<'_>,
    ) {
        let (job, deep) = (self.job, self.plan.deep.0);
        let count = place.seen.saturating_sub(keys.0).min(keys.1);
        let (all, pitch, kept) = (keys.1.next_multiple_of(SIDE), slots * 2 * STEP, self.kept(slot, count));
        if count > 0 {
            let unit = (!self.plan.held).then(|| self.products(slot, place, (keys.0, count), buffers));
            let state = &buffers.state[slot * 3 * SIDE..];
            let ends = [0, 1, 2].map(|end| &state[end * SIDE..][..SIDE]);
            let (scores, pulled) = (&mut buffers.scores[kept.clone()], &mut buffers.pulled[kept.clone()]);
            lanes::pull(scores, pulled, unit, ends);
            self.save_scores(place, (keys.0, count), pulled, buffers.stage);
            if job.cap_unit().is_some() {
                scores::uncap(pulled, &buffers.tangents[kept.clone()]);
            }
        }
        let (weights, pulls) = (&mut buffers.weights[slot * 2 * STEP..], &mut buffers.pulls[slot * 2 * STEP..]);
        lanes::split::<false>(&buffers.scores[kept.clone()], all, pitch, weights, &mut []);
        lanes::split::<true>(&buffers.pulled[kept], all, pitch, pulls, buffers.woven);
        if count > 0 {
            let (mut long, mut first) = (self.plan.long, keys.0 / DEEP);
            if !buffers.finite_keys {
                // Those that no query of the block sees, which others of the task may see, are left out.
                let seen = job.key.get(place.head / (job.heads / job.shared)).from(keys.0, 0);
                sides::left(sides::turned(seen), (job.size, count), buffers.turned);
                (long, first) = (count.div_ceil(DEEP), 0);
            }
            for block in 0..deep {
                let left = &buffers.turned[(block * long + first) * STEP..];
                let sums = &mut buffers.dquery[(slot * deep + block) * SUMS..][..SUMS];
                let sides = sides::packed(left, buffers.woven, count.div_ceil(DEEP), STEP);
                U::multiply_right_parts(sides, sums.as_mut_ptr(), keys.0 > 0);
            }
        }
    }

    /// Writes the cotangents of some scores of a block, where somebody wants them.
    unsafe fn save_scores(&self, place: Place, (first, count): (usize, usize), pulls: &[f32], stage: &mut [f32]) {
        let (job, Some(scores)) = (self.job, self.targets.scores) else { return };
        let from = Block { at: pulls.as_ptr(), pitch: SIDE, rows: count, cols: place.count };
        // SAFETY: the stage has room for a tile.
        Turn { from, to: stage.as_mut_ptr(), width: count }.run();
        for (query, row) in stage.chunks_exact(count).take(place.count).enumerate() {
            let at = (place.head * job.queries + place.first + query) * job.keys + first;
            // SAFETY: a row of this block.
            scores.slice(at..at + count).copy_from_slice(row);
        }
    }

    /// Adds what a group split for a tile to the sums of its keys and values; `seen`: how many keys each of its blocks sees.
    unsafe fn sum(&self, keys: (usize, usize), seen: &[usize], fresh: bool, buffers: &mut Buffers<'_>) {
        let ((deep, across), slots, whole) = (self.plan.deep, seen.len(), buffers.finite_group);
        let together = if whole { slots } else { 1 };
        for row in 0..keys.1.div_ceil(SIDE) {
            let (key, at) = (keys.0 / SIDE + row, row * slots * 2 * STEP);
            let of_values = (&buffers.weights[at..], &*buffers.cotangent_rows, &mut *buffers.dvalue, across);
            let of_keys = (&buffers.pulls[at..], &*buffers.query_rows, &mut *buffers.dkey, deep);
            for (left, right, sums, steps) in [of_values, of_keys] {
                let sums = &mut sums[key * steps * SUMS..][..steps * SUMS];
                for (right, sums) in right.chunks_exact(right.len() / steps).zip(sums.chunks_exact_mut(SUMS)) {
                    for slot in (0..slots).step_by(together) {
                        let adds = !fresh || slot > 0;
                        let sides = sides::packed(&left[slot * 2 * STEP..], &right[slot * STEP..], together, 2 * STEP);
                        // The sums of keys that no query of the block sees stay as they are.
                        let rows = if whole { SIDE } else { SIDE.min(seen[slot].saturating_sub(key * SIDE)) };
                        let before = &mut buffers.stage[..SUMS - rows * SIDE];
                        if adds {
                            before.copy_from_slice(&sums[rows * SIDE..]);
                        } else {
                            before.fill(0.0);
                        }
                        // SAFETY: packed sides, and 32 x 32 sums.
                        U::multiply_left_parts(sides, sums.as_mut_ptr(), adds);
                        sums[rows * SIDE..].copy_from_slice(before);
                    }
                }
            }
        }
    }

    /// Writes the cotangents of the queries of a block.
    fn store(&self, slot: usize, place: Place, buffers: &mut Buffers<'_>) {
        let (job, deep) = (self.job, self.plan.deep.0);
        let sums = &buffers.dquery[slot * deep * SUMS..][..deep * SUMS];
        let from = Block { at: sums.as_ptr(), pitch: SIDE, rows: job.size, cols: SIDE };
        // SAFETY: the stage has room for a block.
        unsafe { Turn { from, to: buffers.stage.as_mut_ptr(), width: job.size }.run() };
        let rows = &mut buffers.stage[..place.count * job.size];
        scale(rows, job.settings.scale as f32);
        let start = (place.head * job.queries + place.first) * job.size;
        // SAFETY: each task has its own rows.
        BF16::save(rows, unsafe { self.targets.query.slice(start..start + rows.len()) });
    }

    /// Writes the sums of keys and values.
    fn finish(&self, share: &Share, buffers: &mut Buffers<'_>) {
        let (job, (deep, across)) = (self.job, self.plan.deep);
        let by = job.settings.scale as f32;
        for first in (0..job.keys).step_by(SIDE) {
            let of_keys = (Of::Key, &*buffers.dkey, deep, job.size, by);
            let of_values = (Of::Value, &*buffers.dvalue, across, job.values, 1.0);
            for (of, sums, blocks, cols, by) in [of_keys, of_values] {
                let rows = &mut buffers.stage[..SIDE.min(job.keys - first) * cols];
                let sums = &sums[first / SIDE * blocks * SUMS..];
                for (index, row) in rows.chunks_exact_mut(cols).enumerate() {
                    for (to, sums) in row.chunks_mut(SIDE).zip(sums.chunks_exact(SUMS)) {
                        to.copy_from_slice(&sums[index * SIDE..][..to.len()]);
                    }
                }
                if by != 1.0 {
                    scale(rows, by);
                }
                self.targets.put(share, of, first, cols, rows);
            }
        }
    }
}

#[cfg(test)]
mod tests;
