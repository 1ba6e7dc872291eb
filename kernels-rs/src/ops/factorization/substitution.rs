//! Triangles solved by substitution: half of the rows, then the other half, so that nearly all of it is products.

use super::panel::{Part, Taken};
use super::{Each, Number, copied, each, unbounded};
use crate::array::Array;
use crate::error::{Error, Result};
use crate::machine::lanes::{Kernel, Lanes, launch};
use crate::machine::threads::SharedMut;
use crate::ops::parts;

/// Rows that are solved for in registers.
const HIGH: usize = 8;
/// Rows from which on halves are taken.
const BLOCK: usize = 32;
/// Columns of a task, where one matrix is solved for many: tasks need nothing from each other.
const WIDE: usize = 256;

/// Which triangle is meant.
#[derive(Clone, Copy)]
pub struct Side {
    /// The one above the diagonal.
    pub upper: bool,
    /// Its diagonal is 1, whatever stands there.
    pub unit: bool,
}

impl Side {
    /// Nan where an element that is read is not finite.
    fn unbounded<T: Number>(self, a: &[T], n: usize) -> Option<T> {
        let own = usize::from(!self.unit);
        (0..n).find_map(|i| {
            let (start, end) = if self.upper { (i + 1 - own, n) } else { (0, i + own) };
            unbounded(&a[i * n + start..i * n + end])
        })
    }
}

/// What the triangle of `a` (…, n, n) gives `b` (…, n, k) when it is multiplied with it; batches are equal.
pub fn solutions<T: Number>(a: &Array, b: &Array, side: Side) -> Result<Array> {
    let rank = b.rank();
    let (n, k) = (b.shape()[rank - 2], b.shape()[rank - 1]);
    let (left, mut out) = (parts::ready(a, T::DTYPE)?, copied::<T>(b)?);
    if left.numel() == 0 {
        return Ok(out);
    }
    let batch = left.numel() / (n * n);
    let (triangles, solved) = (left.as_slice::<T>().expect("made dense"), Each::<T>::of(&mut out, n * k));
    each(batch, n * n * k.max(1) / 2, &|mut range, split| {
        let mut taken = Taken::new(split);
        range.try_for_each(|index| {
            // SAFETY: the ranges of `each` are disjoint, so nobody else has the matrices of this index.
            let (a, x) = unsafe { (&triangles[index * n * n..(index + 1) * n * n], solved.at(index)) };
            if let Some(nan) = side.unbounded(a, n) {
                x.fill(nan);
                return Ok(());
            }
            if !side.unit && (0..n).any(|i| a[i * n + i] == T::default()) {
                return Err(Error::value("solve_triangular", "a matrix is singular"));
            }
            // SAFETY: two matrices, of which nobody writes to the first, and the second is ours.
            unsafe { substitute_wide(Part::reading(a, n), Part::of(x, k), [n, k], side, &mut taken) }
        })
    })?;
    Ok(out)
}

/// [`substitute`], of some columns at a time where there are many: in parallel where it may be.
///
/// # Safety
/// As [`substitute`].
pub unsafe fn substitute_wide<T: Number>(
    a: Part<T>,
    x: Part<T>,
    [n, k]: [usize; 2],
    side: Side,
    taken: &mut Taken<T>,
) -> Result<()> {
    let (triangle, solved, pitches) = (SharedMut::new(a.start), SharedMut::new(x.start), [a.pitch, x.pitch]);
    let some = |part: usize, taken: &mut Taken<T>| {
        let (from, to) = (part * WIDE, k.min((part + 1) * WIDE));
        let a = Part { start: triangle.ptr(), pitch: pitches[0] };
        let x = Part { start: solved.ptr(), pitch: pitches[1] };
        // SAFETY: the triangle is only read; each part has its own columns, all rows of which are there.
        substitute(a, x.at(0, from), [n, to - from], side, taken)
    };
    // The parts follow from the shape alone, as the order of additions does.
    let parts = k.div_ceil(WIDE);
    if !taken.split || parts < 2 {
        return (0..parts).try_for_each(|part| some(part, taken));
    }
    each(parts, n * n * WIDE / 2, &|mut range, split| {
        let mut taken = Taken::new(split);
        range.try_for_each(|part| some(part, &mut taken))
    })
}

/// Solves a triangle of `n` rows for `x`, in the place of its `n` rows of `k` elements.
///
/// # Safety
/// The parts are valid, share nothing, nobody else uses the second, and nobody writes to the first.
pub unsafe fn substitute<T: Number>(
    a: Part<T>,
    x: Part<T>,
    [n, k]: [usize; 2],
    side: Side,
    taken: &mut Taken<T>,
) -> Result<()> {
    if n <= BLOCK {
        launch(Few { a, x, sizes: [n, k], side });
        return Ok(());
    }
    let half = (n / 2).next_multiple_of(BLOCK);
    let (first, second) = if side.upper { ((half, n), (0, half)) } else { ((0, half), (half, n)) };
    let size = |(start, end): (usize, usize)| end - start;
    // SAFETY: squares of the triangle, what is beside them, and the rows of these squares.
    substitute(a.at(first.0, first.0), x.at(first.0, 0), [size(first), k], side, taken)?;
    let parts = [a.at(second.0, first.0), x.at(first.0, 0), x.at(second.0, 0)];
    taken.product((size(second), size(first), k), parts)?;
    substitute(a.at(second.0, second.0), x.at(second.0, 0), [size(second), k], side, taken)
}

