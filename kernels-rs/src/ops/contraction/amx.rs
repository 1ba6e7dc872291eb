//! Products of bfloat16 by tiles: 32 x 32 sums at a time, by the unit that multiplies them ([`crate::machine::amx`]).
//!
//! The right side is packed in panels of 32 columns, pair under pair, two tiles for each 32 elements of the depth. A panel stays in
//! the first-level cache for 512 elements of the depth, while all rows of a task meet it; the left side of the task lies in
//! the second-level cache, packed row by row, or where it is. The sums of 32 x 32 lie together until they are whole, and are
//! rounded from there. What a sum is added up from, and in which order, depends on the depth alone.

pub mod pack;

use super::call::{Call, finish, run};
use super::held::{self, Right};
use super::{Epilogue, Matrix, SERIAL};
use crate::array::Array;
use crate::dtype::BF16;
use crate::error::Result;
use crate::machine::amx::{LINE, LINES, STEP, Sides, Unit};
use crate::machine::caches::second_level;
use crate::machine::simd;
use crate::machine::threads::{self, SharedMut};
use crate::memory::owned::Memory;
use crate::memory::scratch::with_scratch;
use std::arch::x86_64::*;
use std::ops::Range;

/// Rows, and columns, of the sums that are computed at once.
pub const SIDE: usize = 2 * LINES;
/// Elements along the depth of a step.
pub const DEEP: usize = LINE / 2;
/// Steps of a panel that stay in the first-level cache. Measured on Xeon (family 6, model 207): half as many 0.9 of the speed, twice as
/// many 0.6.
pub const CHUNK: usize = 16;
/// Bytes of 32 x 32 sums.
const SUMS: usize = SIDE * SIDE * size_of::<f32>();
/// Rows of a task at most, so that their sums leave room in the second-level cache.
const MOST_ROWS: usize = 1024;
/// Rows up to which tasks are cut along columns, and each packs the panels that it reads: one that another core packed has to be
/// fetched from there.
const BY_COLUMNS: usize = 256;
/// Rows and columns from which a task is not cut in two.
const FEWEST: usize = 128;
/// Rows up to which, and bytes of a row up to which, the left side is read where it lies; long rows share few sets of the
/// first-level cache.
const FEW_LYING: usize = 64;
const SHORT: usize = 1024;
/// Rows below which a right side that may be kept, or may not, is read where it lies instead.
const FEWEST_KEPT: usize = 5;
const FEWEST_ONCE: usize = 13;
/// Columns and depth below which a tile is mostly empty.
const NARROWEST: usize = 8;
/// What marks the panels among what is kept.
const FORM: (usize, usize) = (SIDE, 3);

/// Whether a product goes by tiles; `weights` may be kept packed.
pub fn takes((m, k, n): (usize, usize, usize), weights: bool) -> bool {
    let fewest = if weights { FEWEST_KEPT } else { FEWEST_ONCE };
    simd::has_amx() && m >= fewest && n >= NARROWEST && k >= NARROWEST
}

/// Computes a product.
///
/// # Safety
/// As [`super::multiply`]; the unit and AVX-512 with bfloat16 are there.
pub unsafe fn multiply<U: Unit>(call: &Call<BF16>, split: bool, weights: Option<&Array>) -> Result<()> {
    let (_, k, n) = call.size;
    let steps = k.div_ceil(DEEP);
    let bytes = n.div_ceil(SIDE) * steps * STEP;
    let right = Right::of(call, FORM, bytes, weights);
    let product = |right: *mut u8| {
        let whole = call.a.col == 1 && call.a.row >= 0 && k.is_multiple_of(DEEP);
        let lies = whole && (call.size.0 <= FEW_LYING || steps * LINE <= SHORT);
        Product { call, steps, lies, right: SharedMut::new(right) }
    };
    // SAFETY: the operands and the result are as the caller promises; a part of them lies inside them. There is room for
    // all panels.
    unsafe {
        if let Right::Kept(cells, columns) = right {
            let first = columns.first / SIDE * steps * STEP;
            product(cells.data().wrapping_add(first)).run::<U>(split, false);
            return Ok(());
        }
        let most = held::columns(steps * STEP / SIDE, SIDE);
        if n > most && matches!(right, Right::Once) {
            return held::parts(call, most).try_for_each(|part| multiply::<U>(&part, split, None));
        }
        let cells = Memory::new(bytes)?;
        product(cells.data()).run::<U>(split, true);
        if let Right::Wanted(layout, list) = right {
            list.keep(layout, cells);
        }
    }
    Ok(())
}

