//! Orthonormal columns by reflections, panel after panel. The reflections `1 - tau v vᵀ` of a panel are taken together as
//! `1 - V T Vᵀ`: Schreiber and Van Loan, 1989.

use super::panel::{Corner, Panel, WIDTH, add_product, dot, part, subtract};
use super::{Call, Columns, Each, Epilogue, Matrix, Number, copied, each, fresh, unbounded};
use crate::array::Array;
use crate::error::Result;
use crate::memory::scratch::{collected, filled};
use crate::ops::contraction::multiply;
use crate::vectorize;

/// T of a panel, negative, in rows of [`WIDTH`].
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
        let mut job = Job { panel: Panel::new(m), first: Vec::new(), second: Vec::new(), split };
        range.try_for_each(|index| {
            // SAFETY: each is visited once.
            let (a, other) = unsafe { (works.at(index), others.at(index)) };
            if let Some(nan) = unbounded(a) {
                for part in [a, other] {
                    part.fill(nan);
                }
                return Ok(());
            }
            let triangles = job.reflect(a, [m, n])?;
            if in_place {
                for row in 0..k {
                    other[row * n + row..(row + 1) * n].copy_from_slice(&a[row * n + row..(row + 1) * n]);
                }
                return job.columns(None, a, [m, n, n], &triangles);
            }
            (k..across).for_each(|row| other[row * across + row] = T::ONE);
            job.columns(Some(a), other, [m, n, across], &triangles)?;
            (1..m).for_each(|row| a[row * n..][..row.min(n)].fill(T::default()));
            Ok(())
        })
    })?;
    Ok(if in_place { (work, other) } else { (other, work) })
}

struct Job<T> {
    panel: Panel<T>,
    /// Products of a panel with the rest of a matrix.
    first: Vec<T>,
    second: Vec<T>,
    split: bool,
}

impl<T: Number> Job<T> {
    /// The upper triangle in the place of a matrix, and below it what it is reflected at; returns T of each panel.
    fn reflect(&mut self, a: &mut [T], [m, n]: [usize; 2]) -> Result<Vec<Triangle<T>>> {
        let k = m.min(n);
        let mut triangles = collected((0..k.div_ceil(WIDTH)).map(|_| [T::default(); WIDTH * WIDTH]));
        for (start, triangle) in (0..k).step_by(WIDTH).zip(&mut triangles) {
            let cols = WIDTH.min(k - start);
            let corner = Corner { row: start, col: start, pitch: n };
            self.panel.read(a, corner, [m - start, cols]);
            let (mut heads, mut factors) = ([T::default(); WIDTH], [T::default(); WIDTH]);
            let (cells, pitch) = self.panel.columns();
            steps(cells, pitch, m - start, [&mut heads[..cols], &mut factors[..cols]]);
            self.panel.write(a, corner);
            (0..cols).for_each(|col| a[corner.at(col, col)] = heads[col]);
            self.unit();
            let (cells, pitch) = self.panel.columns();
            together(cells, [pitch, m - start], &factors[..cols], triangle);
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
        let small = if turned { small.turned() } else { small };
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

vectorize!(steps[T: Number](cells: &mut [T], pitch: usize, rows: usize, made: [&mut [T]; 2]) => steps_body::<T>);

/// The columns of a panel: what is reflected at, from 1 on the diagonal down, and the triangle above. What belongs on the
/// diagonal goes into `heads`. Signs and factors are those of LAPACK's `larfg`.
#[inline(always)]
fn steps_body<T: Number>(cells: &mut [T], pitch: usize, rows: usize, [heads, factors]: [&mut [T]; 2]) {
    for j in 0..heads.len() {
        let (before, rest) = cells.split_at_mut((j + 1) * pitch);
        let column = &mut before[j * pitch + j..j * pitch + rows];
        (heads[j], factors[j]) = (column[0], T::default());
        let mut below = length(&column[1..]);
        if below == T::default() {
            column[0] = T::ONE;
            continue;
        }
        let lifts = column[0].size() < T::SHORT && below < T::SHORT;
        if lifts {
            for value in &mut *column {
                *value = *value * T::LIFT;
            }
            below = length(&column[1..]);
        }
        let head = column[0];
        let whole = T::default() - head.hypotenuse(below).with_sign(head);
        let divisor = head - whole;
        column[0] = T::ONE;
        column[1..].iter_mut().for_each(|value| *value = *value / divisor);
        factors[j] = (whole - head) / whole;
        heads[j] = if lifts { whole / T::LIFT } else { whole };
        for other in rest.chunks_exact_mut(pitch) {
            let other = &mut other[j..rows];
            let factor = dot(column, other) * factors[j];
            subtract(other, column, factor);
        }
    }
}

/// The root of the sum of squares.
#[inline(always)]
fn length<T: Number>(values: &[T]) -> T {
    let squares = dot(values, values);
    let unknown = squares.partial_cmp(&squares).is_none();
    if unknown || (squares > T::SQUARES[0] && squares < T::SQUARES[1]) {
        return squares.root();
    }
    let most = values.iter().fold(T::default(), |most, &x| if x.size() > most { x.size() } else { most });
    if most == T::default() {
        return most;
    }
    let squares = values.iter().fold(T::default(), |sum, &x| sum + (x / most) * (x / most));
    squares.root() * most
}

vectorize!(
    together[T: Number](cells: &[T], size: [usize; 2], factors: &[T], triangle: &mut Triangle<T>) => together_body::<T>
);

/// `-T` of reflections, from the dot products of what is reflected at.
#[inline(always)]
fn together_body<T: Number>(cells: &[T], [pitch, rows]: [usize; 2], factors: &[T], triangle: &mut Triangle<T>) {
    for (j, &factor) in factors.iter().enumerate() {
        let column = &cells[j * pitch + j..j * pitch + rows];
        let mut dots = [T::default(); WIDTH];
        for (i, slot) in dots[..j].iter_mut().enumerate() {
            *slot = dot(&cells[i * pitch + j..i * pitch + rows], column);
        }
        triangle[j * WIDTH + j] = T::default() - factor;
        for i in 0..j {
            // -T[i, j] = -tau (-T)[i, ..j] dots: T of those before is there already, with its sign changed.
            let sum = dot(&triangle[i * WIDTH + i..i * WIDTH + j], &dots[i..j]);
            triangle[i * WIDTH + j] = T::default() - factor * sum;
        }
    }
}
