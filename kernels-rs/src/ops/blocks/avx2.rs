//! Rows of 8 bits times rows of blocks by the instructions of AVX2 that multiply bytes and add pairs of products. The factors of
//! four parts meet the scales of a row all at once, in a register that has a lane for each group.

#![allow(clippy::needless_range_loop, reason = "closures and iterator chains do not inherit the instruction set")]

use super::dots::{by_rows, into_bytes, sum_of_four};
use super::forms::avx2::halves_of_two;
use super::forms::{AHEAD, Form, MOST, PART, TOGETHER, blocks_of};
use super::{GRAIN, GROUP};
use crate::machine::simd::{self, Level};
use crate::machine::threads::{self, SharedMut};
use crate::memory::scratch::filled;
use std::arch::x86_64::*;
use std::ops::Range;

/// Parts of a [`Unit`].
const PARTS: usize = 4;
const GROUPS: usize = PARTS * PART / GROUP;

/// 256 numbers of a row.
#[derive(Clone, Copy)]
#[repr(C, align(64))]
struct Unit {
    scale: [f32; GROUPS],
    /// What the numbers of a group add up to.
    sums: [f32; GROUPS],
    /// Where a form is halves, two groups lie as [`halves_of_two`] gives those of blocks.
    whole: [[i8; GROUP]; GROUPS],
    /// What each four numbers add up to, times minus the offset of the form. Of two groups of halves the first has those of both.
    offsets: [[i32; GROUP / 4]; GROUPS],
}

/// Whether this processor multiplies so.
pub fn applies() -> bool {
    simd::level() >= Level::Avx2
}

/// Rows in the order of a form.
pub struct Rows {
    units: Vec<Unit>,
    count: usize,
}

impl Rows {
    /// Rows of `k` numbers.
    ///
    /// # Safety
    /// The processor has the instructions: [`applies`].
    pub unsafe fn new<F: Form>(from: &[f32], (count, k): (usize, usize)) -> Self {
        let each = k.div_ceil(PARTS * PART);
        let [scale, sums] = [[0.0; GROUPS]; 2];
        let empty = Unit { scale, sums, whole: [[0; GROUP]; GROUPS], offsets: [[0; GROUP / 4]; GROUPS] };
        let mut units = filled(empty, count * each);
        let to = SharedMut::new(units.as_mut_ptr());
        threads::for_ranges(count, GRAIN / k.max(1) + 1, &|range| {
            for row in range {
                // SAFETY: each task has its own rows, of as many units.
                let to = unsafe { to.slice(row * each..(row + 1) * each) };
                for (from, to) in from[row * k..(row + 1) * k].chunks(PARTS * PART).zip(to) {
                    // SAFETY: the processor was asked by the caller.
                    unsafe { put::<F>(from, to) };
                }
            }
        });
        Self { units, count }
    }

    /// The products of a row of blocks with some rows.
    pub fn dots<F: Form>(&self, row: &[u8], rows: Range<usize>, sums: &mut [f32; TOGETHER]) {
        let each = self.units.len() / self.count.max(1);
        let units = &self.units[rows.start * each..rows.end * each];
        // SAFETY: this was made on a processor with these instructions, and there are as many rows.
        unsafe { by_rows!(rows.len(), dots::<F>(row, units, sums)) };
    }
}

