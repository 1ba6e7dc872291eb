//! Orthonormal columns by reflections, panel after panel. The reflections `1 - tau v vᵀ` of a panel are taken together as
//! `1 - V T Vᵀ`: Schreiber and Van Loan, 1989.

use super::panel::{Corner, LANES, Panel, WIDTH, add_product, divide_below, dot_columns, part, take_columns};
use super::{Call, Columns, Each, Epilogue, Matrix, Number, copied, each, fresh, unbounded};
use crate::array::Array;
use crate::array::copy::put;
use crate::error::Result;
use crate::machine::lanes::{Kernel, Lanes, launch};
use crate::memory::scratch::{filled, grow};
use crate::ops::contraction::multiply;
use crate::ops::elementwise::convert::cast;
use crate::ops::parts;

/// Columns of a panel that are reflected at once.
const ABREAST: usize = 4;

/// Rows of one panel up to which its reflections are applied one by one: products would take longer to begin.
const FEW: usize = 64;

/// T of a panel, negative, in columns of [`WIDTH`].
type Triangle<T> = [T; WIDTH * WIDTH];

/// Orthonormal columns, and the upper triangles.
pub fn factors<T: Number>(x: &Array, batch: usize, [m, n]: [usize; 2], columns: Columns) -> Result<(Array, Array)> {
    let k = m.min(n);
    let across = if columns == Columns::Complete { m } else { k };
    let mut work = copied::<T>(x)?;
    // What is worked in becomes the factor of its shape.
    let in_place = across == n && m > n;
    let mut other = fresh::<T>(x, if in_place { [k, n] } else { [m, across] }, true)?;
    let (works, others) =
        (Each::<T>::of(&mut work, m * n), Each::<T>::of(&mut other, if in_place { k * n } else { m * across }));
    each(batch, 2 * m * n * k, &|mut range, split| {
        let mut job = Job::new(m, split);
        range.try_for_each(|index| {
            // SAFETY: each is visited once.
            let (a, other) = unsafe { (works.at(index), others.at(index)) };
            if let Some(nan) = unbounded(a) {
                for part in [a, other] {
                    part.fill(nan);
                }
                return Ok(());
            }
            let few = across == n && n <= WIDTH && m <= FEW;
            let triangles = if few { Vec::new() } else { job.reflect(a, [m, n], k)? };
            if few {
                job.reflect_few(a, [m, n]);
            }
            if in_place {
                for row in 0..k {
                    other[row * n + row..(row + 1) * n].copy_from_slice(&a[row * n + row..(row + 1) * n]);
                }
            }
            if few {
                job.panel.write(if in_place { &mut *a } else { other }, Corner { row: 0, col: 0, pitch: n });
            } else if in_place {
                job.columns(None, a, [m, n, n], &triangles)?;
                job.triangles = triangles;
            } else {
                (k..across).for_each(|row| other[row * across + row] = T::ONE);
                job.columns(Some(a), other, [m, n, across], &triangles)?;
                job.triangles = triangles;
            }
            if !in_place {
                (1..m).for_each(|row| a[row * n..][..row.min(n)].fill(T::default()));
            }
            Ok(())
        })
    })?;
    Ok(if in_place { (work, other) } else { (other, work) })
}

/// The upper triangles of matrices (…, m, n), where m is no less than n, and what their reflections make of the first n rows
/// of others (…, m, k), which stand beside them.
pub fn beside<T: Number>(x1: &Array, x2: &Array, batch: usize, [m, n, k]: [usize; 3]) -> Result<(Array, Array)> {
    let (last, wide) = (x1.rank() - 1, n + k);
    let mut work = fresh::<T>(x1, [m, wide], false)?;
    for (x, columns) in [(x1, 0..n), (x2, n..wide)].into_iter().filter(|(x, _)| x.numel() > 0) {
        // SAFETY: nobody else has seen what is worked in.
        unsafe { put(&cast(x, T::DTYPE)?, &parts::narrowed(&work, last, &columns)?) };
    }
    let (mut triangle, mut rest) = (fresh::<T>(x1, [n, n], true)?, fresh::<T>(x1, [n, k], false)?);
    let [works, triangles, rests] =
        [(&mut work, m * wide), (&mut triangle, n * n), (&mut rest, n * k)].map(|(x, len)| Each::<T>::of(x, len));
    each(batch, 2 * m * n * wide, &|mut range, split| {
        let mut job = Job::new(m, split);
        range.try_for_each(|index| {
            // SAFETY: each is visited once.
            let (a, triangle, rest) = unsafe { (works.at(index), triangles.at(index), rests.at(index)) };
            if let Some(nan) = a.chunks_exact(wide.max(1)).find_map(|row| unbounded(&row[..n])) {
                triangle.fill(nan);
                rest.fill(nan);
                return Ok(());
            }
            job.triangles = job.reflect(a, [m, wide], n)?;
            for (row, line) in a.chunks_exact(wide.max(1)).take(n).enumerate() {
                triangle[row * n + row..(row + 1) * n].copy_from_slice(&line[row..n]);
                rest[row * k..(row + 1) * k].copy_from_slice(&line[n..]);
            }
            Ok(())
        })
    })?;
    Ok((triangle, rest))
}

