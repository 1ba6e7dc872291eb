//! What is done to scores between the products: rows of 32 lanes, a row per key and a lane per query, in two registers.
//!
//! What goes back to the unit is cut into two bfloat16: the upper half of its bits, and what that leaves over, rounded. Both are
//! had by shifts and masks alone, in cells of two neighbors along the depth.

use super::super::scores::State;
use crate::machine::amx::{LINE, LINES, STEP};
use crate::ops::contraction::amx::{DEEP, SIDE};
use std::arch::x86_64::*;

/// Registers of a row.
const REGS: usize = SIDE / LINES;
/// How far, in units of `ln 2`, scores may rise over a top before it follows, since then all sums have to be multiplied.
const SLACK: f32 = 8.0;
/// The bits that a bfloat16 keeps.
const UPPER: i32 = -1 << 16;

/// `2^x` for `x <= SLACK`, 0 below `2^-125`. NaN stays NaN.
#[inline]
#[target_feature(enable = "avx512f")]
fn power(x: __m512) -> __m512 {
    const ROUND: f32 = 12582912.0; // 1.5 * 2^23
    // Minimax on [-1/2, 1/2], 2.6e-6: two bfloat16 hold as much.
    const TERMS: [f32; 5] =
        [0.9999992847442627, 0.6931217908859253, 0.240247443318367, 0.05591785907745361, 0.009570102207362652];
    let shifted = _mm512_add_ps(x, _mm512_set1_ps(ROUND));
    let r = _mm512_sub_ps(x, _mm512_sub_ps(shifted, _mm512_set1_ps(ROUND)));
    let mut p = _mm512_set1_ps(TERMS[4]);
    for term in TERMS[..4].iter().rev() {
        p = _mm512_fmadd_ps(p, r, _mm512_set1_ps(*term));
    }
    let exponent = _mm512_slli_epi32::<23>(_mm512_castps_si512(shifted));
    let seen = _mm512_cmp_ps_mask::<_CMP_NLT_UQ>(x, _mm512_set1_ps(-125.0));
    _mm512_castsi512_ps(_mm512_maskz_add_epi32(seen, _mm512_castps_si512(p), exponent))
}

/// The register of 16 lanes from `lane` on.
#[inline]
#[target_feature(enable = "avx512f")]
fn at(row: &[f32], lane: usize) -> __m512 {
    let lanes = &row[lane..lane + LINES];
    // SAFETY: sixteen of them.
    unsafe { _mm512_loadu_ps(lanes.as_ptr()) }
}

#[inline]
#[target_feature(enable = "avx512f")]
fn put(row: &mut [f32], lane: usize, value: __m512) {
    let lanes = &mut row[lane..lane + LINES];
    // SAFETY: sixteen of them.
    unsafe { _mm512_storeu_ps(lanes.as_mut_ptr(), value) }
}

/// Two bfloat16 whose sum a number is, but for what 16 bits do not hold.
#[inline]
#[target_feature(enable = "avx512f")]
fn parts(x: __m512) -> [__m512i; 2] {
    let upper = _mm512_and_si512(_mm512_castps_si512(x), _mm512_set1_epi32(UPPER));
    let rest = _mm512_castps_si512(_mm512_sub_ps(x, _mm512_castsi512_ps(upper)));
    [upper, _mm512_add_epi32(rest, _mm512_set1_epi32(1 << 15))]
}

/// Cells of the upper halves of two numbers.
#[inline]
#[target_feature(enable = "avx512f")]
fn cells(low: __m512i, high: __m512i) -> __m512i {
    let high = _mm512_and_si512(high, _mm512_set1_epi32(UPPER));
    _mm512_or_si512(_mm512_srli_epi32::<16>(low), high)
}

