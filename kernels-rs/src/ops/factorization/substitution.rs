//! Triangles solved by substitution, some rows at a time: what solved rows do to the next ones is a product.

use super::panel::{Corner, add_product, part};
use super::{Each, Number, copied, each, unbounded};
use crate::array::Array;
use crate::error::{Error, Result};
use crate::memory::scratch::filled;
use crate::ops::contraction::Matrix;
use crate::vectorize;

/// Rows that are solved one after the other.
const BLOCK: usize = 32;

/// What the triangle of `a` (…, n, n) gives `b` (…, n, k) when it is multiplied with it; batches are equal.
pub fn solutions<T: Number>(a: &Array, b: &Array, upper: bool, unit: bool) -> Result<Array> {
    let rank = b.rank();
    let (n, k) = (b.shape()[rank - 2], b.shape()[rank - 1]);
    let (mut left, mut out) = (copied::<T>(a)?, copied::<T>(b)?);
    if left.numel() == 0 {
        return Ok(out);
    }
    let batch = left.numel() / (n * n);
    let (triangles, solved) = (Each::<T>::of(&mut left, n * n), Each::<T>::of(&mut out, n * k));
    each(batch, n * n * k.max(1) / 2, &|mut range, split| {
        let mut block = filled(T::default(), BLOCK * n);
        range.try_for_each(|index| {
            // SAFETY: the ranges of `each` are disjoint, so nobody else has the matrices of this index.
            let (a, x) = unsafe { (triangles.at(index), solved.at(index)) };
            if let Some(nan) = unbounded(a) {
                x.fill(nan);
                return Ok(());
            }
            if !unit && (0..n).any(|i| a[i * n + i] == T::default()) {
                return Err(Error::value("solve_triangular", "a matrix is singular"));
            }
            substitute(a, x, [n, k], (upper, unit), &mut block, split)
        })
    })?;
    Ok(out)
}

fn substitute<T: Number>(
    a: &[T],
    x: &mut [T],
    [n, k]: [usize; 2],
    (upper, unit): (bool, bool),
    block: &mut [T],
    split: bool,
) -> Result<()> {
    for step in 0..n.div_ceil(BLOCK) {
        let high = BLOCK.min(n - step * BLOCK);
        let first = if upper { n - step * BLOCK - high } else { step * BLOCK };
        // Columns of what is solved already.
        let done = if upper { first + high..n } else { 0..first };
        let wide = done.len();
        for row in 0..high {
            let line = &a[(first + row) * n..][done.clone()];
            block[row * wide..(row + 1) * wide]
                .iter_mut()
                .zip(line)
                .for_each(|(to, &value)| *to = T::default() - value);
        }
        let whole = x.as_mut_ptr();
        let rows = |row: usize| part(whole, Corner { row, col: 0, pitch: k });
        let factors = Matrix::new(block.as_mut_ptr(), (wide as isize, 1));
        // SAFETY: rows of the copy, rows that are solved, and those of this block, which are others.
        unsafe { add_product((high, wide, k), [factors, rows(done.start), rows(first)], split)? };
        triangle(&a[first * n + first..], &mut x[first * k..(first + high) * k], [n, k], (upper, unit));
    }
    Ok(())
}

vectorize!(triangle[T: Number](a: &[T], x: &mut [T], sizes: [usize; 2], how: (bool, bool)) => triangle_body::<T>);

/// Solves the rows of a block: `a` starts at its corner and has `n` columns, `x` has rows of `k`.
#[inline(always)]
fn triangle_body<T: Number>(a: &[T], x: &mut [T], [n, k]: [usize; 2], (upper, unit): (bool, bool)) {
    let high = x.len() / k.max(1);
    for step in 0..high {
        let row = if upper { high - 1 - step } else { step };
        let (front, back) = x.split_at_mut(if upper { (row + 1) * k } else { row * k });
        let (own, solved) = if upper { (&mut front[row * k..], &*back) } else { (&mut back[..k], &*front) };
        let from = if upper { row + 1 } else { 0 };
        for (at, other) in solved.chunks_exact(k).enumerate() {
            let factor = a[row * n + from + at];
            own.iter_mut().zip(other).for_each(|(own, &other)| *own = *own - factor * other);
        }
        if !unit {
            let diagonal = a[row * n + row];
            for own in own.iter_mut() {
                *own = *own / diagonal;
            }
        }
    }
}
