//! What elimination solves: systems, inverses and determinants.

use super::elimination::Elimination;
use super::panel::{Part, Taken};
use super::substitution::{Side, invert_unit, substitute_wide};
use super::{Each, Number, copied, each, fresh, unbounded};
use crate::array::Array;
use crate::dtype::Element;
use crate::error::{Error, Result};
use crate::memory::scratch::filled;

const LOWER: Side = Side { upper: false, unit: true };
const UPPER: Side = Side { upper: true, unit: false };

/// What gives `b` (…, n, k) when `a` (…, n, n) is multiplied with it; batches are equal.
pub fn solutions<T: Number>(a: &Array, b: &Array) -> Result<Array> {
    let rank = b.rank();
    let (n, k) = (b.shape()[rank - 2], b.shape()[rank - 1]);
    let (mut left, mut out) = (copied::<T>(a)?, copied::<T>(b)?);
    if left.numel() == 0 {
        return Ok(out);
    }
    let batch = left.numel() / (n * n);
    let (matrices, solved) = (Each::<T>::of(&mut left, n * n), Each::<T>::of(&mut out, n * k));
    each(batch, n * n * (n / 3 + k), &|mut range, split| {
        let (mut elimination, mut taken) = (Elimination::new([n, n], split), Taken::new(split));
        range.try_for_each(|index| {
            // SAFETY: the ranges of `each` are disjoint, so nobody else has the matrices of this index.
            let (a, x) = unsafe { (matrices.at(index), solved.at(index)) };
            if let Some(nan) = unbounded(a) {
                x.fill(nan);
                return Ok(());
            }
            elimination.run(a)?;
            if pivots(a, n).any(|pivot| pivot == T::default()) {
                return Err(Error::value("solve", "a matrix is singular\nhint: px.linalg.lstsq(x1, x2)"));
            }
            elimination.exchange(x, k);
            let (a, x) = (Part::of(a, n), Part::of(x, k));
            // SAFETY: two matrices of their own.
            unsafe {
                substitute_wide(a, x, [n, k], LOWER, &mut taken)?;
                substitute_wide(a, x, [n, k], UPPER, &mut taken)
            }
        })
    })?;
    Ok(out)
}

/// The inverses of matrices of `n` rows.
pub fn inverses<T: Number>(x: &Array, batch: usize, n: usize) -> Result<Array> {
    let (mut work, mut out) = (copied::<T>(x)?, fresh::<T>(x, [n, n], true)?);
    let (matrices, inverses) = (Each::<T>::of(&mut work, n * n), Each::<T>::of(&mut out, n * n));
    each(batch, n * n * n, &|mut range, split| {
        let (mut elimination, mut taken) = (Elimination::new([n, n], split), Taken::new(split));
        let mut line = filled(T::default(), n);
        range.try_for_each(|index| {
            // SAFETY: the ranges of `each` are disjoint, so nobody else has the matrices of this index.
            let (a, x) = unsafe { (matrices.at(index), inverses.at(index)) };
            if let Some(nan) = unbounded(a) {
                x.fill(nan);
                return Ok(());
            }
            elimination.run(a)?;
            if pivots(a, n).any(|pivot| pivot == T::default()) {
                return Err(Error::value("inv", "a matrix is singular\nhint: px.linalg.pinv(x)"));
            }
            let (a, whole) = (Part::of(a, n), Part::of(x, n));
            // SAFETY: two matrices of their own, of which the second is zeros.
            unsafe {
                invert_unit(a, whole, n, &mut taken)?;
                substitute_wide(a, whole, [n, n], UPPER, &mut taken)?;
            }
            let order = elimination.order();
            for row in x.chunks_exact_mut(n.max(1)) {
                line.copy_from_slice(row);
                order.iter().zip(&line).for_each(|(&to, &value)| row[to] = value);
            }
            Ok(())
        })
    })?;
    Ok(out)
}

/// Two numbers for each matrix of `n` rows, made of its pivots and whether an odd number of rows was exchanged.
pub fn determinants<T: Number + Into<f64>>(
    x: &Array,
    batch: usize,
    n: usize,
    number: &(dyn Fn(&[f64], bool) -> [f64; 2] + Sync),
) -> Result<[Array; 2]> {
    let mut work = copied::<T>(x)?;
    let shape = &x.shape()[..x.rank() - 2];
    let mut found = [Array::uninit(f64::DTYPE, shape)?, Array::uninit(f64::DTYPE, shape)?];
    let [first, second] = found.each_mut().map(|x| Each::<f64>::of(x, 1));
    let matrices = Each::<T>::of(&mut work, n * n);
    each(batch, n * n * n / 3, &|mut range, split| {
        let mut elimination = Elimination::new([n, n], split);
        let mut diagonal = filled(0.0, n);
        range.try_for_each(|index| {
            // SAFETY: the ranges of `each` are disjoint, so nobody else has what belongs to this index.
            let (a, first, second) = unsafe { (matrices.at(index), first.at(index), second.at(index)) };
            let numbers = if unbounded(a).is_some() {
                [f64::NAN; 2]
            } else {
                elimination.run(a)?;
                diagonal.iter_mut().zip(pivots(a, n)).for_each(|(to, pivot)| *to = pivot.into());
                number(&diagonal, elimination.is_odd())
            };
            [first[0], second[0]] = numbers;
            Ok(())
        })
    })?;
    Ok(found)
}

/// The diagonal of a matrix of `n` columns.
fn pivots<T: Number>(a: &[T], n: usize) -> impl Iterator<Item = T> + '_ {
    a.iter().step_by(n + 1).copied()
}

#[cfg(test)]
mod tests;
