//! Many queries: blocks of them against tiles of keys, the softmax carried from tile to tile (Dao et al., 2022).
//!
//! Scores are computed turned over, a row per key: then the keys are read by broadcasts, the lanes of a register are
//! queries, the softmax runs down the lanes, and the weights are the right side of the product with the values.

use super::hidden::Part;
use super::scores::{self, Score, State, Weights};
use super::tile::{Left, Onto, Panels, Product, Turn};
use super::{Job, Place, pack, rows_per_group};
use crate::array::Array;
use crate::array::float::{RowElement, Wide};
use crate::dtype::{DType, Element};
use crate::machine::lanes::{Block, lane_count};
use crate::machine::threads::{self, SharedMut};
use crate::memory::scratch::Arena;
use std::ops::Range;

/// Keys of a tile, at most: the scores of a block stay in the first-level cache. From 112 to 518 times differ by 1 %.
const TILE: usize = 140;
/// Blocks of queries that share a tile of packed keys, at most.
const BLOCKS: usize = 8;
/// Tasks to aim for, at least: queries are cut, and no sum goes over them.
const TASKS: usize = 16;

/// Fills the result, which is row-major `[.., heads, queries, values]`.
pub fn run<T: RowElement<Wide: Score>>(job: &Job<T>, out: &mut Array) {
    let out = SharedMut::new(out.mut_ptr::<T>());
    // Few queries of the rarely used `f64` leave lanes idle.
    let narrow = T::DTYPE != DType::F64 && job.queries <= lane_count::<T::Wide>();
    if narrow { blocks::<T, 1>(job, out) } else { blocks::<T, 2>(job, out) }
}

/// The cut of the work, and the sizes of a task.
struct Plan {
    /// Lanes of a block.
    width: usize,
    /// Keys per tile, whole groups.
    tile: usize,
    /// Rows per group of packed keys.
    group: usize,
}

fn blocks<T: RowElement<Wide: Score>, const REGS: usize>(job: &Job<T>, out: SharedMut<T>) {
    let width = REGS * lane_count::<T::Wide>();
    let group = rows_per_group::<T::Wide>();
    let tile = job.keys.div_ceil(job.keys.div_ceil(TILE)).next_multiple_of(group);
    let plan = Plan { width, tile, group };
    job.in_blocks(width, (BLOCKS, threads::tasks(TASKS)), &|shared, range| {
        let bytes = plan.scratch(job, range.len()) * size_of::<T::Wide>();
        Arena::with([bytes], |parts| Task::<T, REGS> { job, plan: &plan, out }.run(shared, range, parts));
    });
}

impl Plan {
    /// Elements of scratch, with room for the starts of parts to be rounded up.
    fn scratch<T: RowElement<Wide: Score>>(&self, job: &Job<T>, blocks: usize) -> usize {
        let block = self.width * (job.size + job.values + 3);
        let stage = self.tile.max(self.width) * job.size.max(job.values);
        let rows = self.tile * (self.width + job.size + job.values);
        blocks * block + stage + rows + job.changes.buffer(self.tile, self.width) + 16 * 9
    }
}

struct Task<'a, T, const REGS: usize> {
    job: &'a Job<T>,
    plan: &'a Plan,
    out: SharedMut<T>,
}

/// Buffers of a task.
struct Buffers<'a, W> {
    /// For each block: the queries turned over, `[size][width]`.
    queries: &'a mut [W],
    /// For each block: the sums over the keys so far, `[values][width]`.
    sums: &'a mut [W],
    /// For each block: top, total and fade.
    state: &'a mut [W],
    scores: &'a mut [W],
    keys: &'a mut [W],
    values: &'a mut [W],
    stage: &'a mut [W],
    changes: &'a mut [W],
}

