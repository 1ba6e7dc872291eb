//! The order of a reduction, and the two loops that follow it.
//!
//! The `n` values along the reduced axes (in row-major order, whatever the layout) are cut into blocks of 1024, a block
//! into four parts of 256, and a part is dealt out to 16 lanes. Each lane folds its values one after another; then the
//! lanes of parts 0 and 1, of 2 and 3, and of both pairs are combined lane by lane, and the 16 lanes as a tree. The
//! results of the blocks are folded in the same way. So the order depends on `n` alone, and the rows of a matrix, its
//! columns, and a transposed view give the same bits.

use super::fold::Fold;
use crate::array::narrow::widen;
use crate::dtype::{DType, Element};
use crate::vectorize;
use std::mem::MaybeUninit;

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
    /// For a fold over `f32`: the narrow float that is stored instead.
    pub narrow: Option<DType>,
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
    /// Room for [`SCRATCH_ROWS`] rows of `Acc`.
    pub scratch: *mut u8,
    /// Room for 16 rows of elements.
    pub row: *mut u8,
    /// For a fold over `f32`: the narrow float that is stored instead.
    pub narrow: Option<DType>,
}

/// How many rows of results a [`ColumnJob`] needs as scratch.
pub const SCRATCH_ROWS: usize = 3 * LANES;

