//! Cholesky's factor: half of the columns, then what these do to the other half, then that.

use super::panel::{Corner, Panel, Part, STEP, Taken, WIDTH, add_product, take_columns};
use super::{Each, Number, copied, each, unbounded};
use crate::array::Array;
use crate::error::{Error, Result};
use crate::machine::lanes::{Kernel, Lanes, launch};
use crate::vectorize;
use std::cmp::Ordering;

/// Columns whose products are computed at once: what they have above the diagonal is wasted.
const ABREAST: usize = 64;
/// Columns of a panel that others are taken from at once.
const TOGETHER: usize = 4;
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
        let (mut panel, mut taken) = (Panel::<T>::new(n), Taken::new(split));
        range.try_for_each(|index| {
            // SAFETY: each is visited once.
            let a = unsafe { matrices.at(index) };
            if let Some(nan) = unbounded(a) {
                a.fill(nan);
                return Ok(());
            }
            symmetric(a, n);
            factor(a, n, &mut panel, &mut taken)
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

fn factor<T: Number>(a: &mut [T], n: usize, panel: &mut Panel<T>, taken: &mut Taken<T>) -> Result<()> {
    columns(a, n, (0, n), panel, taken)?;
    (0..n).for_each(|row| a[row * n + row + 1..(row + 1) * n].fill(T::default()));
    Ok(())
}

/// Columns from one up to another; what those in front do to them is done.
fn columns<T: Number>(
    a: &mut [T],
    n: usize,
    (start, end): (usize, usize),
    panel: &mut Panel<T>,
    taken: &mut Taken<T>,
) -> Result<()> {
    if end - start <= WIDTH {
        let corner = Corner { row: start, col: start, pitch: n };
        panel.read(a, corner, [n - start, end - start]);
        let (cells, pitch) = panel.columns();
        let mut definite = false;
        launch(Steps { cells, pitch, rows: n - start, cols: end - start, definite: &mut definite });
        panel.write(a, corner);
        let text = "a matrix is not positive definite\nhint: px.linalg.eigh(x)";
        return if definite { Ok(()) } else { Err(Error::value("cholesky", text)) };
    }
    let middle = start + ((end - start) / 2).next_multiple_of(WIDTH);
    columns(a, n, (start, middle), panel, taken)?;
    let (whole, depth) = (Part::of(a, n), middle - start);
    // SAFETY: the rows behind the first half.
    let left = unsafe { taken.negated(whole.at(middle, start), [n - middle, depth]) };
    for col in (middle..end).step_by(ABREAST) {
        let right = whole.at(col, start).matrix().turned();
        let to = whole.at(col, col).matrix();
        let size = (n - col, depth, ABREAST.min(end - col));
        // SAFETY: a copy of rows, some of these rows, and what is right of them, from the diagonal down.
        unsafe { add_product(size, [left.at(col - middle, 0), right, to], taken.split)? };
    }
    columns(a, n, (middle, end), panel, taken)
}

/// The columns of a panel; not definite where a diagonal element is not above 0. What is above the diagonal is arbitrary.
struct Steps<'a, T> {
    cells: &'a mut [T],
    pitch: usize,
    rows: usize,
    cols: usize,
    definite: &'a mut bool,
}

impl<T: Number> Kernel<T> for Steps<'_, T> {
    #[inline(always)]
    unsafe fn run<V: Lanes<Elem = T>>(self) {
        let Self { cells, pitch, rows, cols, definite } = self;
        for first in (0..cols).step_by(STEP) {
            let last = cols.min(first + STEP);
            for j in first..last {
                // SAFETY: columns of the panel.
                take::<V, 1>(cells, [pitch, rows], (first, j), j);
                let column = &mut cells[j * pitch + j..j * pitch + rows];
                if column[0].partial_cmp(&T::default()) != Some(Ordering::Greater) {
                    return;
                }
                let root = column[0].root();
                let inverse = T::ONE / root;
                for value in &mut *column {
                    *value = *value * inverse;
                }
                column[0] = root;
            }
            let mut col = last;
            while col < cols {
                if cols - col >= TOGETHER {
                    take::<V, TOGETHER>(cells, [pitch, rows], (first, last), col);
                    col += TOGETHER;
                } else {
                    take::<V, 1>(cells, [pitch, rows], (first, last), col);
                    col += 1;
                }
            }
        }
        *definite = true;
    }
}

/// What columns `first..last` do to `W` columns behind them.
///
/// # Safety
/// The machine has the instructions of `V`.
#[inline(always)]
unsafe fn take<V: Lanes<Elem: Number>, const W: usize>(
    cells: &mut [V::Elem],
    [pitch, rows]: [usize; 2],
    (first, last): (usize, usize),
    col: usize,
) {
    let mut factors = [[V::Elem::default(); W]; STEP];
    for (i, factors) in factors[..last - first].iter_mut().enumerate() {
        factors.copy_from_slice(&cells[(first + i) * pitch + col..][..W]);
    }
    assert!((col + W) * pitch <= cells.len() && rows <= pitch);
    // SAFETY: columns of the panel, as asserted.
    take_columns::<V, W>(cells.as_mut_ptr(), [pitch, rows], (first, col, col), &factors[..last - first]);
}
