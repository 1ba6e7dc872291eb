//! Rows of 8 bits times rows of blocks by the instruction of AVX-512 that multiplies four bytes. The factors of some blocks meet
//! the scales of a row all at once, in a register that has a lane for each share.

use super::GROUP;
use super::dots::{by_rows, into_bytes, sum_of_four};
use super::forms::{AHEAD, Form, MOST, PART, TOGETHER, blocks_of};
use crate::machine::simd::{self, Level};
use crate::machine::threads::{self, SharedMut};
use crate::memory::scratch::Aligned;
use std::arch::x86_64::*;

/// Rows that a task makes ready, about.
const SOME: usize = 32;

/// Whether this processor multiplies so.
pub fn applies() -> bool {
    simd::has_byte_products() && simd::level() == Level::Avx512
}

/// Rows of numbers, `HIGH` of them side by side in a tile; behind them zeros.
pub struct Rows<const HIGH: usize> {
    /// Four numbers each.
    pub cells: Aligned<u32>,
    /// For each share of the form.
    pub scale: Aligned<f32>,
    /// What the numbers of a share add up to: times minus the offset of the form, or as floats times their scale.
    pub sums: Aligned<i32>,
    /// Cells and shares of a tile.
    pub each: [usize; 2],
    count: usize,
}

impl<const HIGH: usize> Rows<HIGH> {
    /// Rows of `k` numbers.
    ///
    /// # Safety
    /// The processor has the instructions: [`applies`].
    pub unsafe fn new(form: &For, from: &[f32], (count, k): (usize, usize)) -> Self {
        let parts = k.div_ceil(PART).next_multiple_of(form.at_once) * HIGH;
        let (tiles, each) = (count.div_ceil(HIGH), [PART / 4 * parts, form.shares * parts]);
        let mut found = Self {
            cells: Aligned::zeros(tiles * each[0]),
            scale: Aligned::zeros(tiles * each[1]),
            sums: Aligned::zeros(tiles * each[1]),
            each,
            count,
        };
        let cells = SharedMut::new(found.cells.as_mut_ptr());
        let (scale, sums) = (SharedMut::new(found.scale.as_mut_ptr()), SharedMut::new(found.sums.as_mut_ptr()));
        let some = SOME.div_ceil(HIGH) * HIGH;
        let step = form.at_once * PART;
        let woven = if HIGH == 1 && form.halves { k / step * (step / GROUP) } else { 0 };
        threads::parallel(count.div_ceil(some), &|task| {
            for row in task * some..count.min((task + 1) * some) {
                let (tile, from) = (row / HIGH, &from[row * k..(row + 1) * k]);
                let [cell, share] = each.map(|each| tile * each..(tile + 1) * each);
                // SAFETY: each task has its own tiles; the processor was asked by the caller.
                unsafe {
                    let to = (cells.slice(cell), scale.slice(share.clone()), sums.slice(share));
                    put_row::<HIGH>(from, row % HIGH, to, (form, woven));
                }
            }
        });
        found
    }
}

/// What rows have to know of a [`Form`].
pub struct For {
    at_once: usize,
    pub shares: usize,
    offset: i32,
    pub has_least: bool,
    halves: bool,
}

impl For {
    pub const fn of<F: Form>() -> Self {
        Self { at_once: F::AT_ONCE, shares: F::SHARES, offset: F::OFFSET, has_least: F::HAS_LEAST, halves: F::HALVES }
    }
}

/// Writes a row. The halves of the first groups, of so many, lie as [`Form::halves_of_four512`] gives those of blocks.
///
/// # Safety
/// The processor has these instructions.
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx2,fma,f16c,bmi1,bmi2")]
unsafe fn put_row<const HIGH: usize>(
    from: &[f32],
    at: usize,
    (cells, scale, sums): (&mut [u32], &mut [f32], &mut [i32]),
    (form, woven): (&For, usize),
) {
    const HALF: usize = GROUP / 4 / 2;
    let (mut whole, at) = ([0; GROUP], at % HIGH);
    for (group, from) in from.chunks_exact(GROUP).enumerate() {
        let by = into_bytes(from, &mut whole);
        let (fours, mut found) = (whole.as_chunks::<4>().0, [0; 2]);
        let (first, step) = if group < woven { (group / 4 * 8 + group % 4, 4) } else { (2 * group, 1) };
        for half in 0..2 {
            let start = (first + half * step) * HALF * HIGH;
            let cells = &mut cells[start..start + HALF * HIGH];
            for (to, four) in cells.chunks_exact_mut(HIGH).zip(&fours[half * HALF..]) {
                to[at] = u32::from_le_bytes(four.map(|v| v as u8));
                found[half] += sum_of_four(*four);
            }
        }
        let each = form.shares * GROUP / PART;
        for (i, sum) in if each == 1 { [found[0] + found[1], 0] } else { found }.iter().enumerate().take(each) {
            let place = (group * each + i) * HIGH + at;
            scale[place] = by;
            sums[place] = if form.has_least { (*sum as f32 * by).to_bits() as i32 } else { -form.offset * sum };
        }
    }
}