/// Brings the tops up to date with a block of scores, which `unit` is still to be multiplied with: what to subtract from them, and
/// whether a top rose.
#[inline]
#[target_feature(enable = "avx512f")]
fn rise(scores: &[f32], unit: f32, state: &mut State<'_, f32>) -> ([__m512; REGS], bool) {
    let lowest = _mm512_set1_ps(f32::NEG_INFINITY);
    let mut ways = [[lowest; REGS]; 2];
    let mut pairs = scores.chunks_exact(2 * SIDE);
    for pair in &mut pairs {
        for (way, tops) in ways.iter_mut().enumerate() {
            for (reg, top) in tops.iter_mut().enumerate() {
                // The instruction gives its second operand where either is NaN.
                *top = _mm512_max_ps(at(pair, way * SIDE + reg * LINES), *top);
            }
        }
    }
    let last = pairs.remainder();
    let (mut shifts, mut rose) = ([lowest; REGS], false);
    for (reg, slot) in shifts.iter_mut().enumerate() {
        let mut tile = _mm512_max_ps(ways[0][reg], ways[1][reg]);
        if !last.is_empty() {
            tile = _mm512_max_ps(at(last, reg * LINES), tile);
        }
        let (lane, before) = (reg * LINES, at(state.top, reg * LINES));
        let tile = _mm512_mul_ps(tile, _mm512_set1_ps(unit));
        let rises = _mm512_cmp_ps_mask::<_CMP_GT_OQ>(tile, _mm512_add_ps(before, _mm512_set1_ps(SLACK)));
        let new = _mm512_mask_mov_ps(before, rises, tile);
        // A query that has seen nothing has no top to shift by.
        *slot = _mm512_maskz_mov_ps(_mm512_cmp_ps_mask::<_CMP_NEQ_UQ>(new, lowest), new);
        let fade = _mm512_mask_mov_ps(_mm512_set1_ps(1.0), rises, power(_mm512_sub_ps(before, *slot)));
        rose |= rises != 0;
        put(state.total, lane, _mm512_mul_ps(at(state.total, lane), fade));
        put(state.fade, lane, fade);
        put(state.top, lane, new);
    }
    (shifts, rose)
}

/// Tops from which on their own rounding, of up to `2^-24` of them, would show as a factor.
const HIGH: f32 = (1 << 20) as f32;

/// Whether a top is so high that products have to be rounded as it was: the largest score must come out as 0.
#[inline]
#[target_feature(enable = "avx512f")]
fn high(shift: __m512) -> bool {
    _mm512_cmp_ps_mask::<_CMP_GE_OQ>(_mm512_abs_ps(shift), _mm512_set1_ps(HIGH)) != 0
}

/// How much less a score is than a top.
#[inline]
#[target_feature(enable = "avx512f")]
fn less<const HIGH: bool>(score: __m512, unit: __m512, shift: __m512) -> __m512 {
    if HIGH { _mm512_sub_ps(_mm512_mul_ps(score, unit), shift) } else { _mm512_fmsub_ps(score, unit, shift) }
}

/// Multiplies rows of 32 sums by one value per lane.
///
/// # Safety
/// The machine has the instructions.
#[target_feature(enable = "avx512f")]
pub unsafe fn fade(sums: &mut [f32], by: &[f32]) {
    let by = [at(by, 0), at(by, LINES)];
    for row in sums.chunks_exact_mut(SIDE) {
        for (reg, &by) in by.iter().enumerate() {
            let lane = reg * LINES;
            put(row, lane, _mm512_mul_ps(at(row, lane), by));
        }
    }
}

/// Turns rows of scores, which `unit` is still to be multiplied with, into weights `2^(s - top)` packed as a right side of two
/// parts, up to the end of a step, and brings the state up to date. Whether what was summed before has to fade.
///
/// # Safety
/// The unit is positive; there is room for the steps, aligned; the machine has the instructions.
#[target_feature(enable = "avx512f")]
pub unsafe fn weigh(scores: &[f32], unit: f32, mut state: State<'_, f32>, to: &mut [u8]) -> bool {
    let (shifts, rose) = rise(scores, unit, &mut state);
    if shifts.iter().any(|&shift| high(shift)) {
        weigh_by::<true>(scores, unit, shifts, state, to);
    } else {
        weigh_by::<false>(scores, unit, shifts, state, to);
    }
    rose
}

