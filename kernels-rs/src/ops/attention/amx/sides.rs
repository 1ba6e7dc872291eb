//! Rows of a head as sides of products by tiles.

use super::super::heads::Rows;
use crate::dtype::BF16;
use crate::machine::amx::{LINE, STEP, Sides};
use crate::ops::contraction::Matrix;
use crate::ops::contraction::amx::{DEEP, SIDE, pack};

/// Rows turned over: those of the columns.
pub fn turned(rows: Rows<BF16>) -> Rows<BF16> {
    Rows { at: rows.at, row: rows.col, col: rows.row }
}

fn matrix(rows: Rows<BF16>) -> Matrix<BF16> {
    Matrix::new(rows.at.cast_mut(), (rows.row, rows.col))
}

/// Packs rows as left sides: 32 of them step after step, then the next 32.
///
/// # Safety
/// There are that many rows and columns, and room for their steps, aligned; the machine has AVX-512.
pub unsafe fn left(rows: Rows<BF16>, (count, cols): (usize, usize), to: &mut [u8]) {
    let deep = cols.div_ceil(DEEP);
    for (step, to) in to[..count.div_ceil(SIDE) * deep * STEP].chunks_exact_mut(STEP).enumerate() {
        let (row, col) = (step / deep * SIDE, step % deep * DEEP);
        let size = (SIDE.min(count - row), DEEP.min(cols - col));
        pack::left(matrix(rows.from(row, col)), size, to.as_mut_ptr());
    }
}

/// Packs up to 32 rows as columns of a right side, step after step.
///
/// # Safety
/// As for [`left`].
pub unsafe fn right(rows: Rows<BF16>, (count, cols): (usize, usize), to: &mut [u8]) {
    for (step, to) in to[..cols.div_ceil(DEEP) * STEP].chunks_exact_mut(STEP).enumerate() {
        let (from, size) = (turned(rows.from(0, step * DEEP)), (count, DEEP.min(cols - step * DEEP)));
        pack::right(matrix(from), size, to.as_mut_ptr());
    }
}

/// Packs up to 32 rows as the depth of right sides, row `i` beside row `i + 16`: a step for each 32 columns, `pitch` bytes apart.
///
/// # Safety
/// As for [`left`].
pub unsafe fn deep(rows: Rows<BF16>, (count, cols): (usize, usize), pitch: usize, to: &mut [u8]) {
    for (block, col) in (0..cols).step_by(SIDE).enumerate() {
        let to = &mut to[block * pitch..][..STEP];
        pack::right_halves(matrix(rows.from(0, col)), (SIDE.min(cols - col), count), to.as_mut_ptr());
    }
}

/// Sides that are packed, the left one `deep` bytes a step.
pub fn packed(left: &[u8], right: &[u8], steps: usize, deep: usize) -> Sides {
    Sides { left: left.as_ptr(), row: LINE, lower: STEP / 2, deep, right: right.as_ptr(), steps }
}
