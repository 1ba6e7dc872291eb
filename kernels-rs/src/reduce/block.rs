//! The order of a reduction, and the two loops that follow it.
//!
//! The `n` values along the reduced axes (in row-major order, whatever the layout) are cut into blocks of 1024, a block
//! into four parts of 256, and a part is dealt out to 16 lanes. Each lane folds its values one after another; then the
//! lanes of parts 0 and 1, of 2 and 3, and of both pairs are combined lane by lane, and the 16 lanes as a tree. The
//! results of the blocks are folded in the same way. So the order depends on `n` alone, and the rows of a matrix, its
//! columns, and a transposed view give the same bits.

use super::fold::Fold;
use crate::vectorize;
use std::marker::PhantomData;

/// Values in a block.
pub const BLOCK: usize = 1024;
const PART: usize = 256;
const LANES: usize = 16;
const PARTS: usize = BLOCK / PART;

/// Several rows to fold, each at most one block long and dense.
pub struct RowJob {
    /// First element of the first row.
    pub x: *const u8,
    /// Number of rows.
    pub count: usize,
    /// From row to row, in elements.
    pub stride: isize,
    /// Length of a row.
    pub len: usize,
    /// One `Acc` for each row.
    pub out: *mut u8,
}

/// One block of rows to fold into one row.
pub struct ColumnJob<'a> {
    /// Where the offsets count from.
    pub x: *const u8,
    /// Start of each row, in elements.
    pub rows: &'a [isize],
    /// True when each row begins where the one before ends.
    pub dense: bool,
    /// Length of a row.
    pub width: usize,
    /// From column to column, in elements.
    pub step: isize,
    /// One `Acc` for each column.
    pub out: *mut u8,
    /// From result to result, in elements.
    pub out_step: isize,
    /// Room for [`scratch_len`] values of `Acc`.
    pub scratch: *mut u8,
}

/// How many values of `Acc` a [`ColumnJob`] needs as scratch.
pub fn scratch_len(width: usize) -> usize {
    3 * LANES * width + width
}