struct Job<T> {
    panel: Panel<T>,
    /// Products of a panel with the rest of a matrix.
    first: Vec<T>,
    second: Vec<T>,
    /// Of the panels of one matrix, kept for the next.
    triangles: Vec<Triangle<T>>,
    split: bool,
}

impl<T: Number> Job<T> {
    fn new(rows: usize, split: bool) -> Self {
        Self { panel: Panel::new(rows), first: Vec::new(), second: Vec::new(), triangles: Vec::new(), split }
    }

    /// The upper triangle in the place of one panel, and orthonormal columns in the panel.
    fn reflect_few(&mut self, a: &mut [T], [m, n]: [usize; 2]) {
        let factors = self.steps(a, Corner { row: 0, col: 0, pitch: n }, [m, n]);
        let (cells, pitch) = self.panel.columns();
        launch(Ones { cells, pitch, rows: m, factors: &factors[..n] });
    }

    /// Reflects the columns of a panel; keeps what they are reflected at, and returns the factors.
    fn steps(&mut self, a: &mut [T], corner: Corner, [rows, cols]: [usize; 2]) -> [T; WIDTH] {
        self.panel.read(a, corner, [rows, cols]);
        let (mut heads, mut factors) = ([T::default(); WIDTH], [T::default(); WIDTH]);
        let (cells, pitch) = self.panel.columns();
        launch(Steps { cells, pitch, rows, heads: &mut heads[..cols], factors: &mut factors[..cols] });
        self.panel.write(a, corner);
        (0..cols).for_each(|col| a[corner.at(col, col)] = heads[col]);
        self.unit();
        factors
    }

    /// The upper triangle in the place of the first `k` columns of a matrix, and below it what it is reflected at; those behind
    /// are reflected too. Returns T of each panel.
    fn reflect(&mut self, a: &mut [T], [m, n]: [usize; 2], k: usize) -> Result<Vec<Triangle<T>>> {
        let mut triangles = std::mem::take(&mut self.triangles);
        grow(&mut triangles, k.div_ceil(WIDTH), [T::default(); WIDTH * WIDTH]);
        for (start, triangle) in (0..k).step_by(WIDTH).zip(&mut triangles) {
            let cols = WIDTH.min(k - start);
            let corner = Corner { row: start, col: start, pitch: n };
            let rows = m - start;
            let factors = self.steps(a, corner, [rows, cols]);
            let (cells, pitch) = self.panel.columns();
            launch(Together { cells, pitch, rows, factors: &factors[..cols], triangle });
            let behind = Corner { col: start + cols, ..corner };
            self.apply(triangle, true, a, behind, n - start - cols)?;
        }
        Ok(triangles)
    }

    /// The columns that the reflections make of those of a unit matrix, which stands in `q` from column `n` on. What is
    /// reflected at lies in `at`, or in `q` itself.
    fn columns(
        &mut self,
        at: Option<&[T]>,
        q: &mut [T],
        [m, n, across]: [usize; 3],
        triangles: &[Triangle<T>],
    ) -> Result<()> {
        let k = m.min(n);
        for (start, triangle) in (0..k).step_by(WIDTH).zip(triangles).rev() {
            let cols = WIDTH.min(k - start);
            self.panel.read(at.unwrap_or(q), Corner { row: start, col: start, pitch: n }, [m - start, cols]);
            self.unit();
            let corner = Corner { row: start, col: start, pitch: across };
            for row in 0..m {
                let end = if (start..start + cols).contains(&row) { across } else { start + cols };
                q[row * across + start..row * across + end].fill(T::default());
            }
            (0..cols).for_each(|col| q[corner.at(col, col)] = T::ONE);
            self.apply(triangle, false, q, corner, across - start)?;
        }
        Ok(())
    }

    /// Ones on the diagonal of the panel and zeros above.
    fn unit(&mut self) {
        for col in 0..self.panel.cols {
            let column = self.panel.column(col);
            column[..col].fill(T::default());
            column[col] = T::ONE;
        }
    }

