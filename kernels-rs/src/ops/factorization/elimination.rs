//! Elimination with the largest element of a column as its pivot. Half of the columns, then what these do to the other half,
//! then that: Toledo, 1997. So nearly all of it is products of large matrices; a panel is the last of the halves.

use super::panel::{Corner, LANES, Panel, Part, STEP, Taken, WIDTH, divide_below, take_columns};
use super::substitution::{Side, substitute};
use super::{Each, Number, copied, each, fresh, unbounded};
use crate::array::Array;
use crate::error::Result;
use crate::machine::lanes::{Kernel, Lanes, launch};
use crate::memory::scratch::{collected, filled};

/// Columns of a panel that others are taken from at once.
const ABREAST: usize = 4;
/// Rows up to which each column is taken from all behind it by itself: there is nothing to read twice.
const SHORT: usize = 32;

/// The permutations, the lower and the upper triangles.
pub fn factors<T: Number>(x: &Array, batch: usize, [m, n]: [usize; 2]) -> Result<(Array, Array, Array)> {
    let k = m.min(n);
    let mut work = copied::<T>(x)?;
    let mut permutation = fresh::<T>(x, [m, m], true)?;
    // What is worked in becomes the larger triangle.
    let mut other = fresh::<T>(x, [k, k], true)?;
    let [works, permutations, others] =
        [(&mut work, m * n), (&mut permutation, m * m), (&mut other, k * k)].map(|(x, len)| Each::<T>::of(x, len));
    each(batch, m * n * k / 3, &|mut range, split| {
        let mut elimination = Elimination::new([m, n], split);
        range.try_for_each(|index| {
            // SAFETY: each is visited once.
            let (a, moved, other) = unsafe { (works.at(index), permutations.at(index), others.at(index)) };
            if let Some(nan) = unbounded(a) {
                for part in [a, moved, other] {
                    part.fill(nan);
                }
                return Ok(());
            }
            elimination.run(a)?;
            let order = elimination.order();
            order.iter().enumerate().for_each(|(row, &from)| moved[from * m + row] = T::ONE);
            triangles(a, [m, n], other);
            Ok(())
        })
    })?;
    Ok(if m > n { (permutation, work, other) } else { (permutation, other, work) })
}

/// Takes the smaller triangle out of what was worked in.
fn triangles<T: Number>(a: &mut [T], [m, n]: [usize; 2], other: &mut [T]) {
    let k = m.min(n);
    for row in 0..k {
        let (below, above) = a[row * n..][..k].split_at_mut(row);
        let to = &mut other[row * k..][..k];
        if m > n {
            to[row..].copy_from_slice(above);
            above.fill(T::default());
            above[0] = T::ONE;
        } else {
            to[..row].copy_from_slice(below);
            to[row] = T::ONE;
            below.fill(T::default());
        }
    }
}

/// Matrices of one shape, eliminated one after the other.
pub struct Elimination<T> {
    sizes: [usize; 2],
    panel: Panel<T>,
    taken: Taken<T>,
    /// Which row each one was exchanged with.
    pivots: Vec<usize>,
}

impl<T: Number> Elimination<T> {
    /// For matrices of these rows and columns. `split`: more than one thread may help.
    pub fn new([m, n]: [usize; 2], split: bool) -> Self {
        Self { sizes: [m, n], panel: Panel::new(m), taken: Taken::new(split), pivots: filled(0, m.min(n)) }
    }

    /// Both triangles in the place of the matrix.
    pub fn run(&mut self, a: &mut [T]) -> Result<()> {
        let [m, n] = self.sizes;
        let k = m.min(n);
        self.columns(a, 0, k)?;
        self.beside(a, (0, k), (k, n))
    }

    /// Which row of the matrix stands where.
    pub fn order(&self) -> Vec<usize> {
        let mut order = collected(0..self.sizes[0]);
        self.pivots.iter().enumerate().for_each(|(row, &pivot)| order.swap(row, pivot));
        order
    }

    /// Whether an odd number of rows was exchanged.
    pub fn is_odd(&self) -> bool {
        self.pivots.iter().enumerate().filter(|&(row, &pivot)| row != pivot).count() % 2 == 1
    }

    /// Rows in the order of elimination.
    pub fn exchange(&self, rows: &mut [T], len: usize) {
        self.swap(rows, len, (0, self.pivots.len()), (0, len));
    }

    /// Exchanges rows, as the pivots of some columns say, in other columns.
    fn swap(&self, a: &mut [T], pitch: usize, pivots: (usize, usize), columns: (usize, usize)) {
        for (row, &pivot) in self.pivots.iter().enumerate().take(pivots.1).skip(pivots.0) {
            if row != pivot {
                let (head, rest) = a.split_at_mut(pivot * pitch);
                head[row * pitch + columns.0..row * pitch + columns.1].swap_with_slice(&mut rest[columns.0..columns.1]);
            }
        }
    }

    /// Columns from one up to another: of the rows from `start` on, those above are done.
    fn columns(&mut self, a: &mut [T], start: usize, end: usize) -> Result<()> {
        if end - start <= WIDTH {
            self.few(a, start, end);
            return Ok(());
        }
        let middle = start + ((end - start) / 2).next_multiple_of(WIDTH);
        self.columns(a, start, middle)?;
        self.beside(a, (start, middle), (middle, end))?;
        self.columns(a, middle, end)?;
        self.swap(a, self.sizes[1], (middle, end), (start, middle));
        Ok(())
    }

