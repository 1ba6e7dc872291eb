//! Products of bytes by the unit that multiplies tiles ([`crate::machine::amx`]), in the blocks of products of bfloat16. The right
//! side lies in the panels of the instruction for four bytes. A task packs the rows that it reads, a line of 64 bytes for each
//! step; sums of 32 x 32 lie together until they are whole.

use super::super::amx::{CHUNK, SIDE, cut, grid};
use super::Job;
use crate::machine::amx::{LINE, LINES, STEP, Sides, Unit};
use crate::machine::caches::second_level;
use crate::machine::{simd, threads};
use crate::memory::scratch::Room;
use std::arch::x86_64::*;
use std::ops::Range;

/// Rows below which most of a tile is empty.
const FEWEST: usize = 12;
/// Values of a register.
const LANES: usize = 16;

/// Whether a product of so many rows goes by tiles.
pub fn takes(rows: usize) -> bool {
    rows >= FEWEST && simd::has_amx()
}

/// Computes a product.
///
/// # Safety
/// The unit and AVX-512 are there; nobody else has the result.
pub unsafe fn run<U: Unit>(job: &Job<'_>) {
    let (m, k, n) = job.size;
    let (steps, all) = (k.div_ceil(LINE), n.div_ceil(SIDE));
    // Bytes take half the time of bfloat16.
    let work = m.saturating_mul(k).saturating_mul(n) / 2;
    let (rows, panels) = grid((m, n), steps, work, false, true);
    let across = all.div_ceil(panels);
    threads::parallel(m.div_ceil(rows) * across, &|index| {
        let (i, j) = (index / across * rows, index % across * panels);
        // SAFETY: as the caller promises; each task has its own part of the result.
        unsafe { part::<U>(job, steps, i..m.min(i + rows), j..all.min(j + panels)) };
    });
}

/// Some rows times some panels, all along the depth.
unsafe fn part<U: Unit>(job: &Job<'_>, steps: usize, rows: Range<usize>, panels: Range<usize>) {
    let (m, k, n) = job.size;
    let blocks = rows.len().div_ceil(SIDE);
    let kept = if steps <= CHUNK { 1 } else { blocks };
    Room::with(
        [blocks * steps * STEP, kept * SIDE * SIDE * size_of::<i32>(), rows.len() * size_of::<i32>()],
        |mut room| {
            let (left, sums) = (room.take::<u8>(blocks * steps * STEP), room.take::<i32>(kept * SIDE * SIDE));
            let taken = room.take::<i32>(rows.len());
            for (at, (taken, row)) in taken.iter_mut().zip(rows.clone()).enumerate() {
                let to = left[at / SIDE * steps * STEP + at % SIDE * LINE..].as_mut_ptr();
                // SAFETY: room for a line of each step; the caller promises the instructions.
                let total = unsafe { pack(&job.left[row * k..(row + 1) * k], job.offset, to) };
                *taken = total.wrapping_add((k as i32).wrapping_mul(job.offset)).wrapping_mul(job.right.offset);
            }
            let past = m * n * size_of::<i32>() > second_level() / 2 && n.is_multiple_of(LANES);
            // SAFETY: the caller promises the unit and a part of the result; both sides are packed in whole steps.
            unsafe {
                U::rows(LINES, LINES);
                for (panel, first) in
                    panels.flat_map(|panel| (0..steps).step_by(CHUNK).map(move |first| (panel, first)))
                {
                    let right = job.right.cells.cast::<u8>().wrapping_add((panel * steps + first) * STEP);
                    let deep = CHUNK.min(steps - first);
                    for block in 0..blocks {
                        let from = left[(block * steps + first) * STEP..].as_ptr();
                        let sides = Sides { left: from, row: LINE, lower: STEP / 2, deep: STEP, right, steps: deep };
                        let sums = sums[block % kept * SIDE * SIDE..].as_mut_ptr();
                        let taken = &taken[block * SIDE..rows.len().min((block + 1) * SIDE)];
                        cut::<U>(taken.len(), sides, |sides| U::multiply_bytes(sides, sums, first > 0));
                        if first + deep == steps {
                            let to = job.to.ptr().wrapping_add((rows.start + block * SIDE) * n + panel * SIDE);
                            put(sums, taken, (job, panel), to, past && to.addr().is_multiple_of(LINE));
                        }
                    }
                }
                U::release();
                _mm_sfence();
            }
        },
    );
}

/// A row as bytes, a line for each step; returns their sum.
///
/// # Safety
/// The values are the offset, or at most 255 above it, and there is room for the lines, aligned; the machine has AVX-512.
#[target_feature(enable = "avx512f")]
unsafe fn pack(from: &[i32], offset: i32, to: *mut u8) -> i32 {
    let (offset, mut sum) = (_mm512_set1_epi32(offset), _mm512_setzero_si512());
    for (step, values) in from.chunks(LINE).enumerate() {
        for at in (0..LINE).step_by(LANES) {
            let mask = u16::MAX.unbounded_shr((LANES - values.len().saturating_sub(at).min(LANES)) as u32);
            // SAFETY: masked values are not read; the caller promises the line.
            unsafe {
                let values = _mm512_maskz_loadu_epi32(mask, values.as_ptr().wrapping_add(at));
                let bytes = _mm512_maskz_sub_epi32(mask, values, offset);
                sum = _mm512_add_epi32(sum, bytes);
                _mm_store_si128(to.add(step * STEP + at).cast(), _mm512_cvtepi32_epi8(bytes));
            }
        }
    }
    _mm512_reduce_add_epi32(sum)
}