    /// Reflects columns: `C += V (-T or -Tᵀ) Vᵀ C`.
    fn apply(&mut self, triangle: &Triangle<T>, turned: bool, c: &mut [T], corner: Corner, wide: usize) -> Result<()> {
        let (rows, cols) = (self.panel.rows, self.panel.cols);
        if wide == 0 {
            return Ok(());
        }
        for each in [&mut self.first, &mut self.second] {
            if each.len() < cols * wide {
                *each = filled(T::default(), cols * wide);
            }
        }
        let dense = |x: &mut [T]| Matrix::new(x.as_mut_ptr(), (wide as isize, 1));
        let small = Matrix::new(triangle.as_ptr().cast_mut(), (WIDTH as isize, 1));
        let small = if turned { small } else { small.turned() };
        let (first, second) = (dense(&mut self.first), dense(&mut self.second));
        let (end, c) = (Epilogue::default(), part(c.as_mut_ptr(), corner));
        let across = Call { size: (cols, rows, wide), a: self.panel.right(0), b: c, c: first, end };
        let between = Call { size: (cols, cols, wide), a: small, b: first, c: second, end };
        // SAFETY: the panel, the triangle, the part and the two products have these sizes, and share nothing.
        unsafe {
            multiply(&across, self.split, None)?;
            multiply(&between, self.split, None)?;
            add_product((rows, cols, wide), [self.panel.left(0), second, c], self.split)
        }
    }
}

/// The columns of a panel: what is reflected at, from 1 on the diagonal down, and the triangle above. What belongs on the
/// diagonal goes into `heads`. Signs and factors are those of LAPACK's `larfg`.
struct Steps<'a, T> {
    cells: &'a mut [T],
    pitch: usize,
    rows: usize,
    heads: &'a mut [T],
    factors: &'a mut [T],
}

impl<T: Number> Kernel<T> for Steps<'_, T> {
    #[inline(always)]
    unsafe fn run<V: Lanes<Elem = T>>(self) {
        let Self { cells, pitch, rows, heads, factors } = self;
        let cols = heads.len();
        assert!(cols * pitch <= cells.len() && rows.next_multiple_of(LANES) <= pitch);
        for (j, (head, factor)) in heads.iter_mut().zip(factors).enumerate() {
            // SAFETY: columns of the panel, as asserted.
            (*head, *factor) = reflected::<V>(&mut cells[j * pitch..][..pitch], j, rows);
            reflect_behind::<V>(cells, [pitch, rows], (j, cols), *factor);
        }
    }
}

/// The columns of a panel that the reflections make of those of a unit matrix, in the place of what is reflected at.
struct Ones<'a, T> {
    cells: &'a mut [T],
    pitch: usize,
    rows: usize,
    factors: &'a [T],
}

impl<T: Number> Kernel<T> for Ones<'_, T> {
    #[inline(always)]
    unsafe fn run<V: Lanes<Elem = T>>(self) {
        let Self { cells, pitch, rows, factors } = self;
        assert!(factors.len() * pitch <= cells.len() && rows.next_multiple_of(LANES) <= pitch);
        for (j, &factor) in factors.iter().enumerate().rev() {
            // SAFETY: columns of the panel, as asserted.
            reflect_behind::<V>(cells, [pitch, rows], (j, factors.len()), factor);
            let column = &mut cells[j * pitch..][..rows];
            column[j..].iter_mut().for_each(|value| *value = T::default() - factor * *value);
            column[j] = T::ONE - factor;
        }
    }
}

/// Reflects the columns behind column `j` at it.
///
/// # Safety
/// The machine has the instructions of `V`; the columns are there.
#[inline(always)]
unsafe fn reflect_behind<V: Lanes<Elem: Number>>(
    cells: &mut [V::Elem],
    size: [usize; 2],
    (j, cols): (usize, usize),
    factor: V::Elem,
) {
    if factor == <V::Elem>::default() {
        return;
    }
    let mut col = j + 1;
    while col < cols {
        if cols - col >= ABREAST {
            reflect_columns::<V, ABREAST>(cells, size, (j, col), factor);
            col += ABREAST;
        } else {
            reflect_columns::<V, 1>(cells, size, (j, col), factor);
            col += 1;
        }
    }
}

