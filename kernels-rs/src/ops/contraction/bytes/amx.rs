//! Products of bytes by the unit that multiplies tiles ([`crate::machine::amx`]), in the blocks of products of bfloat16. The right
//! side lies in the panels of the instruction for four bytes. The left one is packed once for all tasks, a line of 64 bytes
//! for each row and step; sums of 32 x 32 lie together until they are whole.

use super::super::amx::grid::Grid;
use super::super::amx::{SIDE, cut};
use super::{Job, Value};
use crate::error::Result;
use crate::machine::amx::{LINE, LINES, STEP, Sides, Unit};
use crate::machine::caches::second_level;
use crate::machine::simd;
use crate::machine::threads::{self, SharedMut};
use crate::memory::owned::Memory;
use crate::memory::scratch::Arena;
use std::arch::x86_64::*;
use std::ops::Range;

/// Rows below which most of a tile is empty.
const FEWEST: usize = 12;
/// Values that a thread packs.
const GRAIN: usize = 1 << 16;
/// Values of a register.
const LANES: usize = 16;

/// Whether a product of so many rows goes by tiles.
pub fn applies(rows: usize) -> bool {
    rows >= FEWEST && simd::has_amx()
}

/// Left sides in lines, 32 rows after each other step by step, and the sums of their rows.
pub struct Rows {
    cells: Memory,
    sums: Memory,
    /// Rows, and steps of each.
    size: (usize, usize),
}

impl Rows {
    /// Packs matrices of `rows` rows of `k` values.
    ///
    /// # Safety
    /// The machine has AVX-512.
    #[expect(clippy::cast_ptr_alignment, reason = "memory begins at a cache line")]
    pub unsafe fn new<T: Value>(values: &[T], (rows, k): (usize, usize)) -> Result<Self> {
        let (steps, blocks, all) = (k.div_ceil(LINE), rows.div_ceil(SIDE), values.len() / k);
        let cells = Memory::new(all / rows * blocks * steps * STEP)?;
        let sums = Memory::new(all * size_of::<i32>())?;
        let (to, of_rows) = (SharedMut::new(cells.data()), SharedMut::new(sums.data().cast::<i32>()));
        threads::for_ranges(all, GRAIN / k + 1, &|range| {
            for row in range {
                let (matrix, at) = (row / rows, row % rows);
                let place = (matrix * blocks + at / SIDE) * steps * STEP + at % SIDE * LINE;
                let from = &values[row * k..(row + 1) * k];
                // SAFETY: values are bytes; there is room for a line of each step and for the sum of each row.
                let from = std::slice::from_raw_parts(from.as_ptr().cast::<u8>(), k);
                of_rows.ptr().add(row).write(pack(from, T::LEAST, to.ptr().add(place)));
            }
        });
        Ok(Self { cells, sums, size: (rows, steps) })
    }

    /// The lines of a block of 32 rows, from a step on.
    fn line(&self, matrix: usize, block: usize, step: usize) -> *const u8 {
        let (rows, steps) = self.size;
        self.cells.data().wrapping_add(((matrix * rows.div_ceil(SIDE) + block) * steps + step) * STEP)
    }

    /// The sums of the values of some rows.
    #[expect(clippy::cast_ptr_alignment, reason = "memory begins at a cache line")]
    fn sums(&self, matrix: usize, rows: Range<usize>) -> &[i32] {
        let first = self.sums.data().cast::<i32>().wrapping_add(matrix * self.size.0 + rows.start);
        // SAFETY: there is one for each row.
        unsafe { std::slice::from_raw_parts(first, rows.len()) }
    }
}

/// Computes a product, with the left side of this number.
///
/// # Safety
/// The unit and AVX-512 are there; nobody else has the result.
pub unsafe fn run<U: Unit, T: Value>(job: &Job<'_, T>, left: &Rows, matrix: usize) {
    let (m, k, n) = job.size;
    let (steps, all) = (k.div_ceil(LINE), n.div_ceil(SIDE));
    // Bytes take half the time of bfloat16.
    let work = m.saturating_mul(k).saturating_mul(n) / 2;
    let grid = Grid::new((m, n), steps, (work, 1), true, true);
    let across = all.div_ceil(grid.panels);
    threads::parallel(m.div_ceil(grid.rows) * across, &|index| {
        let (i, j) = (index / across * grid.rows, index % across * grid.panels);
        // SAFETY: each task has its own part of the result.
        part::<U, T>(job, (left, matrix), i..m.min(i + grid.rows), j..all.min(j + grid.panels), &grid);
    });
}

