//! Counts of whole numbers, histograms, and quantiles.

mod histogram;
mod quantile;

pub use histogram::histogram;
pub use quantile::{Between, quantile};

use crate::array::Array;
use crate::array::reader::Reader;
use crate::dtype::{DType, Element, Kind};
use crate::error::{Error, Result};
use crate::machine::threads::{self, SharedMut};
use crate::memory::scratch::filled;
use crate::ops::elementwise::convert::cast;
use crate::vectorize;
use std::ops::Range;

/// Counters that are used in turns, so that equal neighbors do not wait for one another.
const TURNS: usize = 4;
/// Counts up to which that pays: all counters stay in the first-level cache.
const FEW: usize = 1 << 10;

/// Numbers that are read at once.
const PART: usize = 1 << 12;
/// Numbers that are worth a thread.
const GRAIN: usize = 1 << 15;
/// Numbers whose ends are looked for at once.
const WIDTH: usize = 32;

/// A type of whole numbers.
trait Whole: Element + Ord + Into<i128> {}
impl<T: Element + Ord + Into<i128>> Whole for T {}

/// How often each number from 0 on occurs, at least `minlength` counts, as `int64`.
pub fn bincount(x: &Array, minlength: usize) -> Result<Array> {
    if x.rank() != 1 {
        return Err(Error::Rejected("a vector has counts"));
    }
    if x.dtype().kind() != Kind::Int {
        return Err(Error::Rejected("integers have counts"));
    }
    let x = &cast(x, x.dtype().common())?;
    match x.dtype() {
        DType::I32 => counted::<i32>(x, minlength),
        DType::I64 => counted::<i64>(x, minlength),
        _ => counted::<u64>(x, minlength),
    }
}

fn counted<T: Whole>(x: &Array, minlength: usize) -> Result<Array> {
    let (least, most) = range_of::<T>(x);
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
        each_part(x, 0..x.numel(), |values: &[T]| values.iter().for_each(|&value| counts[place(value)] += 1));
        return Ok(out);
    }
    // Whole numbers add up to the same however they are cut.
    let pieces = pieces_of(x);
    let mut turns = filled([0_i64; FEW], TURNS * pieces);
    let own = SharedMut::new(turns.as_mut_ptr());
    threads::parallel(pieces, &|piece| {
        // SAFETY: each piece has its own counters.
        let turns = unsafe { own.slice(piece * TURNS..(piece + 1) * TURNS) };
        each_part(x, cut(x.numel(), pieces, piece), |values: &[T]| count(values, turns));
    });
    for (at, count) in counts.iter_mut().enumerate() {
        *count = turns.iter().map(|turn| turn[at]).sum();
    }
    Ok(out)
}

/// Counts numbers that were found to have a counter.
fn count<T: Whole>(values: &[T], turns: &mut [[i64; FEW]]) {
    let (fours, rest) = values.as_chunks::<TURNS>();
    for four in fours {
        turns.iter_mut().zip(four).for_each(|(counts, &value)| counts[place(value)] += 1);
    }
    for &value in rest {
        turns[0][place(value)] += 1;
    }
}

/// The smallest number, at most 0, and the largest, at least -1.
fn range_of<T: Whole>(x: &Array) -> (i128, i128) {
    let pieces = pieces_of(x);
    let mut found = filled((0_i128, -1_i128), pieces);
    let own = SharedMut::new(found.as_mut_ptr());
    threads::parallel(pieces, &|piece| {
        // SAFETY: each piece has its own pair.
        let (least, most) = unsafe { &mut own.slice(piece..piece + 1)[0] };
        each_part(x, cut(x.numel(), pieces, piece), |values: &[T]| {
            let [low, high] = ends(values);
            (*least, *most) = (low.into().min(*least), high.into().max(*most));
        });
    });
    found.iter().fold((0, -1), |ends, &(low, high)| (low.min(ends.0), high.max(ends.1)))
}

vectorize!(ends[T: Whole](values: &[T]) -> [T; 2] => ends_body::<T>, wide T::WIDE);

/// The smallest and the largest of some numbers.
#[inline(always)]
fn ends_body<T: Whole>(values: &[T]) -> [T; 2] {
    let (mut low, mut high) = ([values[0]; WIDTH], [values[0]; WIDTH]);
    let (runs, rest) = values.as_chunks::<WIDTH>();
    for run in runs {
        low.iter_mut().zip(run).for_each(|(low, &value)| *low = value.min(*low));
        high.iter_mut().zip(run).for_each(|(high, &value)| *high = value.max(*high));
    }
    let least = low.iter().chain(rest).fold(values[0], |least, &value| value.min(least));
    let most = high.iter().chain(rest).fold(values[0], |most, &value| value.max(most));
    [least, most]
}

/// A number that was found to be no smaller than 0 and to have a counter.
fn place(value: impl Into<i128>) -> usize {
    value.into() as usize
}

/// How many threads are worth it.
fn pieces_of(x: &Array) -> usize {
    threads::num_threads().min(x.numel() / GRAIN).max(1)
}

/// One of the pieces that so many elements are cut into.
fn cut(len: usize, pieces: usize, piece: usize) -> Range<usize> {
    let step = len.div_ceil(pieces);
    len.min(piece * step)..len.min((piece + 1) * step)
}

/// Looks at some elements of a vector, a part at a time.
fn each_part<T: Element>(x: &Array, range: Range<usize>, mut look: impl FnMut(&[T])) {
    let reader = Reader::<T>::new(x);
    let mut room = filled(0.0, reader.room(PART.min(range.len())));
    for first in range.clone().step_by(PART) {
        look(reader.part(first..range.end.min(first + PART), &mut room));
    }
}

#[cfg(test)]
mod tests;