/// Makes what is reflected at of a column from its row `j` on; returns what the reflection makes of that row, and its factor.
///
/// # Safety
/// The machine has the instructions of `V`.
#[inline(always)]
unsafe fn reflected<V: Lanes<Elem: Number>>(column: &mut [V::Elem], j: usize, rows: usize) -> (V::Elem, V::Elem) {
    type Of<V> = <V as Lanes>::Elem;
    let zero = Of::<V>::default();
    // SAFETY: a whole column.
    let mut below = length::<V>(column, (j + 1, rows));
    if below == zero {
        return (std::mem::replace(&mut column[j], Of::<V>::ONE), zero);
    }
    let lifts = column[j].size() < Of::<V>::SHORT && below < Of::<V>::SHORT;
    if lifts {
        for value in &mut column[j..rows] {
            *value = *value * Of::<V>::LIFT;
        }
        below = length::<V>(column, (j + 1, rows));
    }
    let head = column[j];
    let whole = zero - head.hypotenuse(below).with_sign(head);
    divide_below::<V>(column.as_mut_ptr(), (j + 1, rows), head - whole);
    column[j] = Of::<V>::ONE;
    (if lifts { whole / Of::<V>::LIFT } else { whole }, (whole - head) / whole)
}

/// Reflects `W` columns from column `to` on at column `from`.
///
/// # Safety
/// The machine has the instructions of `V`; the columns are there.
#[inline(always)]
unsafe fn reflect_columns<V: Lanes<Elem: Number>, const W: usize>(
    cells: &mut [V::Elem],
    size: [usize; 2],
    (from, to): (usize, usize),
    factor: V::Elem,
) {
    let sums = dot_columns::<V, W>(cells.as_ptr(), size, (from, to, from));
    take_columns::<V, W>(cells.as_mut_ptr(), size, (from, to, from), &[sums.map(|sum| sum * factor)]);
}

/// The root of the sum of squares of some rows of a column.
///
/// # Safety
/// The machine has the instructions of `V`.
#[inline(always)]
unsafe fn length<V: Lanes<Elem: Number>>(column: &[V::Elem], (first, rows): (usize, usize)) -> V::Elem {
    type Of<V> = <V as Lanes>::Elem;
    // SAFETY: one column with itself, with room for whole registers.
    let [squares] = dot_columns::<V, 1>(column.as_ptr(), [column.len(), rows], (0, 0, first));
    let unknown = squares.partial_cmp(&squares).is_none();
    if unknown || (squares > Of::<V>::SQUARES[0] && squares < Of::<V>::SQUARES[1]) {
        return squares.root();
    }
    let values = &column[first.min(rows)..rows];
    let most = values.iter().fold(Of::<V>::default(), |most, &x| if x.size() > most { x.size() } else { most });
    if most == Of::<V>::default() {
        return most;
    }
    let squares = values.iter().fold(Of::<V>::default(), |sum, &x| sum + (x / most) * (x / most));
    squares.root() * most
}

/// `-T` of reflections in columns of [`WIDTH`], from the dot products of what is reflected at.
struct Together<'a, T> {
    cells: &'a [T],
    pitch: usize,
    rows: usize,
    factors: &'a [T],
    triangle: &'a mut Triangle<T>,
}

impl<T: Number> Kernel<T> for Together<'_, T> {
    #[inline(always)]
    unsafe fn run<V: Lanes<Elem = T>>(self) {
        let Self { cells, pitch, rows, factors, triangle } = self;
        assert!(factors.len() * pitch <= cells.len() && rows.next_multiple_of(LANES) <= pitch);
        for (j, &factor) in factors.iter().enumerate() {
            let mut sums = [T::default(); WIDTH];
            let mut i = 0;
            while i < j {
                // SAFETY: columns of the panel, as asserted.
                let count = if j - i >= ABREAST {
                    let dots = dot_columns::<V, ABREAST>(cells.as_ptr(), [pitch, rows], (j, i, j));
                    add_columns(&mut sums, triangle, i, &dots);
                    ABREAST
                } else {
                    let dots = dot_columns::<V, 1>(cells.as_ptr(), [pitch, rows], (j, i, j));
                    add_columns(&mut sums, triangle, i, &dots);
                    1
                };
                i += count;
            }
            // -T[i, j] = -tau (-T)[i, ..j] dots: T of those before is there already, with its sign changed.
            for sum in &mut sums {
                *sum = T::default() - factor * *sum;
            }
            sums[j] = T::default() - factor;
            triangle[j * WIDTH..(j + 1) * WIDTH].copy_from_slice(&sums);
        }
    }
}

/// Adds multiples of columns of a triangle.
#[inline(always)]
fn add_columns<T: Number>(sums: &mut [T; WIDTH], triangle: &Triangle<T>, first: usize, factors: &[T]) {
    for (column, &factor) in triangle[first * WIDTH..].chunks_exact(WIDTH).zip(factors) {
        sums.iter_mut().zip(column).for_each(|(sum, &value)| *sum = *sum + value * factor);
    }
}
