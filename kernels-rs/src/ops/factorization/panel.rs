//! Some columns of a matrix, copied so that each lies in one run; and products with them.

use super::{Call, Epilogue, Matrix, Number, add};
use crate::error::Result;
use crate::machine::lanes::{Block, Kernel, Lanes, launch};
use crate::memory::scratch::{Aligned, grow};
use crate::vectorize;

/// Columns of a panel: as many as the rows that a product reads at once.
pub const WIDTH: usize = 32;
/// Elements that are computed with at once, and to a whole number of which columns are filled with zeros.
pub const LANES: usize = 16;

/// Columns of a panel that are worked on one after the other; what they do to those behind them is done at once.
pub const STEP: usize = 8;

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
}

impl<T: Number> Panel<T> {
    /// Room for a block of so many rows.
    pub fn new(rows: usize) -> Self {
        // An odd number of runs: columns fall into different sets of a cache.
        let pitch = (rows.div_ceil(LANES) | 1) * LANES;
        Self { cells: Aligned::zeros(pitch * WIDTH), pitch, rows: 0, cols: 0 }
    }

    /// Copies a block of `rows` and `cols`, with zeros below it up to a whole number of [`LANES`].
    pub fn read(&mut self, from: &[T], corner: Corner, [rows, cols]: [usize; 2]) {
        (self.rows, self.cols) = (rows, cols);
        if rows * cols > 0 {
            assert!(corner.at(rows - 1, cols) <= from.len() && rows <= self.pitch && cols <= WIDTH);
            let from = Block { at: from[corner.at(0, 0)..].as_ptr(), pitch: corner.pitch, rows, cols };
            launch(Turn { from, to: self.cells.as_mut_ptr(), pitch: self.pitch, fills: true });
            for column in self.cells.chunks_exact_mut(self.pitch).take(cols) {
                column[rows..rows.next_multiple_of(LANES)].fill(T::default());
            }
        }
    }