/// Adds to sums what was taken from both sides, and writes them; `past` the caches.
///
/// # Safety
/// There are sums for these rows and the columns of a panel, and room for them, aligned where they go past the caches; the
/// machine has AVX-512.
#[target_feature(enable = "avx512f")]
unsafe fn put(sums: *const i32, taken: &[i32], (job, panel): (&Job<'_>, usize), to: *mut i32, past: bool) {
    let n = job.size.2;
    let cols = SIDE.min(n - panel * SIDE);
    let of_columns = &job.right.sums[panel * SIDE..(panel + 1) * SIDE];
    for at in (0..cols).step_by(LANES) {
        let mask = u16::MAX >> (LANES - LANES.min(cols - at));
        // SAFETY: as the caller promises; masked values are not written.
        unsafe {
            let columns = _mm512_loadu_si512(of_columns.as_ptr().add(at).cast());
            let columns = _mm512_mullo_epi32(columns, _mm512_set1_epi32(job.offset));
            for (row, &taken) in taken.iter().enumerate() {
                let sum = _mm512_load_si512(sums.add(row * SIDE + at).cast());
                let sum = _mm512_add_epi32(_mm512_add_epi32(sum, columns), _mm512_set1_epi32(taken));
                let to = to.wrapping_add(row * n + at);
                if past { _mm512_stream_si512(to.cast(), sum) } else { _mm512_mask_storeu_epi32(to, mask, sum) }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{SIZES, SPANS, values, want};
    use super::super::{Panels, lowest, packed};
    use super::*;
    use crate::array::Array;
    use crate::machine::amx::{Processor, model::Model};
    use crate::machine::threads::{SharedMut, set_num_threads};
    use crate::ops::contraction::tests::Random;

    fn product<U: Unit>(a: &Array, b: &Array) -> Vec<i32> {
        let (m, k, n) = (a.shape()[0], a.shape()[1], b.shape()[1]);
        let (left, right) = (a.as_slice::<i32>().unwrap(), b.as_slice::<i32>().unwrap());
        let cells = packed(right, (k, n), lowest(right).unwrap().wrapping_add(128)).unwrap();
        let mut out = vec![0; m * n];
        let (right, to) = (Panels::of(&cells, n), SharedMut::new(out.as_mut_ptr()));
        let job = Job { left, size: (m, k, n), offset: lowest(left).unwrap(), right, to };
        // SAFETY: the caller chose a unit that is there, and asked for AVX-512.
        unsafe { run::<U>(&job) };
        out
    }

    /// False, and says so, where not even the packing runs.
    fn packs() -> bool {
        let packs = is_x86_feature_detected!("avx512f");
        if !packs || !simd::has_amx() {
            println!(
                "no tiles here: {}",
                if packs { "by their model alone" } else { "and no AVX-512, nothing is tested" }
            );
        }
        packs
    }

    #[test]
    fn sizes_spans_and_threads() {
        let mut random = Random(34);
        let more = [(1, 64, 32), (17, 1030, 33), (31, 63, 1), (32, 2100, 64), (100, 65, 95), (300, 200, 70)];
        for (round, (m, k, n)) in more.into_iter().chain(SIZES).enumerate().filter(|_| packs()) {
            for (left, right) in
                SPANS.into_iter().filter(|span| span.1 <= 256).map(|span| (span, SPANS[(round + 1) % 5]))
            {
                let (a, b) = (values(&mut random, &[m, k], left), values(&mut random, &[k, n], right));
                let wanted = want(a.as_slice().unwrap(), b.as_slice().unwrap(), (m, k, n));
                for threads in [1, 2, 3, 64] {
                    set_num_threads(threads);
                    if threads != 3 {
                        assert!(
                            product::<Model>(&a, &b) == wanted,
                            "{m} {k} {n} {left:?} {right:?}, {threads} threads"
                        );
                    }
                    if simd::has_amx() {
                        assert!(product::<Processor>(&a, &b) == wanted, "{m} {k} {n} {left:?} {right:?}, {threads}");
                    }
                }
            }
        }
    }

    #[test]
    fn results_past_the_caches() {
        let mut random = Random(35);
        let (m, k, n) = (600, 70, 1040);
        let (a, b) = (values(&mut random, &[m, k], (-7, 200)), values(&mut random, &[k, n], (0, 256)));
        let wanted = want(a.as_slice().unwrap(), b.as_slice().unwrap(), (m, k, n));
        for threads in [1, 4].into_iter().filter(|_| simd::has_amx()) {
            set_num_threads(threads);
            assert!(product::<Processor>(&a, &b) == wanted, "{threads} threads");
        }
        packs();
    }
}