// Reductions wait for memory, and AVX-512 brings them nothing.
vectorize!(
    /// Runs a [`RowJob`].
    ///
    /// # Safety
    /// The addresses in the job are good for what it says of them, and nothing else touches its results meanwhile.
    unsafe pub fold_rows[F: Fold](job: &RowJob) => fold_rows_any::<F>, wide false, fast <F::In as Element>::FAST
);
vectorize!(
    /// Runs a [`ColumnJob`].
    ///
    /// # Safety
    /// The addresses in the job are good for what it says of them, and nothing else touches its results and room meanwhile.
    unsafe pub fold_columns[F: Fold](job: &ColumnJob<'_>) => fold_columns_any::<F>, wide false, fast <F::In as Element>::FAST
);

/// # Safety
/// As for [`fold_rows`].
#[inline(always)]
unsafe fn fold_rows_any<F: Fold>(job: &RowJob) {
    let out = job.out.cast::<F::Acc>();
    if let Some(dtype) = stored_as::<F>(job.narrow) {
        let mut wide = [const { MaybeUninit::<F::In>::uninit() }; BLOCK];
        for row in 0..job.count {
            widen(dtype, narrow_at(job.x, row as isize * job.stride), wide.as_mut_ptr().cast(), job.len);
            out.add(row).write(fold_block::<F>(std::slice::from_raw_parts(wide.as_ptr().cast(), job.len)));
        }
        return;
    }
    let x = job.x.cast::<F::In>();
    for row in 0..job.count {
        let row_x = std::slice::from_raw_parts(x.offset(row as isize * job.stride), job.len);
        out.add(row).write(fold_block::<F>(row_x));
    }
}

/// The narrow float of a job; folds over other types than `f32` need no code for it.
#[inline(always)]
fn stored_as<F: Fold>(narrow: Option<DType>) -> Option<DType> {
    if matches!(<F::In as Element>::DTYPE, DType::F32) { narrow } else { None }
}

type Lanes<F> = [<F as Fold>::Acc; LANES];

#[inline(always)]
fn combine_lanes<F: Fold>(a: &Lanes<F>, b: &Lanes<F>) -> Lanes<F> {
    std::array::from_fn(|lane| F::combine(a[lane], b[lane]))
}

#[inline(always)]
fn absorb_lanes<F: Fold>(lanes: &mut Lanes<F>, x: &[F::In; LANES]) {
    for (lane, &x) in lanes.iter_mut().zip(x) {
        *lane = F::combine(*lane, F::lift(x));
    }
}

#[inline(always)]
fn fold_block<F: Fold>(x: &[F::In]) -> F::Acc {
    if x.len() <= LANES {
        return fold_short::<F>(x);
    }
    if x.len() <= PART {
        // The other parts are neutral.
        return fold_tree::<F>(&fold_part::<F>(x));
    }
    let mut parts = [[F::NEUTRAL; LANES]; PARTS];
    for (lanes, part) in parts.iter_mut().zip(x.chunks(PART)) {
        *lanes = fold_part::<F>(part);
    }
    let mut lanes = combine_lanes::<F>(&parts[0], &parts[1]);
    if x.len() > 2 * PART {
        lanes = combine_lanes::<F>(&lanes, &combine_lanes::<F>(&parts[2], &parts[3]));
    }
    fold_tree::<F>(&lanes)
}

#[inline(always)]
fn fold_part<F: Fold>(x: &[F::In]) -> Lanes<F> {
    let mut lanes = [F::NEUTRAL; LANES];
    let (chunks, rest) = x.as_chunks::<LANES>();
    for chunk in chunks {
        absorb_lanes::<F>(&mut lanes, chunk);
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

/// Not inlined: the pairs of the tree would otherwise reach back into the loops, which then work on pairs too.
#[inline(never)]
fn fold_tree<F: Fold>(lanes: &Lanes<F>) -> F::Acc {
    let mut lanes = *lanes;
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

/// # Safety
/// As for [`fold_columns`].
#[inline(always)]
unsafe fn fold_columns_any<F: Fold>(job: &ColumnJob<'_>) {
    let tile_len = LANES * job.width;
    let tiles = job.scratch.cast::<F::Acc>();
    let parts = job.rows.len().div_ceil(PART);
    for (part, rows) in job.rows.chunks(PART).enumerate() {
        let which = [0, 1, 1, 2][part];
        fill_tile::<F>(job, rows, std::slice::from_raw_parts_mut(tiles.add(which * tile_len), tile_len));
        for &(into, from) in merges_after(part, parts) {
            // SAFETY: different tiles, both written.
            merge_runs::<F>(tiles.add(into * tile_len), tiles.add(from * tile_len), tile_len);
        }
    }
    let mut lanes = job.rows.len().min(LANES);
    while lanes > 1 {
        let half = lanes.next_power_of_two() / 2;
        // SAFETY: different rows of the first tile.
        merge_runs::<F>(tiles, tiles.add(half * job.width), (lanes - half) * job.width);
        lanes = half;
    }
    let out = job.out.cast::<F::Acc>();
    for column in 0..job.width {
        // SAFETY: row 0 of the tile is written.
        out.offset(column as isize * job.out_step).write(*tiles.add(column));
    }
}

/// Which tile is combined with which later one after a part.
fn merges_after(part: usize, parts: usize) -> &'static [(usize, usize)] {
    match (part, parts) {
        (1, _) | (2, 3) => &[(0, 1)],
        (3, _) => &[(1, 2), (0, 1)],
        _ => &[],
    }
}

/// Folds at most [`PART`] rows, row `r` into row `r % 16` of the tile; what is not reached stays neutral.
///
/// # Safety
/// As for [`fold_columns`]; the rows are some of the job's.
#[inline(always)]
unsafe fn fill_tile<F: Fold>(job: &ColumnJob<'_>, rows: &[isize], tile: &mut [F::Acc]) {
    let used = if job.rows.len() > PART { LANES } else { rows.len().min(LANES) };
    tile[..used * job.width].fill(F::NEUTRAL);
    // Dense rows are one run of elements: a whole round is one long row.
    let together = if job.dense { LANES } else { 1 };
    for (at, group) in rows.chunks(together).enumerate() {
        let len = group.len() * job.width;
        let first = at * together % LANES * job.width;
        let x = std::slice::from_raw_parts(fetch::<F>(job, group[0], len), len);
        absorb::<F>(&mut tile[first..first + len], x);
    }
}

// The next two are functions of slices so that the compiler knows that they do not overlap.

#[inline(always)]
fn absorb<F: Fold>(acc: &mut [F::Acc], x: &[F::In]) {
    for (acc, &x) in acc.iter_mut().zip(x) {
        *acc = F::combine(*acc, F::lift(x));
    }
}

/// Combines values with other ones that come later in the order.
#[inline(always)]
fn merge<F: Fold>(into: &mut [F::Acc], from: &[F::Acc]) {
    for (into, &from) in into.iter_mut().zip(from) {
        *into = F::combine(*into, from);
    }
}

/// A row as dense elements of the fold: where it lies, or in the scratch row.
#[inline(always)]
unsafe fn fetch<F: Fold>(job: &ColumnJob<'_>, at: isize, len: usize) -> *const F::In {
    let row = job.row.cast::<F::In>();
    match stored_as::<F>(job.narrow) {
        None if job.step == 1 => return job.x.cast::<F::In>().offset(at),
        None => copy_row(job.x.cast::<F::In>().offset(at), job.step, row, len),
        Some(dtype) if job.step == 1 => widen(dtype, narrow_at(job.x, at), row.cast(), len),
        Some(dtype) => {
            // Strided rows come one by one: the rest of the room is free.
            let narrow = row.cast::<u16>().add(2 * len);
            copy_row(narrow_at(job.x, at), job.step, narrow, len);
            widen(dtype, narrow, row.cast(), len);
        }
    }
    row
}

unsafe fn narrow_at(x: *const u8, at: isize) -> *const u16 {
    // SAFETY: arrays are aligned to their elements.
    x.offset(2 * at).cast()
}

unsafe fn copy_row<T: Copy>(x: *const T, step: isize, row: *mut T, len: usize) {
    for i in 0..len {
        row.add(i).write(*x.offset(i as isize * step));
    }
}

/// As [`merge`].
///
/// # Safety
/// Both runs are written, and do not overlap.
#[inline(always)]
unsafe fn merge_runs<F: Fold>(into: *mut F::Acc, from: *const F::Acc, len: usize) {
    merge::<F>(std::slice::from_raw_parts_mut(into, len), std::slice::from_raw_parts(from, len));
}
