//! Some columns of a matrix, copied so that each lies in one run; and products with them.

use super::{Call, Epilogue, Matrix, Number, add};
use crate::error::Result;
use crate::memory::scratch::Aligned;

/// Columns of a panel: as many as the rows that a product reads at once.
pub const WIDTH: usize = 32;
/// Elements that are computed with at once, and to a whole number of which columns are filled with zeros.
pub const LANES: usize = 16;

/// Columns, one after the other.
pub struct Panel<T> {
    cells: Aligned<T>,
    /// From one column to the next.
    pub pitch: usize,
    /// Of the block that was copied last.
    pub rows: usize,
    /// Of the block that was copied last.
    pub cols: usize,
}

/// The part of a matrix, dense rows of `pitch` elements, from a row and a column on.
#[derive(Clone, Copy)]
pub struct Corner {
    pub row: usize,
    pub col: usize,
    pub pitch: usize,
}

impl Corner {
    /// Where an element of the part is.
    pub fn at(self, row: usize, col: usize) -> usize {
        (self.row + row) * self.pitch + self.col + col
    }

    /// The run of a row of the part.
    pub fn run(self, row: usize, cols: usize) -> std::ops::Range<usize> {
        self.at(row, 0)..self.at(row, cols)
    }
}

impl<T: Number> Panel<T> {
    /// Room for a block of so many rows.
    pub fn new(rows: usize) -> Self {
        // An odd number of runs: columns fall into different sets of a cache.
        let pitch = (rows.div_ceil(LANES) | 1) * LANES;
        Self { cells: Aligned::zeros(pitch * WIDTH), pitch, rows: 0, cols: 0 }
    }

    /// Copies a block of `rows` and `cols`, square by square. What lies past whole runs of its rows stays as it was.
    pub fn read(&mut self, from: &[T], corner: Corner, [rows, cols]: [usize; 2]) {
        (self.rows, self.cols) = (rows, cols);
        for (first, left) in squares(rows, cols) {
            let (high, wide) = (LANES.min(rows - first), LANES.min(cols - left));
            let mut turned = [[T::default(); LANES]; LANES];
            for i in 0..high {
                let line = &from[corner.at(first + i, left)..][..wide];
                turned.iter_mut().zip(line).for_each(|(column, &value)| column[i] = value);
            }
            for (j, column) in turned[..wide].iter().enumerate() {
                self.cells[(left + j) * self.pitch + first..][..LANES].copy_from_slice(column);
            }
        }
    }

    /// Copies the block back.
    pub fn write(&self, to: &mut [T], corner: Corner) {
        for (first, left) in squares(self.rows, self.cols) {
            let (high, wide) = (LANES.min(self.rows - first), LANES.min(self.cols - left));
            let mut turned = [[T::default(); LANES]; LANES];
            for j in 0..wide {
                let column = &self.cells[(left + j) * self.pitch + first..][..LANES];
                turned.iter_mut().zip(column).for_each(|(line, &value)| line[j] = value);
            }
            for (i, line) in turned[..high].iter().enumerate() {
                to[corner.at(first + i, left)..][..wide].copy_from_slice(&line[..wide]);
            }
        }
    }

    /// All columns, `pitch` elements each, and the pitch.
    pub fn columns(&mut self) -> (&mut [T], usize) {
        (&mut self.cells[..self.cols * self.pitch], self.pitch)
    }

    /// One column, as far as it has rows.
    pub fn column(&mut self, col: usize) -> &mut [T] {
        &mut self.cells[col * self.pitch..][..self.rows]
    }

    /// Changes all signs.
    pub fn negate(&mut self) {
        let (cells, _) = self.columns();
        for value in cells {
            *value = T::default() - *value;
        }
    }

    /// The panel from one of its rows on, as the left side of a product.
    pub fn left(&self, row: usize) -> Matrix<T> {
        self.right(row).turned()
    }

    /// The transposed panel from one of its rows on, as a side of a product.
    pub fn right(&self, row: usize) -> Matrix<T> {
        Matrix::new(self.cells.as_ptr().wrapping_add(row).cast_mut(), (self.pitch as isize, 1))
    }
}

/// First rows and columns of the squares of a block.
fn squares(rows: usize, cols: usize) -> impl Iterator<Item = (usize, usize)> {
    (0..rows).step_by(LANES).flat_map(move |first| (0..cols).step_by(LANES).map(move |left| (first, left)))
}

/// The part of a matrix that starts here, as an operand of a product.
pub fn part<T>(start: *mut T, corner: Corner) -> Matrix<T> {
    Matrix::new(start.wrapping_add(corner.at(0, 0)), (corner.pitch as isize, 1))
}

/// `c += a @ b`, where there is anything to add.
///
/// # Safety
/// The matrices are valid for these sizes `(m, k, n)`; `c` shares nothing with the others.
pub unsafe fn add_product<T: Number>(
    size: (usize, usize, usize),
    [a, b, c]: [Matrix<T>; 3],
    split: bool,
) -> Result<()> {
    if size.0 * size.1 * size.2 == 0 {
        return Ok(());
    }
    // SAFETY: as the caller promises.
    unsafe { add(&Call { size, a, b, c, end: Epilogue::default() }, split) }
}

/// `to -= from * factor`.
#[inline(always)]
pub fn subtract<T: Number>(to: &mut [T], from: &[T], factor: T) {
    let (to, from) = runs::<T, 32>(to, from, factor);
    let (to, from) = runs::<T, 8>(to, from, factor);
    to.iter_mut().zip(from).for_each(|(to, &from)| *to = *to - from * factor);
}

/// [`subtract`] of whole runs; returns what is left.
#[inline(always)]
fn runs<'a, T: Number, const N: usize>(to: &'a mut [T], from: &'a [T], factor: T) -> (&'a mut [T], &'a [T]) {
    let (to, rest) = to.as_chunks_mut::<N>();
    let (from, others) = from.as_chunks::<N>();
    for (to, from) in to.iter_mut().zip(from) {
        for (to, &from) in to.iter_mut().zip(from) {
            *to = *to - from * factor;
        }
    }
    (rest, others)
}

/// Sum of products, lane by lane.
#[inline(always)]
pub fn dot<T: Number>(a: &[T], b: &[T]) -> T {
    let mut sums = [T::default(); LANES];
    let (runs, others) = (a.chunks_exact(LANES), b.chunks_exact(LANES));
    let rest = runs.remainder().iter().zip(others.remainder());
    for (a, b) in runs.zip(others) {
        for i in 0..LANES {
            sums[i] = sums[i] + a[i] * b[i];
        }
    }
    rest.zip(&mut sums).for_each(|((&a, &b), sum)| *sum = *sum + a * b);
    sums.iter().fold(T::default(), |sum, &each| sum + each)
}