#[inline]
#[target_feature(enable = "avx512f")]
fn weigh_by<const HIGH: bool>(scores: &[f32], unit: f32, shifts: [__m512; REGS], state: State<'_, f32>, to: &mut [u8]) {
    let (rows, unit) = (scores.len() / SIDE, _mm512_set1_ps(unit));
    let steps = rows.div_ceil(DEEP);
    let to = to[..2 * steps * STEP].as_mut_ptr();
    for (reg, &shift) in shifts.iter().enumerate() {
        let lane = reg * LINES;
        let weight = |row: &[f32]| power(less::<HIGH>(at(row, lane), unit, shift));
        let mut totals = [_mm512_setzero_ps(); 2];
        for pair in 0..steps * DEEP / 2 {
            let mut two = [_mm512_setzero_ps(); 2];
            for (at, (value, total)) in two.iter_mut().zip(&mut totals).enumerate() {
                if let Some(row) = scores.get((2 * pair + at) * SIDE..(2 * pair + at + 1) * SIDE) {
                    *value = weight(row);
                    *total = _mm512_add_ps(*total, *value);
                }
            }
            let ([first, first_rest], [second, second_rest]) = (parts(two[0]), parts(two[1]));
            let line = pair / LINES * 2 * STEP + pair % LINES * REGS * LINE + reg * LINE;
            // SAFETY: a line of the steps, which the caller aligned.
            unsafe {
                _mm512_store_si512(to.add(line).cast(), cells(first, second));
                _mm512_store_si512(to.add(line + STEP).cast(), cells(first_rest, second_rest));
            }
        }
        let total = _mm512_add_ps(totals[0], totals[1]);
        put(state.total, lane, _mm512_add_ps(at(state.total, lane), total));
    }
}

/// Turns rows of scores, which `unit` is still to be multiplied with, into weights `2^(s - top)`, and brings the state up to date, to
/// which belong the sums of weights times their cotangents.
///
/// # Safety
/// The unit is positive; the machine has the instructions.
#[target_feature(enable = "avx512f")]
pub unsafe fn survey(scores: &mut [f32], pulls: &[f32], unit: f32, mut state: State<'_, f32>, inner: &mut [f32]) {
    let (shifts, _) = rise(scores, unit, &mut state);
    if shifts.iter().any(|&shift| high(shift)) {
        survey_by::<true>(scores, pulls, unit, shifts, state, inner);
    } else {
        survey_by::<false>(scores, pulls, unit, shifts, state, inner);
    }
}

#[inline]
#[target_feature(enable = "avx512f")]
fn survey_by<const HIGH: bool>(
    scores: &mut [f32],
    pulls: &[f32],
    unit: f32,
    shifts: [__m512; REGS],
    state: State<'_, f32>,
    inner: &mut [f32],
) {
    let unit = _mm512_set1_ps(unit);
    for (reg, &shift) in shifts.iter().enumerate() {
        let lane = reg * LINES;
        let (mut totals, mut inners) = ([_mm512_setzero_ps(); 2], [_mm512_setzero_ps(); 2]);
        for (index, (row, pulls)) in scores.chunks_exact_mut(SIDE).zip(pulls.chunks_exact(SIDE)).enumerate() {
            let weight = power(less::<HIGH>(at(row, lane), unit, shift));
            put(row, lane, weight);
            let way = index % 2;
            totals[way] = _mm512_add_ps(totals[way], weight);
            inners[way] = _mm512_fmadd_ps(weight, at(pulls, lane), inners[way]);
        }
        let total = _mm512_add_ps(totals[0], totals[1]);
        put(state.total, lane, _mm512_add_ps(at(state.total, lane), total));
        let sum = _mm512_add_ps(inners[0], inners[1]);
        put(inner, lane, _mm512_fmadd_ps(at(inner, lane), at(state.fade, lane), sum));
    }
}

