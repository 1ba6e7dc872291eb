//! Steps of both sides of a product by tiles: 32 rows or columns, and 32 elements of the depth.

use super::super::Matrix;
use super::{DEEP, SIDE};
use crate::dtype::BF16;
use crate::machine::amx::{LINE, LINES, STEP};
use crate::machine::lanes::{Block, Lanes, Real};
use crate::memory::scratch::Stack;
use std::arch::x86_64::*;

/// What a step of 32 rows or columns takes.
type Cells = Stack<STEP>;

/// Packs up to 32 columns: pair under pair, sixteen lines of 32 columns. What is missing is 0.
///
/// # Safety
/// The elements of so many columns and depths are there, and room for a step, aligned; the machine has AVX-512.
pub unsafe fn right(from: Matrix<BF16>, size: (usize, usize), to: *mut u8) {
    if from.col == 1 {
        return weave(from.start, from.row, size, NEXT, to);
    }
    let mut block = Cells::new();
    runs(from.turned(), size, block.ptr());
    turn(block.ptr(), LINE, to, SIDE);
    turn(block.ptr().add(STEP / 2), LINE, to.add(LINE), SIDE);
}

/// Packs up to 32 rows: an upper and a lower tile, a line of 32 elements for each row. What is missing is 0.
///
/// # Safety
/// As for [`right`], of rows.
pub unsafe fn left(from: Matrix<BF16>, size: (usize, usize), to: *mut u8) {
    if from.row != 1 || from.col == 1 {
        return runs(from, size, to);
    }
    let mut block = Cells::new();
    weave(from.start, from.col, size, NEXT, block.ptr());
    turn(block.ptr(), 2 * LINE, to, LINES);
    turn(block.ptr().add(LINE), 2 * LINE, to.add(STEP / 2), LINES);
}

/// As [`right`], where element `i` of the depth is paired with element `i + 16`.
///
/// # Safety
/// As there.
pub unsafe fn right_halves(from: Matrix<BF16>, size: (usize, usize), to: *mut u8) {
    // The block has 32 lines of 32 elements.
    if from.col == 1 {
        return weave(from.start, from.row, size, LINES, to);
    }
    let mut block = Cells::new();
    runs(from, (size.1, size.0), block.ptr());
    weave(block.ptr().cast(), DEEP as isize, (SIDE, DEEP), LINES, to);
}

/// Of sixteen elements of both lines by turns: those of the first halves, then of the second ones.
const ORDER: [[u16; 32]; 2] = {
    let (mut order, mut i) = ([[0; 32]; 2], 0);
    while i < 32 {
        (order[0][i], order[1][i]) = ((i / 2 + i % 2 * 32) as u16, (i / 2 + 16 + i % 2 * 32) as u16);
        i += 1;
    }
    order
};

/// Pairs of the elements of two lines, the second of which may be missing, which makes it 0.
///
/// # Safety
/// Both lines have `count` elements, and there is room for pairs up to a multiple of 32; the machine has AVX-512.
#[target_feature(enable = "avx512f,avx512bw")]
pub unsafe fn pairs(upper: *const BF16, lower: Option<*const BF16>, count: usize, to: *mut f32) {
    // SAFETY: masked elements are not read.
    let (low, high) = (_mm512_loadu_si512(ORDER[0].as_ptr().cast()), _mm512_loadu_si512(ORDER[1].as_ptr().cast()));
    for at in (0..count).step_by(SIDE) {
        let mask = u32::MAX >> (SIDE - SIDE.min(count - at));
        let first = _mm512_maskz_loadu_epi16(mask, upper.add(at).cast());
        let second = lower.map_or(_mm512_setzero_si512(), |lower| _mm512_maskz_loadu_epi16(mask, lower.add(at).cast()));
        _mm512_storeu_si512(to.add(at).cast(), _mm512_permutex2var_epi16(first, low, second));
        _mm512_storeu_si512(to.add(at + LINES).cast(), _mm512_permutex2var_epi16(first, high, second));
    }
}

/// How far apart the rows of a pair are, most often.
const NEXT: usize = 1;

/// Sixteen lines of 32 pairs: of elements side by side, `apart` rows of `step` elements above the ones that they are paired with,
/// 1 or 16; 0 where there are none.
///
/// # Safety
/// The elements are there, and room for the lines, which are aligned; the machine has AVX-512.
#[target_feature(enable = "avx512f,avx512bw")]
#[expect(clippy::cast_ptr_alignment, reason = "lines are aligned")]
unsafe fn weave(from: *const BF16, step: isize, (cols, deep): (usize, usize), apart: usize, to: *mut u8) {
    let mask = u32::MAX >> (SIDE - cols);
    // SAFETY: masked elements are not read.
    let (low, high) = (_mm512_loadu_si512(ORDER[0].as_ptr().cast()), _mm512_loadu_si512(ORDER[1].as_ptr().cast()));
    for line in 0..LINES {
        let mut pair = [_mm512_setzero_si512(); 2];
        for (at, row) in pair.iter_mut().enumerate() {
            let place = if apart == NEXT { 2 * line + at } else { line + at * apart };
            if place < deep {
                let from = from.wrapping_offset(place as isize * step);
                *row = _mm512_maskz_loadu_epi16(mask, from.cast());
            }
        }
        let to = to.add(line * 2 * LINE).cast::<__m512i>();
        _mm512_store_si512(to, _mm512_permutex2var_epi16(pair[0], low, pair[1]));
        _mm512_store_si512(to.add(1), _mm512_permutex2var_epi16(pair[0], high, pair[1]));
    }
}

/// 32 lines of the first `deep` elements of as many rows; 0 where there are none.
///
/// # Safety
/// As for [`weave`].
#[target_feature(enable = "avx512f,avx512bw")]
unsafe fn runs(from: Matrix<BF16>, (rows, deep): (usize, usize), to: *mut u8) {
    let mask = u32::MAX >> (DEEP - deep);
    for i in 0..SIDE {
        let mut line = _mm512_setzero_si512();
        // SAFETY: rows that are there, of which masked elements are not read; room for all lines.
        if i < rows && from.col == 1 {
            line = _mm512_maskz_loadu_epi16(mask, from.at(i, 0).start.cast());
        } else if i < rows {
            let mut elements = [0u16; DEEP];
            for (l, element) in elements[..deep].iter_mut().enumerate() {
                *element = *from.at(i, l).start.cast::<u16>();
            }
            line = _mm512_loadu_si512(elements.as_ptr().cast());
        }
        _mm512_store_si512(to.add(i * LINE).cast(), line);
    }
}

/// Turns sixteen lines of sixteen pairs, `pitch` bytes apart, into lines `across` pairs apart.
///
/// # Safety
/// The lines are there; the machine has AVX-512.
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
#[expect(clippy::cast_ptr_alignment, reason = "lines are aligned")]
unsafe fn turn(from: *const u8, pitch: usize, to: *mut u8, across: usize) {
    let block = Block { at: from.cast::<f32>(), pitch: pitch / size_of::<f32>(), rows: LINES, cols: LINES };
    // Only moved, so any bits will do.
    <f32 as Real>::Wide512::transpose(block, to.cast(), across, LINES);
}