/// Packs a weight in panels and keeps them beside it.
///
/// # Safety
/// The right side is all of `weights`; AVX-512 with bfloat16 is there.
pub unsafe fn keep(b: Matrix<BF16>, (k, n): (usize, usize), weights: &Array) -> Result<()> {
    let (steps, all) = (k.div_ceil(DEEP), n.div_ceil(SIDE));
    held::keep(weights, (k, n), (b.row, b.col), FORM, || {
        let cells = Memory::new(all * steps * STEP)?;
        let none = Matrix::new(std::ptr::null_mut(), (0, 0));
        let call = Call { size: (1, k, n), a: none, b, c: none, end: Epilogue::default() };
        let product = Product { call: &call, steps, lies: false, right: SharedMut::new(cells.data()) };
        // SAFETY: there is room for all panels, and each task has its own.
        run(true, all, &|at| unsafe { product.pack_panel(at) });
        Ok(cells)
    })
}

/// Rows and panels of a task, for a result of `m` rows and `n` columns. The cuts change no sum, so they may follow the threads.
/// `lies`: the left side is read where it lies; `work`: what is to be done, in multiply-adds of bfloat16.
pub fn grid((m, n): (usize, usize), steps: usize, work: usize, lies: bool, split: bool) -> (usize, usize) {
    let most = second_level() / 2 / (steps * LINE) / SIDE * SIDE;
    let (most, threads) = (most.clamp(SIDE, MOST_ROWS), if split { threads::num_threads() } else { 1 });
    let wanted = if threads == 1 { 1 } else { (work / (4 * SERIAL)).clamp(1, 2 * threads) };
    let (mut rows, mut panels) = (m.div_ceil(m.div_ceil(most)).next_multiple_of(SIDE), n.div_ceil(SIDE));
    if m <= BY_COLUMNS {
        // Where each task packs the left side anew, there is one for each thread.
        let pieces = if lies { wanted } else { wanted.min(threads) };
        return (m.next_multiple_of(SIDE), panels.div_ceil(pieces));
    }
    while m.div_ceil(rows) * n.div_ceil(SIDE * panels) < wanted {
        if rows > FEWEST && (rows >= SIDE * panels || SIDE * panels <= FEWEST) {
            rows = (rows / 2).next_multiple_of(SIDE);
        } else if SIDE * panels > FEWEST {
            panels = panels.div_ceil(2);
        } else {
            break;
        }
    }
    (rows, panels)
}

/// A product of up to 32 rows: tiles of fewer are cut. A lower tile that has no rows reads one of the upper tile.
///
/// # Safety
/// As [`Unit::rows`]; `product` takes what it may.
pub unsafe fn cut<U: Unit>(rows: usize, mut sides: Sides, product: impl FnOnce(Sides)) {
    if rows == SIDE {
        return product(sides);
    }
    sides.lower = if rows > LINES { sides.lower } else { 0 };
    // SAFETY: as the caller promises.
    unsafe {
        U::rows(rows.min(LINES), rows.saturating_sub(LINES).max(1));
        product(sides);
        U::rows(LINES, LINES);
    }
}

/// A product and its right side in panels.
struct Product<'a> {
    call: &'a Call<BF16>,
    steps: usize,
    /// Whether the left side is read where it lies.
    lies: bool,
    right: SharedMut<u8>,
}

