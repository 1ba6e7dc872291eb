//! Places in an ascending line, by bisection without branches: several are looked for in turns, so that none waits for the
//! memory of another.

use crate::array::Array;
use crate::dtype::{DType, Element};
use crate::error::{Error, Result};
use crate::machine::threads::{self, SharedMut};
use crate::ops::elementwise::convert::cast;
use crate::{dispatch, vectorize};

/// Places that are looked for in turns.
const TURNS: usize = 8;
/// Places that are worth a task of their own.
const GRAIN: usize = 1 << 12;

/// Where each element of `values` belongs in the ascending vector `line`: before its equals, or behind them (`right`). nan is
/// the largest number.
pub fn searchsorted(line: &Array, values: &Array, right: bool) -> Result<Array> {
    if line.rank() != 1 || line.dtype() != values.dtype() || line.dtype() == DType::Bool {
        return Err(Error::Rejected("numbers of one type are looked for in a vector"));
    }
    let common = line.dtype().common();
    let (line, values) = (cast(line, common)?, cast(values, common)?);
    let (line, values) = (line.contiguous()?, values.contiguous()?);
    let mut out = Array::uninit(DType::I64, values.shape())?;
    dispatch!(common common, T => typed::<T>(&line, &values, &mut out, right), else unreachable!("looked at above"));
    Ok(out)
}

fn typed<T: Sought>(line: &Array, values: &Array, out: &mut Array, right: bool) {
    let (line, values) = (line.as_slice::<T>().expect("dense"), values.as_slice::<T>().expect("dense"));
    let to = SharedMut::new(out.mut_ptr::<i64>());
    threads::parallel(values.len().div_ceil(GRAIN), &|task| {
        let part = task * GRAIN..values.len().min((task + 1) * GRAIN);
        // SAFETY: each task has its own run of the fresh result.
        places(line, &values[part.clone()], unsafe { to.slice(part) }, right);
    });
}

/// What is looked for.
trait Sought: Element + PartialOrd {}
impl<T: Element + PartialOrd> Sought for T {}

vectorize!(places[T: Sought](line: &[T], values: &[T], out: &mut [i64], right: bool) => places_body::<T>, wide T::WIDE, fast T::FAST);

#[inline(always)]
fn places_body<T: Sought>(line: &[T], values: &[T], out: &mut [i64], right: bool) {
    for (values, out) in values.chunks(TURNS).zip(out.chunks_mut(TURNS)) {
        let mut looked_for = [values[0]; TURNS];
        looked_for[..values.len()].copy_from_slice(values);
        let found =
            if right { bisect(line, &looked_for, before_right) } else { bisect(line, &looked_for, before_left) };
        out.iter_mut().zip(found).for_each(|(out, place)| *out = place as i64);
    }
}

#[inline(always)]
fn bisect<T: Sought>(line: &[T], values: &[T; TURNS], before: impl Fn(T, T) -> bool) -> [usize; TURNS] {
    let mut first = [0; TURNS];
    let mut left = line.len();
    while left > 0 {
        // The place is one of `left + 1` from `first` on.
        let half = left.div_ceil(2);
        for (first, &value) in first.iter_mut().zip(values) {
            // A branch would be guessed wrong half of the time.
            *first += std::hint::select_unpredictable(before(line[*first + half - 1], value), half, 0);
        }
        left -= half;
    }
    first
}

/// Whether an element of the line stands before the leftmost place of a value. Only nan differs from itself.
#[inline(always)]
#[expect(clippy::eq_op, reason = "only nan differs from itself")]
fn before_left<T: Sought>(element: T, value: T) -> bool {
    (element < value) | ((value != value) & (element == element))
}

/// The same of the rightmost place.
#[inline(always)]
#[expect(clippy::eq_op, reason = "only nan differs from itself")]
fn before_right<T: Sought>(element: T, value: T) -> bool {
    (element <= value) | (value != value)
}

#[cfg(test)]
mod tests;