/// The inverse of a lower triangle with a diagonal of ones, in a matrix of zeros.
///
/// # Safety
/// As [`substitute`].
pub unsafe fn invert_unit<T: Number>(a: Part<T>, x: Part<T>, n: usize, taken: &mut Taken<T>) -> Result<()> {
    let side = Side { upper: false, unit: true };
    // SAFETY: as in `substitute`.
    if n <= BLOCK {
        (0..n).for_each(|i| *x.at(i, i).start = T::ONE);
        launch(Few { a, x, sizes: [n, n], side });
        return Ok(());
    }
    let half = (n / 2).next_multiple_of(BLOCK);
    invert_unit(a, x, half, taken)?;
    taken.product((n - half, half, half), [a.at(half, 0), x, x.at(half, 0)])?;
    substitute(a.at(half, half), x.at(half, 0), [n - half, half], side, taken)?;
    invert_unit(a.at(half, half), x.at(half, half), n - half, taken)
}

/// Few rows: some columns of all of them at a time.
struct Few<T> {
    a: Part<T>,
    x: Part<T>,
    sizes: [usize; 2],
    side: Side,
}

impl<T: Number> Kernel<T> for Few<T> {
    #[inline(always)]
    unsafe fn run<V: Lanes<Elem = T>>(self) {
        let [n, k] = self.sizes;
        let mut col = 0;
        while col < k {
            let count = k - col;
            // SAFETY: columns of the rows.
            if count > V::N {
                self.strip::<V, 2>(n, col, count.min(2 * V::N));
            } else {
                self.strip::<V, 1>(n, col, count);
            }
            col += 2 * V::N;
        }
    }
}

impl<T: Number> Few<T> {
    /// `W` registers across.
    #[inline(always)]
    unsafe fn strip<V: Lanes<Elem = T>, const W: usize>(&self, n: usize, col: usize, count: usize) {
        let mut left = n;
        while left > 0 {
            let high = if left >= HIGH { HIGH } else { 1 };
            let first = if self.side.upper { left - high } else { n - left };
            left -= high;
            // SAFETY: rows and columns as the caller promises.
            match (self.side.upper, high) {
                (false, 1) => self.rows::<V, 1, W, false>(n, first, col, count),
                (true, 1) => self.rows::<V, 1, W, true>(n, first, col, count),
                (false, _) => self.rows::<V, HIGH, W, false>(n, first, col, count),
                (true, _) => self.rows::<V, HIGH, W, true>(n, first, col, count),
            }
        }
    }

    /// `R` rows from `first` on: what is solved already is taken from them, then they are solved.
    #[inline(always)]
    #[expect(clippy::needless_range_loop, reason = "iterators over registers are not unrolled")]
    unsafe fn rows<V: Lanes<Elem = T>, const R: usize, const W: usize, const U: bool>(
        &self,
        n: usize,
        first: usize,
        col: usize,
        count: usize,
    ) {
        let lanes = |w: usize| count.saturating_sub(w * V::N).min(V::N);
        // SAFETY: elements of the triangle, and columns of rows of it; lanes past `count` are neither read nor written.
        let mut own = [[V::splat(T::default()); W]; R];
        for i in 0..R {
            for w in 0..W {
                own[i][w] = V::load_some(self.x.at(first + i, col + w * V::N).start, lanes(w));
            }
        }
        let solved = if U { first + R..n } else { 0..first };
        for row in solved {
            let mut less = [V::splat(T::default()); W];
            for w in 0..W {
                less[w] = less[w].sub(V::load_some(self.x.at(row, col + w * V::N).start, lanes(w)));
            }
            for i in 0..R {
                let factor = V::splat(*self.a.at(first + i, row).start);
                for w in 0..W {
                    own[i][w] = less[w].mul_add(factor, own[i][w]);
                }
            }
        }
        for step in 0..R {
            let i = if U { R - 1 - step } else { step };
            for before in 0..step {
                let j = if U { R - 1 - before } else { before };
                let factor = V::splat(T::default() - *self.a.at(first + i, first + j).start);
                for w in 0..W {
                    own[i][w] = own[j][w].mul_add(factor, own[i][w]);
                }
            }
            if !self.side.unit {
                let diagonal = V::splat(*self.a.at(first + i, first + i).start);
                for w in 0..W {
                    own[i][w] = own[i][w].div(diagonal);
                }
            }
        }
        for i in 0..R {
            for w in 0..W {
                own[i][w].store_some(self.x.at(first + i, col + w * V::N).start, lanes(w));
            }
        }
    }
}
