//! Cholesky's factor, panel after panel from the left.

use super::panel::{Corner, Panel, WIDTH, add_product, part, subtract};
use super::{Each, Number, copied, each, unbounded};
use crate::array::Array;
use crate::error::{Error, Result};
use crate::vectorize;
use std::cmp::Ordering;

/// Rows whose products with a panel are computed at once: what they have above the diagonal is wasted.
const STRIP: usize = 64;
/// Side of the squares in which an element and its mirror image are brought together.
const TILE: usize = 16;

/// The lower factors of matrices of `n` rows.
pub fn factors<T: Number>(x: &Array, batch: usize, n: usize) -> Result<Array> {
    let mut out = copied::<T>(x)?;
    if out.numel() == 0 {
        return Ok(out);
    }
    let matrices = Each::<T>::of(&mut out, n * n);
    each(batch, n * n * n / 6, &|mut range, split| {
        let mut panel = Panel::<T>::new(n);
        range.try_for_each(|index| {
            // SAFETY: each is visited once.
            let a = unsafe { matrices.at(index) };
            if let Some(nan) = unbounded(a) {
                a.fill(nan);
                return Ok(());
            }
            symmetric(a, n);
            factor(a, n, &mut panel, split)
        })
    })?;
    Ok(out)
}

vectorize!(symmetric[T: Number](a: &mut [T], n: usize) => symmetric_body::<T>);

/// Means of mirror images, on and below the diagonal, and above it in the squares that it crosses.
#[inline(always)]
fn symmetric_body<T: Number>(a: &mut [T], n: usize) {
    let half = T::ONE / (T::ONE + T::ONE);
    for rows in (0..n).step_by(TILE) {
        let high = TILE.min(n - rows);
        for cols in (0..=rows).step_by(TILE) {
            let wide = TILE.min(n - cols);
            let mut mirrored = [[T::default(); TILE]; TILE];
            for j in 0..wide {
                let line = &a[(cols + j) * n + rows..][..high];
                mirrored.iter_mut().zip(line).for_each(|(slots, &value)| slots[j] = value);
            }
            for (i, mirrored) in mirrored[..high].iter().enumerate() {
                let line = &mut a[(rows + i) * n + cols..][..wide];
                line.iter_mut().zip(mirrored).for_each(|(slot, &value)| *slot = (*slot + value) * half);
            }
        }
    }
}

fn factor<T: Number>(a: &mut [T], n: usize, panel: &mut Panel<T>, split: bool) -> Result<()> {
    for start in (0..n).step_by(WIDTH) {
        let (cols, rows) = (WIDTH.min(n - start), n - start);
        let corner = Corner { row: start, col: start, pitch: n };
        panel.read(a, corner, [rows, cols]);
        let (cells, pitch) = panel.columns();
        if !steps(cells, pitch, cols) {
            let text = "a matrix is not positive definite\nhint: px.linalg.eigh(x)";
            return Err(Error::value("cholesky", text));
        }
        panel.write(a, corner);
        if cols == rows {
            break;
        }
        panel.negate();
        let whole = a.as_mut_ptr();
        for strip in (cols..rows).step_by(STRIP) {
            let high = STRIP.min(rows - strip);
            let size = (high, cols, strip + high - cols);
            let left = Corner { row: start + strip, ..corner };
            let to = Corner { col: start + cols, ..left };
            // SAFETY: rows of the panel, its copy from the first row behind it on, and the part right of these rows.
            unsafe { add_product(size, [part(whole, left), panel.right(cols), part(whole, to)], split)? };
        }
    }
    (0..n).for_each(|row| a[row * n + row + 1..(row + 1) * n].fill(T::default()));
    Ok(())
}

vectorize!(steps[T: Number](cells: &mut [T], pitch: usize, cols: usize) -> bool => steps_body::<T>);

/// The columns of a panel; false where a diagonal element is not above 0. What is above the diagonal is arbitrary.
#[inline(always)]
fn steps_body<T: Number>(cells: &mut [T], pitch: usize, cols: usize) -> bool {
    for j in 0..cols {
        let (head, rest) = cells.split_at_mut((j + 1) * pitch);
        let column = &mut head[j * pitch..];
        // Whole runs: those above the diagonal are nobody's.
        let from = j & !7;
        if column[j].partial_cmp(&T::default()) != Some(Ordering::Greater) {
            return false;
        }
        let root = column[j].root();
        let inverse = T::ONE / root;
        for value in &mut column[from..] {
            *value = *value * inverse;
        }
        column[j] = root;
        for (c, other) in rest.chunks_exact_mut(pitch).enumerate() {
            let first = (j + 1 + c) & !7;
            subtract(&mut other[first..], &column[first..], column[j + 1 + c]);
        }
    }
    true
}