/// Writes the numbers of a unit, or of the first groups of it.
///
/// # Safety
/// The processor has these instructions.
#[target_feature(enable = "avx2,fma,f16c,bmi1,bmi2")]
unsafe fn put<F: Form>(from: &[f32], to: &mut Unit) {
    const HALF: usize = GROUP / 2;
    let mut whole = [0; GROUP];
    for (group, from) in from.chunks_exact(GROUP).enumerate().take(GROUPS) {
        let scale = into_bytes(from, &mut whole);
        let (mut fours, mut all) = ([0; GROUP / 4], 0);
        for (four, sum) in whole.as_chunks::<4>().0.iter().zip(&mut fours) {
            *sum = sum_of_four(*four);
            all += *sum;
        }
        to.scale[group] = scale;
        to.sums[group] = all as f32 * scale;
        if F::HALVES {
            let (first, odd) = (group & !1, group % 2);
            for half in 0..2 {
                to.whole[first + half][odd * HALF..(odd + 1) * HALF]
                    .copy_from_slice(&whole[half * HALF..(half + 1) * HALF]);
            }
            for i in 0..HALF / 4 {
                to.offsets[first][odd * HALF / 4 + i] = -F::OFFSET * (fours[i] + fours[HALF / 4 + i]);
            }
        } else {
            to.whole[group] = whole;
            to.offsets[group] = fours.map(|sum| -F::OFFSET * sum);
        }
    }
}

/// The products of a row of blocks with `R` rows.
///
/// # Safety
/// The processor has these instructions; there are `R` rows, as long as that of the blocks.
#[target_feature(enable = "avx2,fma,f16c,bmi1,bmi2")]
unsafe fn dots<F: Form, const R: usize>(row: &[u8], x: &[Unit], sums: &mut [f32; TOGETHER]) {
    let (each, bytes) = (x.len() / R, PARTS * PART / F::SIZE * F::BYTES);
    let mut totals = [_mm256_setzero_ps(); R];
    let units = row.len() / bytes;
    for at in 0..units {
        let blocks = row.as_ptr().add(at * bytes);
        for line in (0..bytes).step_by(64) {
            simd::prefetch(blocks.wrapping_add(AHEAD + line));
        }
        let x = x.as_ptr().add(at);
        let by = scaled::<F, R>(F::factors256(blocks), (x, each, 0), &mut totals);
        for part in 0..PARTS {
            let from = if F::SIZE > PART { (blocks, part) } else { (blocks.add(part * 2 * F::BYTES), 0) };
            add::<F, R>(from, (by, part), (x, each, part), &mut totals);
        }
    }
    for part in units * PARTS..(row.len() / F::BYTES * F::SIZE).div_ceil(PART) {
        let mut room = [0; MOST];
        let blocks = blocks_of::<F>(row, part, &mut room).0.as_ptr();
        let (factors, least) = F::factors128(blocks);
        let factors = [_mm256_zextps128_ps256(factors), _mm256_zextps128_ps256(least)];
        let x = (x.as_ptr().add(units), each, part % PARTS);
        let by = scaled::<F, R>(factors, x, &mut totals);
        add::<F, R>((blocks, 0), (by, 0), x, &mut totals);
    }
    for (sum, total) in sums.iter_mut().zip(totals) {
        *sum = sum_of(total);
    }
}

/// Factors of blocks times the scales of `R` rows from a part on: lanes of other parts are zeros. Adds what the blocks add.
///
/// # Safety
/// As for [`dots`].
#[inline]
#[target_feature(enable = "avx2,fma,f16c,bmi1,bmi2")]
unsafe fn scaled<F: Form, const R: usize>(
    factors: [__m256; 2],
    (x, each, part): (*const Unit, usize, usize),
    totals: &mut [__m256; R],
) -> [[__m256; 2]; R] {
    let lanes = |from: &[f32; GROUPS]| {
        if part == 0 { _mm256_loadu_ps(from.as_ptr()) } else { two(from.as_ptr().add(2 * part)) }
    };
    let mut by = [[_mm256_setzero_ps(); 2]; R];
    for r in 0..R {
        let x = &*x.add(r * each);
        let scale = lanes(&x.scale);
        by[r] = if F::SHARES == 2 {
            [_mm256_mul_ps(factors[0], scale); 2]
        } else {
            let [low, high] = [_mm256_unpacklo_ps(scale, scale), _mm256_unpackhi_ps(scale, scale)];
            let first = _mm256_permute2f128_ps::<0x20>(low, high);
            let second = _mm256_permute2f128_ps::<0x31>(low, high);
            [_mm256_mul_ps(factors[0], first), _mm256_mul_ps(factors[1], second)]
        };
        if F::HAS_LEAST {
            totals[r] = _mm256_fmadd_ps(factors[1], lanes(&x.sums), totals[r]);
        }
    }
    by
}