impl Rows<1> {
    /// The products of a row of blocks with all rows, which are up to [`TOGETHER`].
    pub fn dots<F: Form>(&self, row: &[u8], sums: &mut [f32; TOGETHER]) {
        // SAFETY: this was made on a processor with these instructions.
        unsafe { by_rows!(self.count, dots::<F>(row, self, sums)) };
    }
}

/// The products of a row of blocks with `R` rows.
///
/// # Safety
/// The processor has these instructions; there are `R` rows, as long as that of the blocks.
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vnni,avx2,fma,f16c,bmi1,bmi2")]
unsafe fn dots<F: Form, const R: usize>(row: &[u8], x: &Rows<1>, sums: &mut [f32; TOGETHER]) {
    let bytes = F::AT_ONCE * PART / F::SIZE * F::BYTES;
    let mut totals = [_mm512_setzero_ps(); R];
    let whole = row.len() / bytes * F::AT_ONCE;
    for at in (0..whole).step_by(F::AT_ONCE) {
        let blocks = row.as_ptr().add(at / F::AT_ONCE * bytes);
        for line in (0..bytes).step_by(64) {
            simd::prefetch(blocks.wrapping_add(AHEAD + line));
        }
        add::<F, R>(blocks, F::factors512(blocks), (at, F::AT_ONCE), x, &mut totals);
    }
    for at in whole..(row.len() / F::BYTES * F::SIZE).div_ceil(PART) {
        let mut room = [0; MOST];
        let blocks = blocks_of::<F>(row, at, &mut room).0.as_ptr();
        let (factors, least) = F::factors128(blocks);
        let factors = (_mm512_zextps128_ps512(factors), _mm512_zextps128_ps512(least));
        add::<F, R>(blocks, factors, (at, 1), x, &mut totals);
    }
    for (sum, total) in sums.iter_mut().zip(totals) {
        *sum = _mm512_reduce_add_ps(total);
    }
}

/// Adds the products of `parts` parts of the blocks from one on with those of `R` rows.
///
/// # Safety
/// As for [`dots`]; the blocks begin with that part, and so do their factors.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vnni,avx2,fma,f16c,bmi1,bmi2")]
unsafe fn add<F: Form, const R: usize>(
    blocks: *const u8,
    (factors, least): (__m512, __m512),
    (at, parts): (usize, usize),
    x: &Rows<1>,
    totals: &mut [__m512; R],
) {
    // The other lanes of a register are those of other parts.
    let lanes = ((1u32 << (parts * F::SHARES)) - 1) as __mmask16;
    let mut by = [_mm512_setzero_ps(); R];
    for r in 0..R {
        let at = r * x.each[1] + at * F::SHARES;
        let scale = _mm512_maskz_loadu_ps(lanes, x.scale.as_ptr().add(at));
        let sums = _mm512_maskz_loadu_epi32(lanes, x.sums.as_ptr().add(at));
        by[r] = _mm512_maskz_mul_ps(lanes, factors, scale);
        totals[r] = if F::HAS_LEAST {
            _mm512_mask3_fmadd_ps(least, _mm512_castsi512_ps(sums), totals[r], lanes)
        } else {
            _mm512_fmadd_ps(by[r], _mm512_cvtepi32_ps(sums), totals[r])
        };
    }
    let fourths = _mm512_setr_epi32(0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2, 3, 3, 3, 3);
    let multiply_four = F::HALVES && parts == F::AT_ONCE;
    for i in 0..if multiply_four { parts / 2 } else { 0 } {
        let lane = _mm512_add_epi32(fourths, _mm512_set1_epi32((i * 4) as i32));
        let [low, high] = F::halves_of_four512(blocks.add(i * 4 * F::BYTES));
        for r in 0..R {
            let values = x.cells.as_ptr().add(r * x.each[0] + (at + 2 * i) * (PART / 4));
            let found = _mm512_dpbusd_epi32(_mm512_setzero_si512(), low, _mm512_loadu_si512(values.cast()));
            let found = _mm512_dpbusd_epi32(found, high, _mm512_loadu_si512(values.add(PART / 4).cast()));
            let by = _mm512_permutexvar_ps(lane, by[r]);
            totals[r] = _mm512_fmadd_ps(_mm512_cvtepi32_ps(found), by, totals[r]);
        }
    }
    let lane = match F::SHARES {
        2 => _mm512_setr_epi32(0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1, 1, 1),
        _ => fourths,
    };
    for i in 0..if multiply_four { 0 } else { parts } {
        let lane = _mm512_add_epi32(lane, _mm512_set1_epi32((i * F::SHARES) as i32));
        let (from, part) = if F::SIZE > PART { (blocks, i) } else { (blocks.add(i * 2 * F::BYTES), 0) };
        let whole = F::whole512(from, part);
        for r in 0..R {
            let values = x.cells.as_ptr().add(r * x.each[0] + (at + i) * (PART / 4));
            let found = _mm512_dpbusd_epi32(_mm512_setzero_si512(), whole, _mm512_loadu_si512(values.cast()));
            let by = _mm512_permutexvar_ps(lane, by[r]);
            totals[r] = _mm512_fmadd_ps(_mm512_cvtepi32_ps(found), by, totals[r]);
        }
    }
}
