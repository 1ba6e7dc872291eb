//! Counts of whole numbers, histograms, and quantiles.

mod histogram;
mod quantile;

pub use histogram::histogram;
pub use quantile::{Between, quantile};

use crate::array::Array;
use crate::array::reader::Reader;
use crate::dispatch;
use crate::dtype::{DType, Element};
use crate::error::{Error, Result};
use crate::memory::scratch::filled;

/// Counters that are used in turns, so that equal neighbors do not wait for one another.
const TURNS: usize = 4;
/// Counts up to which that pays: all counters stay in the first-level cache.
const FEW: usize = 1 << 10;

/// Numbers that are read at once.
const PART: usize = 1 << 12;

/// How often each number from 0 on occurs, at least `minlength` counts, as `int64`.
pub fn bincount(x: &Array, minlength: usize) -> Result<Array> {
    if x.rank() != 1 {
        return Err(Error::Rejected("a vector has counts"));
    }
    dispatch!(int x.dtype(), T => counted::<T>(x, minlength), else Err(Error::Rejected("integers have counts")))
}

fn counted<T: Element + Ord + Into<i128>>(x: &Array, minlength: usize) -> Result<Array> {
    let (mut least, mut most) = (0, -1);
    each_part(x, |values: &[T]| {
        let (Some(&low), Some(&high)) = (values.iter().min(), values.iter().max()) else { return };
        (least, most) = (low.into().min(least), high.into().max(most));
    });
    if least < 0 {
        let text =
            format!("a negative number has no count: got {least}, expected 0 or more\nhint: px.unique_counts(x)");
        return Err(Error::value("bincount", text));
    }
    let beyond = |_| Error::OutOfMemory(usize::MAX);
    let size = minlength.max(usize::try_from(most + 1).map_err(beyond)?);
    let mut out = Array::zeros(DType::I64, &[size])?;
    let counts = out.as_mut_slice::<i64>();
    if size > FEW {
        each_part(x, |values: &[T]| values.iter().for_each(|&value| counts[place(value)] += 1));
        return Ok(out);
    }
    let mut turns = filled([0_i64; FEW], TURNS);
    each_part(x, |values: &[T]| {
        let (fours, rest) = values.as_chunks::<TURNS>();
        for four in fours {
            turns.iter_mut().zip(four).for_each(|(counts, &value)| counts[place(value)] += 1);
        }
        for &value in rest {
            turns[0][place(value)] += 1;
        }
    });
    for (at, count) in counts.iter_mut().enumerate() {
        *count = turns.iter().map(|turn| turn[at]).sum();
    }
    Ok(out)
}

/// A number that was found to be no smaller than 0 and to have a counter.
fn place(value: impl Into<i128>) -> usize {
    value.into() as usize
}

/// Looks at the elements of a vector, some at a time.
fn each_part<T: Element>(x: &Array, mut look: impl FnMut(&[T])) {
    let reader = Reader::<T>::new(x);
    let mut room = filled(0.0, reader.room(PART.min(x.numel())));
    for first in (0..x.numel()).step_by(PART) {
        look(reader.part(first..x.numel().min(first + PART), &mut room));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ops::samples::{Rng, floats};

    #[test]
    fn counts_are_those_of_a_plain_loop() {
        let mut rng = Rng::new(5);
        for (size, span) in [(0, 3), (1, 1), (7, 5), (1000, 3), (5000, 4000)] {
            let values: Vec<i16> = (0..size).map(|_| rng.below(span) as i16).collect();
            let found = floats(&bincount(&Array::from_slice(&values, &[size]).unwrap(), 2).unwrap());
            let most = values.iter().max().map_or(0, |&most| most as usize + 1).max(2);
            let wanted: Vec<f64> =
                (0..most).map(|at| values.iter().filter(|&&value| value as usize == at).count() as f64).collect();
            assert_eq!(found, wanted);
        }
        assert!(bincount(&Array::from_slice(&[3_i32, -1], &[2]).unwrap(), 0).is_err());
        assert!(bincount(&Array::from_slice(&[u64::MAX], &[1]).unwrap(), 0).is_err());
    }
}