/// Two floats and zeros.
#[inline(always)]
unsafe fn two(from: *const f32) -> __m256 {
    _mm256_zextps128_ps256(_mm_castsi128_ps(_mm_loadl_epi64(from.cast())))
}

/// Adds the products of a part of the blocks with those of `R` rows. The part has these lanes of the factors.
///
/// # Safety
/// As for [`dots`].
#[inline]
#[target_feature(enable = "avx2,fma,f16c,bmi1,bmi2")]
unsafe fn add<F: Form, const R: usize>(
    (blocks, part): (*const u8, usize),
    (by, lane): ([[__m256; 2]; R], usize),
    (x, each, at): (*const Unit, usize, usize),
    totals: &mut [__m256; R],
) {
    let pairs = |lane: usize| {
        let (a, b) = (lane as i32, lane as i32 + 1);
        _mm256_setr_epi32(a, a, a, a, b, b, b, b)
    };
    let load = |from: &[i8; GROUP]| _mm256_loadu_si256(from.as_ptr().cast());
    let ones = _mm256_set1_epi16(1);
    let [first, second] = if F::HALVES { halves_of_two::<F>(blocks) } else { F::whole256(blocks, part) };
    for r in 0..R {
        let x = &*x.add(r * each);
        let [left, right] = [load(&x.whole[2 * at]), load(&x.whole[2 * at + 1])];
        let floats = |found: __m256i, group: usize| {
            let offsets = _mm256_loadu_si256(x.offsets[group].as_ptr().cast());
            // Nothing is missing where numbers begin at 0, or have their signs.
            let whole = F::OFFSET == 0 || F::OFFSET == 128;
            _mm256_cvtepi32_ps(if whole { found } else { _mm256_add_epi32(found, offsets) })
        };
        if F::HALVES {
            // A sum of four products, each of 15 * 127 at most, fits 16 bits.
            let found = _mm256_add_epi16(_mm256_maddubs_epi16(first, left), _mm256_maddubs_epi16(second, right));
            let found = floats(_mm256_madd_epi16(found, ones), 2 * at);
            let by = _mm256_permutevar8x32_ps(by[r][0], pairs(2 * lane));
            totals[r] = _mm256_fmadd_ps(found, by, totals[r]);
            continue;
        }
        for (half, (whole, values)) in [(first, left), (second, right)].into_iter().enumerate() {
            // The instruction wants one side without signs. Two products fit 16 bits: 2 * 128 * 127 is below 2^15.
            let found = if F::OFFSET == 128 {
                _mm256_maddubs_epi16(_mm256_abs_epi8(whole), _mm256_sign_epi8(values, whole))
            } else {
                _mm256_maddubs_epi16(whole, values)
            };
            let found = floats(_mm256_madd_epi16(found, ones), 2 * at + half);
            let share = 2 * lane + half;
            let by = if F::SHARES == 2 {
                _mm256_permutevar8x32_ps(by[r][0], _mm256_set1_epi32(share as i32))
            } else {
                _mm256_permutevar8x32_ps(by[r][share / 4], pairs(2 * (share % 4)))
            };
            totals[r] = _mm256_fmadd_ps(found, by, totals[r]);
        }
    }
}

/// The sum of all lanes.
#[inline(always)]
unsafe fn sum_of(x: __m256) -> f32 {
    let four = _mm_add_ps(_mm256_castps256_ps128(x), _mm256_extractf128_ps::<1>(x));
    let two = _mm_add_ps(four, _mm_movehl_ps(four, four));
    _mm_cvtss_f32(_mm_add_ss(two, _mm_movehdup_ps(two)))
}