impl<T: RowElement<Wide: Score>, const REGS: usize> Task<'_, T, REGS> {
    fn run(&self, shared: usize, range: Range<usize>, mut parts: Arena<'_>) {
        let (job, plan) = (self.job, self.plan);
        let count = range.len();
        let mut buffers = Buffers {
            queries: parts.take(count * plan.width * job.size),
            sums: parts.take(count * plan.width * job.values),
            state: parts.take(count * plan.width * 3),
            scores: parts.take(plan.tile * plan.width),
            keys: parts.take(plan.tile * job.size),
            values: parts.take(plan.tile * job.values),
            stage: parts.take(plan.tile.max(plan.width) * job.size.max(job.values)),
            changes: parts.take(job.changes.buffer(plan.tile, plan.width)),
        };
        let mut seen = 0;
        for (slot, block) in range.clone().enumerate() {
            let place = job.place(plan.width, shared, block);
            self.load(slot, place, &mut buffers);
            seen = seen.max(place.seen);
        }
        for first in (0..seen).step_by(plan.tile) {
            let keys = (first, plan.tile.min(seen - first));
            // SAFETY: the rows lie inside the operands, the buffers are as large as planned.
            let values = unsafe {
                let rows = job.key.get(shared).from(first, 0);
                pack(rows, (keys.1, job.size), plan.group, buffers.stage, buffers.keys);
                let values = job.value.get(shared).from(first, 0);
                values.dense((keys.1, job.values), buffers.values.as_mut_ptr())
            };
            for (slot, block) in range.clone().enumerate() {
                // SAFETY: `values` are the rows of these keys, just read.
                unsafe { self.step(slot, job.place(plan.width, shared, block), keys, values, &mut buffers) };
            }
        }
        for (slot, block) in range.enumerate() {
            self.store(slot, job.place(plan.width, shared, block), seen == 0, &mut buffers);
        }
    }

    /// Turns the queries of a block over, and starts its state.
    fn load(&self, slot: usize, place: Place, buffers: &mut Buffers<'_, T::Wide>) {
        let (job, plan) = (self.job, self.plan);
        let rows = job.query.get(place.head).from(place.first, 0);
        let by = T::Wide::from_f64(job.query_unit());
        let to = &mut buffers.queries[slot * plan.width * job.size..];
        let from = Block { at: buffers.stage.as_ptr(), pitch: job.size, rows: place.count, cols: job.size };
        // SAFETY: the block lies inside the operand, the buffers are as large as planned.
        unsafe {
            rows.read_all((place.count, job.size), buffers.stage.as_mut_ptr(), job.size, by);
            Turn { from, to: to.as_mut_ptr(), width: plan.width }.run();
        }
        let state = &mut buffers.state[slot * 3 * plan.width..][..3 * plan.width];
        state[..plan.width].fill(T::Wide::LOWEST);
        state[plan.width..].fill(T::Wide::ZERO);
    }

    /// One block of queries against one tile of keys.
    ///
    /// # Safety
    /// The values are as many rows as the tile has keys, so far apart.
    unsafe fn step(
        &self,
        slot: usize,
        place: Place,
        keys: (usize, usize),
        (values, values_row): (*const T::Wide, isize),
        buffers: &mut Buffers<'_, T::Wide>,
    ) {
        let (job, plan) = (self.job, self.plan);
        let width = plan.width;
        let count = place.seen.saturating_sub(keys.0).min(keys.1);
        if count == 0 {
            return;
        }
        let block = &mut buffers.scores[..count * width];
        let panels = |at| Panels { at, panel: 0, row: width };
        // SAFETY: the buffers are as large as planned.
        Product::<_, 0, REGS> {
            rows: count,
            depth: job.size,
            panels: 1,
            a: Left { at: buffers.keys.as_ptr(), group: plan.group * job.size, step: plan.group as isize },
            b: panels(buffers.queries[slot * width * job.size..].as_ptr()),
            c: Panels { at: block.as_mut_ptr(), panel: 0, row: width },
            onto: Onto::Nothing,
        }
        .run();
        if let Some(cap) = job.cap_unit() {
            scores::cap(block, T::Wide::from_f64(cap));
        }
        let part = Part { head: place.head, queries: (place.first, place.count), keys: (keys.0, count) };
        // SAFETY: inside the operands.
        job.changes.apply(part, width, block, buffers.changes);
        let (top, rest) = buffers.state[slot * 3 * width..][..3 * width].split_at_mut(width);
        let (total, fade) = rest.split_at_mut(width);
        Weights::<_, REGS> { scores: &mut *block, state: State { top, total, fade: &mut *fade } }.run();
        let sums = &mut buffers.sums[slot * width * job.values..][..width * job.values];
        let onto = if keys.0 > 0 { Onto::Faded(fade.as_ptr()) } else { Onto::Nothing };
        // SAFETY: the buffers are as large as planned, the values were checked with the keys.
        Product::<_, 0, REGS> {
            rows: job.values,
            depth: count,
            panels: 1,
            a: Left { at: values, group: plan.group, step: values_row },
            b: panels(block.as_ptr()),
            c: Panels { at: sums.as_mut_ptr(), panel: 0, row: width },
            onto,
        }
        .run();
    }

    /// Writes the rows of a block.
    fn store(&self, slot: usize, place: Place, unseen: bool, buffers: &mut Buffers<'_, T::Wide>) {
        let (job, plan) = (self.job, self.plan);
        let (width, values) = (plan.width, job.values);
        let total = &buffers.state[slot * 3 * width + width..][..width];
        let sums = &mut buffers.sums[slot * width * values..][..width * values];
        if unseen || place.seen == 0 {
            sums.fill(T::Wide::ZERO);
        }
        let from = Block { at: sums.as_ptr(), pitch: width, rows: values, cols: width };
        // SAFETY: the stage has room for a block.
        unsafe { Turn { from, to: buffers.stage.as_mut_ptr(), width: values }.run() };
        for (query, &total) in total[..place.count].iter().enumerate() {
            let row = &mut buffers.stage[query * values..][..values];
            let by = if total == T::Wide::ZERO { T::Wide::ONE } else { T::Wide::ONE / total };
            for slot in row.iter_mut() {
                *slot = *slot * by;
            }
            let start = (place.head * job.queries + place.first + query) * values;
            // SAFETY: each task has its own rows.
            T::save(row, unsafe { self.out.slice(start..start + values) });
        }
    }
}