impl Product<'_> {
    /// The panel of these columns.
    fn panel(&self, at: usize) -> *mut u8 {
        self.right.ptr().wrapping_add(at * self.steps * STEP)
    }

    /// All of it; `fresh`: the right side is not packed yet.
    unsafe fn run<U: Unit>(&self, split: bool, fresh: bool) {
        let (m, _, n) = self.call.size;
        let (rows, panels) = grid((m, n), self.steps, self.call.work(), self.lies, split);
        let (all, alone) = (n.div_ceil(SIDE), m <= BY_COLUMNS);
        if fresh && !alone {
            let some = all.div_ceil(2 * threads::num_threads());
            run(split, all.div_ceil(some), &|index| {
                // SAFETY: the caller promises room for the panels, and each task has its own.
                (index * some..all.min((index + 1) * some)).for_each(|at| unsafe { self.pack_panel(at) });
            });
        }
        let across = all.div_ceil(panels);
        run(split, m.div_ceil(rows) * across, &|index| {
            let (i, j) = (index / across * rows, index % across * panels);
            // SAFETY: the operands and the result are as the caller promises; each task has its own part of the result, and
            // of the panels where it packs them.
            unsafe { self.part::<U>(i..m.min(i + rows), j..all.min(j + panels), fresh && alone) };
        });
    }

    /// Some rows times some panels, all along the depth.
    unsafe fn part<U: Unit>(&self, rows: Range<usize>, panels: Range<usize>, packs: bool) {
        let blocks = rows.len().div_ceil(SIDE);
        let left = if self.lies { 0 } else { blocks * self.steps * STEP };
        let sums = if self.steps <= CHUNK { SUMS } else { blocks * SUMS };
        with_scratch((left + sums) / size_of::<f32>(), |scratch: &mut [f32]| {
            let (left, sums) = scratch.split_at_mut(left / size_of::<f32>());
            let (left, sums) = (left.as_mut_ptr().cast::<u8>(), sums.as_mut_ptr());
            // SAFETY: as the caller promises; the scratch memory has room for the packed rows and their sums.
            unsafe {
                if !self.lies {
                    self.pack_left(rows.clone(), left);
                }
                U::rows(LINES, LINES);
                for at in panels {
                    if packs {
                        self.pack_panel(at);
                    }
                    for first in (0..self.steps).step_by(CHUNK) {
                        self.chunk::<U>(rows.clone(), (at, first), left, sums);
                    }
                }
                U::release();
                _mm_sfence();
            }
        });
    }

    /// All rows of a task times a chunk of a panel.
    unsafe fn chunk<U: Unit>(&self, rows: Range<usize>, (at, first): (usize, usize), left: *const u8, sums: *mut f32) {
        let deep = CHUNK.min(self.steps - first);
        for (block, row) in rows.clone().step_by(SIDE).enumerate() {
            let count = SIDE.min(rows.end - row);
            let sums = sums.wrapping_add(if self.steps <= CHUNK { 0 } else { block * SIDE * SIDE });
            let mut sides = if self.lies {
                let line = self.call.a.row as usize * size_of::<BF16>();
                let left = self.call.a.at(row, first * DEEP).start.cast_const().cast();
                Sides { left, row: line, lower: LINES * line, deep: LINE, right: std::ptr::null(), steps: deep }
            } else {
                let left = left.wrapping_add((block * self.steps + first) * STEP);
                Sides { left, row: LINE, lower: STEP / 2, deep: STEP, right: std::ptr::null(), steps: deep }
            };
            sides.right = self.panel(at).wrapping_add(first * STEP).cast_const();
            // SAFETY: as the caller promises: rows that are there, or were packed, and a packed panel.
            unsafe {
                cut::<U>(count, sides, |sides| U::multiply(sides, sums, first > 0));
                if first + deep == self.steps {
                    self.round(sums, (row, count), at * SIDE);
                }
            }
        }
    }

    /// Rounds sums into the result.
    unsafe fn round(&self, sums: *mut f32, (row, rows): (usize, usize), col: usize) {
        let (m, _, n) = self.call.size;
        let (cols, c) = (SIDE.min(n - col), self.call.c.at(row, col));
        if cols < SIDE || c.col != 1 || !self.call.end.is_empty() {
            return finish(sums, SIDE as isize, (rows, cols), c, self.call.end.at(row, col));
        }
        // What leaves the caches anyway goes past them, in whole lines of them.
        let past = m * n * 2 > second_level() / 2 && c.start.addr().is_multiple_of(LINE) && c.row % SIDE as isize == 0;
        // SAFETY: the caller promises the sums, the result and the instructions.
        unsafe { narrow(sums, rows, c, past) };
    }

    /// Packs 32 columns.
    unsafe fn pack_panel(&self, at: usize) {
        let (_, k, n) = self.call.size;
        let (b, col) = (self.call.b, at * SIDE);
        let cols = SIDE.min(n - col);
        for step in 0..self.steps {
            let (from, to) = (b.at(step * DEEP, col), self.panel(at).wrapping_add(step * STEP));
            let size = (cols, DEEP.min(k - step * DEEP));
            // SAFETY: inside the right side and the panel; the caller has the instructions.
            unsafe { pack::right(from, size, to) };
        }
    }

    /// Packs rows: 32 of them step after step, an upper and a lower tile for each.
    unsafe fn pack_left(&self, rows: Range<usize>, to: *mut u8) {
        let (k, a) = (self.call.size.1, self.call.a);
        for (block, row) in rows.clone().step_by(SIDE).enumerate() {
            let (count, to) = (SIDE.min(rows.end - row), to.wrapping_add(block * self.steps * STEP));
            for step in 0..self.steps {
                let (from, to) = (a.at(row, step * DEEP), to.wrapping_add(step * STEP));
                let size = (count, DEEP.min(k - step * DEEP));
                // SAFETY: inside the left side and what is packed of it; the caller has the instructions.
                unsafe { pack::left(from, size, to) };
            }
        }
    }
}

/// Rounds rows of 32 sums.
///
/// # Safety
/// They are there, and room for them, aligned where they go past the caches; the machine has these instructions.
#[target_feature(enable = "avx512f,avx512bw,avx512bf16")]
#[expect(clippy::cast_ptr_alignment, reason = "aligned where the instruction asks for it")]
unsafe fn narrow(sums: *const f32, rows: usize, to: Matrix<BF16>, past: bool) {
    for i in 0..rows {
        // SAFETY: as the caller promises.
        unsafe {
            let from = sums.add(i * SIDE);
            let both = _mm512_cvtne2ps_pbh(_mm512_load_ps(from.add(LINES)), _mm512_load_ps(from));
            let (line, to) = (std::mem::transmute::<__m512bh, __m512i>(both), to.at(i, 0).start.cast::<__m512i>());
            if past { _mm512_stream_si512(to, line) } else { _mm512_storeu_si512(to, line) }
        }
    }
}

#[cfg(test)]
mod tests;
#[cfg(test)]
mod unit_tests;