    /// What eliminated columns do to those beside them.
    fn beside(&mut self, a: &mut [T], done: (usize, usize), to: (usize, usize)) -> Result<()> {
        let [m, n] = self.sizes;
        self.swap(a, n, done, to);
        let whole = Part::of(a, n);
        let (depth, wide) = (done.1 - done.0, to.1 - to.0);
        let right = whole.at(done.0, to.0);
        let side = Side { upper: false, unit: true };
        // SAFETY: the square of the columns, and the rows right of it; then what is below both, and what stands there.
        unsafe {
            substitute(whole.at(done.0, done.0), right, [depth, wide], side, &mut self.taken)?;
            let parts = [whole.at(done.1, done.0), right, whole.at(done.1, to.0)];
            self.taken.product((m - done.1, depth, wide), parts)
        }
    }

    /// The columns of a panel.
    fn few(&mut self, a: &mut [T], start: usize, end: usize) {
        let [m, n] = self.sizes;
        let corner = Corner { row: start, col: start, pitch: n };
        self.panel.read(a, corner, [m - start, end - start]);
        let rows = m - start;
        let (cells, pitch) = self.panel.columns();
        let pivots = &mut self.pivots[start..end];
        launch(Steps { cells, pitch, rows, pivots: &mut *pivots });
        for pivot in pivots {
            *pivot += start;
        }
        self.panel.write(a, corner);
    }
}

/// The columns of a panel, some after the other, then what these do to those behind them.
struct Steps<'a, T> {
    cells: &'a mut [T],
    pitch: usize,
    rows: usize,
    pivots: &'a mut [usize],
}

impl<T: Number> Kernel<T> for Steps<'_, T> {
    #[inline(always)]
    unsafe fn run<V: Lanes<Elem = T>>(self) {
        let Self { cells, pitch, rows, pivots } = self;
        let cols = pivots.len();
        let step = if rows <= SHORT { 1 } else { STEP };
        for first in (0..cols).step_by(step) {
            let last = cols.min(first + step);
            for (j, pivot) in pivots.iter_mut().enumerate().take(last).skip(first) {
                // SAFETY: columns of the panel.
                *pivot = {
                    take::<V, 1>(cells, [pitch, rows], (first, j), j);
                    divide::<V>(cells, [pitch, rows], j)
                };
            }
            let mut col = last;
            while col < cols {
                if cols - col >= ABREAST {
                    take::<V, ABREAST>(cells, [pitch, rows], (first, last), col);
                    col += ABREAST;
                } else {
                    take::<V, 1>(cells, [pitch, rows], (first, last), col);
                    col += 1;
                }
            }
        }
    }
}

/// What columns `first..last` do to `W` columns behind them.
///
/// # Safety
/// The machine has the instructions of `V`.
#[inline(always)]
#[expect(clippy::needless_range_loop, reason = "an index of columns, too")]
unsafe fn take<V: Lanes<Elem: Number>, const W: usize>(
    cells: &mut [V::Elem],
    [pitch, rows]: [usize; 2],
    (first, last): (usize, usize),
    col: usize,
) {
    let count = last - first;
    let mut factors = [[V::Elem::default(); W]; STEP];
    for w in 0..W {
        let column = (col + w) * pitch;
        for i in 0..count {
            let mut factor = cells[column + first + i];
            for before in 0..i {
                factor = factor - cells[(first + before) * pitch + first + i] * factors[before][w];
            }
            factors[i][w] = factor;
        }
    }
    assert!((col + W) * pitch <= cells.len() && rows <= pitch);
    // SAFETY: columns of the panel, as asserted.
    take_columns::<V, W>(cells.as_mut_ptr(), [pitch, rows], (first, col, last), &factors[..count]);
    for (i, factors) in factors[..count].iter().enumerate().skip(1) {
        (0..W).for_each(|w| cells[(col + w) * pitch + first + i] = factors[w]);
    }
}

/// Brings the largest element of a column up and divides by it; returns where it was.
///
/// # Safety
/// The machine has the instructions of `V`.
#[inline(always)]
unsafe fn divide<V: Lanes<Elem: Number>>(cells: &mut [V::Elem], [pitch, rows]: [usize; 2], col: usize) -> usize {
    let start = col / V::N * V::N;
    let column = cells[col * pitch..][..pitch].as_ptr();
    // SAFETY: the column has room for whole registers.
    let top = {
        let zero = V::splat(V::Elem::default());
        let mut most = zero;
        for at in (start..rows).step_by(V::N) {
            let value = V::load_window(column.add(at), (col.max(at) - at, V::N.min(rows - at)));
            most = most.max(value.max(zero.sub(value)));
        }
        most.peak()
    };
    let pivot = col + place(&cells[col * pitch + col..col * pitch + rows], top);
    if pivot != col {
        cells.chunks_exact_mut(pitch).for_each(|column| column.swap(col, pivot));
    }
    let divisor = cells[col * pitch + col];
    if divisor != V::Elem::default() {
        let column = cells[col * pitch..][..pitch].as_mut_ptr();
        divide_below::<V>(column, (col + 1, rows), divisor);
    }
    pivot
}

/// Where the first element of a size is.
#[inline(always)]
fn place<T: Number>(values: &[T], size: T) -> usize {
    let (runs, _) = values.as_chunks::<LANES>();
    let here = |run: &[T; LANES]| run.iter().fold(false, |here, value| here | (value.size() == size));
    let first = runs.iter().position(here).unwrap_or(runs.len()) * LANES;
    values[first..].iter().position(|value| value.size() == size).map_or(0, |place| first + place)
}