/// Divides weights by their sum, and turns their cotangents into those of the scores: `w * (p - sum of w * p)`. `ends` are top,
/// total and the sums of [`survey`]. `unit`, where there are no weights yet: what scores are still to be multiplied with.
///
/// # Safety
/// The machine has the instructions.
#[target_feature(enable = "avx512f")]
pub unsafe fn pull(scores: &mut [f32], pulls: &mut [f32], unit: Option<f32>, ends: [&[f32]; 3]) {
    for lane in (0..SIDE).step_by(LINES) {
        let [top, total, inner] = ends.map(|end| at(end, lane));
        let one = _mm512_set1_ps(1.0);
        let some = _mm512_cmp_ps_mask::<_CMP_NEQ_UQ>(total, _mm512_setzero_ps());
        let scale = _mm512_mask_div_ps(one, some, one, total);
        let shift = _mm512_maskz_mov_ps(_mm512_cmp_ps_mask::<_CMP_NEQ_UQ>(top, _mm512_set1_ps(f32::NEG_INFINITY)), top);
        let mean = _mm512_mul_ps(inner, scale);
        let rows = scores.chunks_exact_mut(SIDE).zip(pulls.chunks_exact_mut(SIDE));
        let step = |weights: &mut [f32], pulls: &mut [f32], weight| {
            let weight = _mm512_mul_ps(weight, scale);
            put(weights, lane, weight);
            put(pulls, lane, _mm512_mul_ps(weight, _mm512_sub_ps(at(pulls, lane), mean)));
        };
        let unit = unit.map(|unit| _mm512_set1_ps(unit));
        match unit {
            None => rows.for_each(|(weights, pulls)| {
                let weight = at(weights, lane);
                step(weights, pulls, weight);
            }),
            Some(unit) if high(shift) => rows.for_each(|(weights, pulls)| {
                let weight = power(less::<true>(at(weights, lane), unit, shift));
                step(weights, pulls, weight);
            }),
            Some(unit) => rows.for_each(|(weights, pulls)| {
                let weight = power(less::<false>(at(weights, lane), unit, shift));
                step(weights, pulls, weight);
            }),
        }
    }
}

/// Packs rows as left sides of two parts, `pitch` bytes from 32 of them to the next, a line a row: lane `i` beside lane `i + 16`; and
/// where `RIGHT` as right sides of two parts. What is missing of `all` rows is 0.
///
/// # Safety
/// `all` is a multiple of 32; there is room for the sides, aligned; the machine has the instructions.
#[target_feature(enable = "avx512f")]
pub unsafe fn split<const RIGHT: bool>(block: &[f32], all: usize, pitch: usize, left: &mut [u8], right: &mut [u8]) {
    assert!(all == 0 || left.len() >= (all / SIDE - 1) * pitch + 2 * STEP);
    assert!(!RIGHT || right.len() >= all / DEEP * 2 * STEP);
    let (left, right) = (left.as_mut_ptr(), right.as_mut_ptr());
    for pair in 0..all / 2 {
        // Rows, halves of them, parts of these.
        let mut cut = [[[_mm512_setzero_si512(); 2]; REGS]; 2];
        for (row, halves) in cut.iter_mut().enumerate() {
            let row = 2 * pair + row;
            if let Some(row) = block.get(row * SIDE..(row + 1) * SIDE) {
                *halves = [parts(at(row, 0)), parts(at(row, LINES))];
            }
        }
        for part in 0..2 {
            for (row, halves) in cut.iter().enumerate() {
                let row = 2 * pair + row;
                let line = row / SIDE * pitch + row % SIDE * LINE + part * STEP;
                // SAFETY: a line of the sides, for which there is room.
                _mm512_store_si512(left.add(line).cast(), cells(halves[0][part], halves[1][part]));
            }
            for (half, (first, second)) in cut[0].iter().zip(&cut[1]).enumerate().filter(|_| RIGHT) {
                let line = pair / LINES * 2 * STEP + pair % LINES * REGS * LINE + half * LINE + part * STEP;
                _mm512_store_si512(right.add(line).cast(), cells(first[part], second[part]));
            }
        }
    }
}