vectorize!(
    /// Runs a [`RowJob`]. The addresses in it must be good for what they say.
    pub fold_rows[F: Fold](job: &RowJob, fold: PhantomData<F>) => fold_rows_any::<F>
);
vectorize!(
    /// Runs a [`ColumnJob`]. The addresses in it must be good for what they say.
    pub fold_columns[F: Fold](job: &ColumnJob<'_>, fold: PhantomData<F>) => fold_columns_any::<F>
);

#[inline(always)]
fn fold_rows_any<F: Fold>(job: &RowJob, _: PhantomData<F>) {
    let (x, out) = (job.x.cast::<F::In>(), job.out.cast::<F::Acc>());
    for row in 0..job.count {
        // SAFETY: the job says that this row and this result exist.
        unsafe {
            let row_x = std::slice::from_raw_parts(x.offset(row as isize * job.stride), job.len);
            out.add(row).write(fold_block::<F>(row_x));
        }
    }
}

type Lanes<F> = [<F as Fold>::Acc; LANES];

#[inline(always)]
fn combine_lanes<F: Fold>(a: &Lanes<F>, b: &Lanes<F>) -> Lanes<F> {
    std::array::from_fn(|lane| F::combine(a[lane], b[lane]))
}

#[inline(always)]
fn lift_lanes<F: Fold>(x: &[F::In; LANES]) -> Lanes<F> {
    std::array::from_fn(|lane| F::lift(x[lane]))
}

#[inline(always)]
fn fold_block<F: Fold>(x: &[F::In]) -> F::Acc {
    let mut parts = [[F::NEUTRAL; LANES]; PARTS];
    if x.len() == BLOCK {
        let (chunks, _) = x.as_chunks::<LANES>();
        for step in 0..PART / LANES {
            for (part, lanes) in parts.iter_mut().enumerate() {
                *lanes = combine_lanes::<F>(lanes, &lift_lanes::<F>(&chunks[part * (PART / LANES) + step]));
            }
        }
    } else if x.len() <= LANES {
        return fold_short::<F>(x);
    } else {
        for (lanes, part) in parts.iter_mut().zip(x.chunks(PART)) {
            *lanes = fold_part::<F>(part);
        }
    }
    let left = combine_lanes::<F>(&parts[0], &parts[1]);
    let right = combine_lanes::<F>(&parts[2], &parts[3]);
    fold_tree::<F>(combine_lanes::<F>(&left, &right))
}

#[inline(always)]
fn fold_part<F: Fold>(x: &[F::In]) -> Lanes<F> {
    let mut lanes = [F::NEUTRAL; LANES];
    let (chunks, rest) = x.as_chunks::<LANES>();
    for chunk in chunks {
        lanes = combine_lanes::<F>(&lanes, &lift_lanes::<F>(chunk));
    }
    if !rest.is_empty() {
        let mut last = [F::NEUTRAL; LANES];
        for (lane, &value) in last.iter_mut().zip(rest) {
            *lane = F::lift(value);
        }
        lanes = combine_lanes::<F>(&lanes, &last);
    }
    lanes
}

#[inline(always)]
fn fold_tree<F: Fold>(mut lanes: Lanes<F>) -> F::Acc {
    for half in [8, 4, 2, 1] {
        for lane in 0..half {
            lanes[lane] = F::combine(lanes[lane], lanes[lane + half]);
        }
    }
    lanes[0]
}

/// The same tree, for a row that does not fill the lanes.
#[inline(always)]
fn fold_short<F: Fold>(x: &[F::In]) -> F::Acc {
    let mut lanes = [F::NEUTRAL; LANES];
    for (lane, &value) in lanes.iter_mut().zip(x) {
        *lane = F::lift(value);
    }
    let mut half = x.len().next_power_of_two() / 2;
    while half > 0 {
        for lane in 0..half {
            lanes[lane] = F::combine(lanes[lane], lanes[lane + half]);
        }
        half /= 2;
    }
    lanes[0]
}

#[inline(always)]
fn fold_columns_any<F: Fold>(job: &ColumnJob<'_>, _: PhantomData<F>) {
    let tile_len = LANES * job.width;
    let first = job.scratch.cast::<F::Acc>();
    // SAFETY: the job says that the scratch holds three tiles.
    let (second, third) = unsafe { (first.add(tile_len), first.add(2 * tile_len)) };
    let parts = job.rows.len().div_ceil(PART);
    let mut lanes = 0;
    for (part, rows) in job.rows.chunks(PART).enumerate() {
        let tile = [first, second, second, third][part];
        let filled = fill_tile::<F>(job, rows, tile);
        lanes = lanes.max(filled);
        match part {
            1 => merge::<F>(first, second, filled * job.width),
            3 => {
                merge::<F>(second, third, filled * job.width);
                merge::<F>(first, second, tile_len);
            }
            2 if parts == 3 => merge::<F>(first, second, filled * job.width),
            _ => {}
        }
    }
    let mut half = lanes.next_power_of_two() / 2;
    while half > 0 {
        let present = half.min(lanes - half);
        // SAFETY: row `half` lies inside the tile.
        merge::<F>(first, unsafe { first.add(half * job.width) }, present * job.width);
        lanes = half;
        half /= 2;
    }
    let out = job.out.cast::<F::Acc>();
    for column in 0..job.width {
        // SAFETY: the job says that each column has its result; row 0 of the tile is written.
        unsafe { out.offset(column as isize * job.out_step).write(*first.add(column)) };
    }
}

/// Folds at most [`PART`] rows, row `r` into row `r % 16` of the tile; gives the number of rows of the tile in use.
#[inline(always)]
fn fill_tile<F: Fold>(job: &ColumnJob<'_>, rows: &[isize], tile: *mut F::Acc) -> usize {
    let x = job.x.cast::<F::In>();
    for (round, group) in rows.chunks(LANES).enumerate() {
        if job.dense {
            // SAFETY: dense rows are one run of elements, and the tile holds 16 rows.
            unsafe { absorb::<F>(tile, x.offset(group[0]), group.len() * job.width, 1, round == 0) };
        } else {
            for (lane, &offset) in group.iter().enumerate() {
                // SAFETY: the job says that the row exists; the tile holds 16 rows.
                unsafe { absorb::<F>(tile.add(lane * job.width), x.offset(offset), job.width, job.step, round == 0) };
            }
        }
    }
    rows.len().min(LANES)
}

/// `acc[i] = combine(acc[i], x[i * step])`, or the element alone when it is the first.
///
/// # Safety
/// `len` values each, not overlapping.
#[inline(always)]
unsafe fn absorb<F: Fold>(acc: *mut F::Acc, x: *const F::In, len: usize, step: isize, first: bool) {
    // SAFETY: as the caller promises.
    unsafe {
        match (step == 1, first) {
            (true, true) => (0..len).for_each(|i| acc.add(i).write(F::lift(*x.add(i)))),
            (true, false) => {
                let acc = std::slice::from_raw_parts_mut(acc, len);
                let x = std::slice::from_raw_parts(x, len);
                for (a, &v) in acc.iter_mut().zip(x) {
                    *a = F::combine(*a, F::lift(v));
                }
            }
            (false, true) => (0..len).for_each(|i| acc.add(i).write(F::lift(*x.offset(i as isize * step)))),
            (false, false) => {
                for i in 0..len {
                    *acc.add(i) = F::combine(*acc.add(i), F::lift(*x.offset(i as isize * step)));
                }
            }
        }
    }
}

/// Combines a run of the tile with another one that comes later in the order.
#[inline(always)]
fn merge<F: Fold>(into: *mut F::Acc, from: *const F::Acc, len: usize) {
    // SAFETY: both are written parts of the tiles, and do not overlap.
    let (into, from) = unsafe { (std::slice::from_raw_parts_mut(into, len), std::slice::from_raw_parts(from, len)) };
    for (a, &b) in into.iter_mut().zip(from) {
        *a = F::combine(*a, b);
    }
}