/// Some rows times some panels, all along the depth.
unsafe fn part<U: Unit, T: Value>(
    job: &Job<'_, T>,
    (left, matrix): (&Rows, usize),
    rows: Range<usize>,
    panels: Range<usize>,
    grid: &Grid,
) {
    let ((m, _, n), steps) = (job.size, left.size.1);
    let blocks = rows.len().div_ceil(SIDE);
    let kept = grid.under_way(steps, blocks, panels.len());
    Arena::with([kept * SIDE * SIDE * size_of::<i32>()], |mut room| {
        let sums = room.take::<i32>(kept * SIDE * SIDE);
        let of_rows = left.sums(matrix, rows.clone());
        let past = m * n * size_of::<i32>() > second_level() / 2 && n.is_multiple_of(LANES);
        // SAFETY: both sides are packed in whole steps.
        U::rows(LINES, LINES);
        for (panel, chunk) in grid.chunks(0..steps, panels.clone()) {
            let right = job.right.cells.cast::<u8>().wrapping_add((panel * steps + chunk.start) * STEP);
            for block in 0..blocks {
                let from = left.line(matrix, rows.start / SIDE + block, chunk.start);
                let sides = Sides { left: from, row: LINE, lower: STEP / 2, deep: STEP, right, steps: chunk.len() };
                let place = ((panel - panels.start) * blocks + block) % kept;
                let sums = sums[place * SIDE * SIDE..].as_mut_ptr();
                let of_rows = &of_rows[block * SIDE..rows.len().min((block + 1) * SIDE)];
                cut::<U>(of_rows.len(), sides, |sides| U::multiply_bytes(sides, sums, chunk.start > 0));
                if chunk.end == steps {
                    let to = job.to.ptr().wrapping_add((rows.start + block * SIDE) * n + panel * SIDE);
                    put(sums, of_rows, (job, panel), to, past && to.addr().is_multiple_of(LINE));
                }
            }
        }
        U::release();
        _mm_sfence();
    });
}

/// A row as bytes, the least of which stands for this value, a line for each step; returns the sum of its values.
///
/// # Safety
/// There is room for the lines, aligned; the machine has AVX-512.
#[target_feature(enable = "avx512f,avx512bw")]
unsafe fn pack(from: &[u8], least: i32, to: *mut u8) -> i32 {
    let turn = _mm512_set1_epi8(least as i8);
    let mut sum = _mm512_setzero_si512();
    for (step, values) in from.chunks(LINE).enumerate() {
        let mask = u64::MAX >> (LINE - values.len());
        // SAFETY: masked values are not read.
        let bytes =
            _mm512_maskz_mov_epi8(mask, _mm512_xor_si512(_mm512_maskz_loadu_epi8(mask, values.as_ptr().cast()), turn));
        sum = _mm512_add_epi64(sum, _mm512_sad_epu8(bytes, _mm512_setzero_si512()));
        _mm512_store_si512(to.add(step * STEP).cast(), bytes);
    }
    (_mm512_reduce_add_epi64(sum) as i32).wrapping_add((from.len() as i32).wrapping_mul(least))
}

/// Adds to sums what was taken from both sides, and writes them; `past` the caches.
///
/// # Safety
/// There are sums for these rows and the columns of a panel, and room for them, aligned where they go past the caches; the
/// machine has AVX-512.
#[target_feature(enable = "avx512f")]
unsafe fn put<T: Value>(
    sums: *const i32,
    of_rows: &[i32],
    (job, panel): (&Job<'_, T>, usize),
    to: *mut i32,
    past: bool,
) {
    let n = job.size.2;
    let cols = SIDE.min(n - panel * SIDE);
    let of_columns = &job.right.sums[panel * SIDE..(panel + 1) * SIDE];
    for at in (0..cols).step_by(LANES) {
        let mask = u16::MAX >> (LANES - LANES.min(cols - at));
        // SAFETY: masked values are not written.
        let columns = _mm512_loadu_si512(of_columns.as_ptr().add(at).cast());
        let columns = _mm512_mullo_epi32(columns, _mm512_set1_epi32(job.offset));
        for (row, &of_row) in of_rows.iter().enumerate() {
            let taken = of_row.wrapping_mul(job.right.offset);
            let sum = _mm512_load_si512(sums.add(row * SIDE + at).cast());
            let sum = _mm512_add_epi32(_mm512_add_epi32(sum, columns), _mm512_set1_epi32(taken));
            let to = to.wrapping_add(row * n + at);
            if past { _mm512_stream_si512(to.cast(), sum) } else { _mm512_mask_storeu_epi32(to, mask, sum) }
        }
    }
}

#[cfg(test)]
mod tests;