    /// Copies the block back.
    pub fn write(&self, to: &mut [T], corner: Corner) {
        if self.rows * self.cols > 0 {
            assert!(corner.at(self.rows - 1, self.cols) <= to.len());
            let from = Block { at: self.cells.as_ptr(), pitch: self.pitch, rows: self.cols, cols: self.rows };
            let to = to[corner.at(0, 0)..].as_mut_ptr();
            launch(Turn { from, to, pitch: corner.pitch, fills: false });
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

    /// The panel from one of its rows on, as the left side of a product.
    pub fn left(&self, row: usize) -> Matrix<T> {
        self.right(row).turned()
    }

    /// The transposed panel from one of its rows on, as a side of a product.
    pub fn right(&self, row: usize) -> Matrix<T> {
        Matrix::new(self.cells.as_ptr().wrapping_add(row).cast_mut(), (self.pitch as isize, 1))
    }
}

/// Turns a block, square by square.
struct Turn<T> {
    from: Block<T>,
    to: *mut T,
    pitch: usize,
    /// Whether what is short of a register becomes zeros.
    fills: bool,
}

impl<T: Number> Kernel<T> for Turn<T> {
    #[inline(always)]
    unsafe fn run<V: Lanes<Elem = T>>(self) {
        let Block { at, pitch, rows, cols } = self.from;
        for first in (0..rows).step_by(V::N) {
            let high = V::N.min(rows - first);
            for left in (0..cols).step_by(V::N) {
                let square =
                    Block { at: at.wrapping_add(first * pitch + left), rows: high, cols: V::N.min(cols - left), pitch };
                let to = self.to.wrapping_add(left * self.pitch + first);
                // SAFETY: `read` and `write` checked that both blocks lie in their slices; columns of a panel have room
                // for whole registers.
                V::transpose(square, to, self.pitch, if self.fills { V::N } else { high });
            }
        }
    }
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
    add(&Call { size, a, b, c, end: Epilogue::default() }, split)
}

/// A matrix in rows, of which a part is worked on at a time.
pub struct Part<T> {
    /// Its first element.
    pub start: *mut T,
    /// From one row to the next.
    pub pitch: usize,
}

impl<T> Clone for Part<T> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<T> Copy for Part<T> {}

impl<T> Part<T> {
    /// Of a dense matrix with rows of `pitch` elements.
    pub fn of(a: &mut [T], pitch: usize) -> Self {
        Self { start: a.as_mut_ptr(), pitch }
    }

    /// Of one that is only read.
    pub fn reading(a: &[T], pitch: usize) -> Self {
        Self { start: a.as_ptr().cast_mut(), pitch }
    }

    /// The part from a row and a column on.
    #[inline(always)]
    pub fn at(self, row: usize, col: usize) -> Self {
        Self { start: self.start.wrapping_add(row * self.pitch + col), ..self }
    }

    /// As an operand of a product.
    pub fn matrix(self) -> Matrix<T> {
        Matrix::new(self.start, (self.pitch as isize, 1))
    }

    /// Some elements of the first row.
    ///
    /// # Safety
    /// They are there, and nobody writes to them.
    unsafe fn row<'a>(self, len: usize) -> &'a [T] {
        std::slice::from_raw_parts(self.start, len)
    }
}

/// What products that are taken away need.
pub struct Taken<T> {
    negated: Vec<T>,
    /// Whether a product may use more than one thread.
    pub split: bool,
}

impl<T: Number> Taken<T> {
    /// Without memory yet.
    pub fn new(split: bool) -> Self {
        Self { negated: Vec::new(), split }
    }

    /// A copy of `m x k` elements with their signs changed.
    ///
    /// # Safety
    /// They are there, and nobody writes to them.
    pub unsafe fn negated(&mut self, a: Part<T>, [m, k]: [usize; 2]) -> Matrix<T> {
        // An odd number of runs, as in a panel.
        let pitch = (k.div_ceil(LANES) | 1) * LANES;
        grow(&mut self.negated, m * pitch, T::default());
        for (row, line) in self.negated.chunks_exact_mut(pitch).take(m).enumerate() {
            negate(&mut line[..k], a.at(row, 0).row(k));
        }
        Matrix::new(self.negated.as_mut_ptr(), (pitch as isize, 1))
    }

    /// `c -= a @ b` of sizes `(m, k, n)`, where there is anything to take.
    ///
    /// # Safety
    /// The parts are valid for these sizes, nobody writes to `a` and `b`, and nobody else uses `c`, which shares nothing with them.
    pub unsafe fn product(&mut self, (m, k, n): (usize, usize, usize), [a, b, c]: [Part<T>; 3]) -> Result<()> {
        if m * k * n == 0 {
            return Ok(());
        }
        // SAFETY: the parts are as the caller promises, and the copy, of the smaller side, is nobody else's.
        let (left, right) =
            if n < m { (a.matrix(), self.negated(b, [k, n])) } else { (self.negated(a, [m, k]), b.matrix()) };
        add_product((m, k, n), [left, right, c.matrix()], self.split)
    }
}

vectorize!(negate[T: Number](to: &mut [T], from: &[T]) => negate_body::<T>);

#[inline(always)]
fn negate_body<T: Number>(to: &mut [T], from: &[T]) {
    to.iter_mut().zip(from).for_each(|(to, &value)| *to = T::default() - value);
}

/// Takes from `W` columns of a panel, from column `to` on, multiples of those from column `from` on: from row `first` on.
/// Whole registers are written, since what is written in part cannot be read at once.
///
/// # Safety
/// The machine has the instructions of `V`; the columns are there, `pitch` elements each, a multiple of [`LANES`] that is
/// not less than `rows`.
#[inline(always)]
#[expect(clippy::needless_range_loop, reason = "iterators over registers are not unrolled")]
pub unsafe fn take_columns<V: Lanes<Elem: Number>, const W: usize>(
    cells: *mut V::Elem,
    [pitch, rows]: [usize; 2],
    (from, to, first): (usize, usize, usize),
    factors: &[[V::Elem; W]],
) {
    let mut at = first / V::N * V::N;
    while at < rows {
        // SAFETY: a column has room for whole registers.
        let mut sums = [V::splat(V::Elem::default()); W];
        for w in 0..W {
            sums[w] = V::load(cells.add((to + w) * pitch + at));
        }
        for (i, factors) in factors.iter().enumerate() {
            let column = cells.add((from + i) * pitch + at);
            let column = if at < first { V::load_window(column, (first - at, V::N)) } else { V::load(column) };
            let less = V::splat(V::Elem::default()).sub(column);
            for w in 0..W {
                sums[w] = less.mul_add(V::splat(factors[w]), sums[w]);
            }
        }
        for w in 0..W {
            sums[w].store(cells.add((to + w) * pitch + at));
        }
        at += V::N;
    }
}

/// Divides the elements of a column from row `first` on; those above stay. Whole registers are written, as above.
///
/// # Safety
/// The machine has the instructions of `V`; there is room for whole registers.
#[inline(always)]
pub unsafe fn divide_below<V: Lanes>(column: *mut V::Elem, (first, rows): (usize, usize), divisor: V::Elem) {
    for at in (first / V::N * V::N..rows).step_by(V::N) {
        let above = first.max(at) - at;
        let kept = V::load_window(column.add(at), (0, above));
        let below = V::load_window(column.add(at), (above, V::N));
        below.div(V::splat(divisor)).add(kept).store(column.add(at));
    }
}

/// Sums of products of a column with `W` columns of a panel from column `to` on, from row `first` on.
///
/// # Safety
/// As [`take_columns`].
#[inline(always)]
#[expect(clippy::needless_range_loop, reason = "iterators over registers are not unrolled")]
pub unsafe fn dot_columns<V: Lanes, const W: usize>(
    cells: *const V::Elem,
    [pitch, rows]: [usize; 2],
    (from, to, first): (usize, usize, usize),
) -> [V::Elem; W] {
    // A column has room for whole registers.
    let mut sums = [V::splat(V::Elem::default()); W];
    for at in (first / V::N * V::N..rows).step_by(V::N) {
        let column = cells.add(from * pitch + at);
        let column = if at < first { V::load_window(column, (first - at, V::N)) } else { V::load(column) };
        for w in 0..W {
            sums[w] = column.mul_add(V::load(cells.add((to + w) * pitch + at)), sums[w]);
        }
    }
    let mut found = [V::Elem::default(); W];
    for w in 0..W {
        found[w] = sums[w].sum();
    }
    found
}
