//! Quantiles by selection: nothing is sorted. Of a long line the elements are counted by the first bits of their ranks, and
//! only those in the part that holds the wanted ones are looked at again.

use crate::array::Array;
use crate::array::key::Keyed;
use crate::array::shape::Shape;
use crate::array::view;
use crate::dispatch;
use crate::dtype::{DType, Plain};
use crate::error::{Error, Result, named};
use crate::machine::threads::{self, SharedMut};
use crate::memory::scratch::{Arena, filled};
use crate::vectorize;

/// Elements that are worth a task of their own.
const GRAIN: usize = 1 << 13;
/// Bits of a rank by which a long line is counted.
const BITS: usize = 12;
/// From so many elements on a line is long.
const LONG: usize = 1 << 14;
/// Elements whose ranks are computed at once.
const BLOCK: usize = 1 << 10;
/// Ranks of which one look says whether any is wanted: a register of them.
const LOOK: usize = 16;

/// Which of two neighbors in order, or how much of both.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Between {
    /// The second.
    Higher,
    /// A part of both.
    Linear,
    /// The first.
    Lower,
    /// Half of both.
    Midpoint,
    /// The nearer, the one of an even place where both are.
    Nearest,
}

named!(Between, "quantile": "higher" Higher, "linear" Linear, "lower" Lower, "midpoint" Midpoint, "nearest" Nearest);

/// Places in order, and the weight of the second.
#[derive(Clone, Copy)]
struct Wanted {
    low: usize,
    high: usize,
    weight: f64,
}

impl Wanted {
    fn new(q: f64, count: usize, between: Between) -> Self {
        let place = q * (count - 1) as f64;
        let (low, high) = (place.floor(), place.ceil());
        let (low, high, weight) = match between {
            Between::Higher => (high, high, 0.0),
            Between::Linear => (low, high, place - low),
            Between::Lower => (low, low, 0.0),
            Between::Midpoint => (low, high, if low < high { 0.5 } else { 0.0 }),
            Between::Nearest => (place.round_ties_even(), place.round_ties_even(), 0.0),
        };
        Self { low: low as usize, high: if weight > 0.0 { high } else { low } as usize, weight }
    }
}

/// What a part `q` of the elements along some axes is below; nan wins.
pub fn quantile(x: &Array, q: f64, axis: &[usize], keepdims: bool, between: Between) -> Result<Array> {
    let rank = x.rank();
    if axis.iter().any(|&at| at >= rank) || !(0.0..=1.0).contains(&q) {
        return Err(Error::Rejected("no such axis, or no part of the whole"));
    }
    let others = || (0..rank).filter(|at| !axis.contains(at));
    let count: usize = axis.iter().map(|&at| x.shape()[at]).product();
    let mut order = Shape::empty();
    others().chain((0..rank).filter(|at| axis.contains(at))).for_each(|at| order.push(at));
    let mut shape = Shape::empty();
    for at in 0..rank {
        match (axis.contains(&at), keepdims) {
            (false, _) => shape.push(x.shape()[at]),
            (true, true) => shape.push(1),
            (true, false) => {}
        }
    }
    let mut out = Array::uninit(x.dtype(), &shape)?;
    if out.numel() == 0 {
        return Ok(out);
    }
    if count == 0 {
        return Err(Error::Rejected("nothing to choose from"));
    }
    let lines = view::permute_dims(x, &order)?.contiguous()?;
    let wanted = Wanted::new(q, count, between);
    dispatch!(float x.dtype(), T => each_line::<T>(&lines, &mut out, count, wanted),
        else return Err(Error::Rejected("quantiles are of floats")));
    Ok(out)
}

fn each_line<T: Keyed>(lines: &Array, out: &mut Array, len: usize, wanted: Wanted) {
    let x = lines.as_slice::<T>().expect("dense");
    let count = out.numel();
    let to = SharedMut::new(out.mut_ptr::<T>());
    let together = (GRAIN / len).max(1);
    threads::parallel(count.div_ceil(together), &|task| {
        let part = task * together..count.min((task + 1) * together);
        // SAFETY: each task has its own results.
        let out = unsafe { to.slice(part.clone()) };
        Arena::with([len * size_of::<T::Rank>()], |mut room| {
            let room = room.take::<T::Rank>(len);
            for (out, x) in out.iter_mut().zip(x[part.start * len..part.end * len].chunks_exact(len)) {
                *out = of_line(x, wanted, room);
            }
        });
    });
}

fn of_line<T: Keyed>(x: &[T], wanted: Wanted, room: &mut [T::Rank]) -> T {
    let found = if x.len() < LONG { of_few(x, wanted, room) } else { of_many(x, wanted, room) };
    let Some((first, second)) = found else { return T::from_f64(f64::NAN) };
    let flip = T::flip(false);
    let (first, second) = (T::of(first, flip), T::of(second, flip));
    let (a, b) = (first.to_f64(), second.to_f64());
    if wanted.weight == 0.0 || a == b {
        return first;
    }
    // No gap between the two, which is infinite beside an infinity and between far numbers.
    if T::DTYPE == DType::F64 {
        return T::from_f64(a * (1.0 - wanted.weight) + b * wanted.weight);
    }
    let narrow = a as f32 * (1.0 - wanted.weight) as f32 + b as f32 * wanted.weight as f32;
    T::from_f64(f64::from(narrow))
}

/// The two wanted ranks of all; None where there is a nan.
fn of_few<T: Keyed>(x: &[T], wanted: Wanted, room: &mut [T::Rank]) -> Option<(T::Rank, T::Rank)> {
    if ranks(x, room) {
        return None;
    }
    Some(two_of(room, wanted))
}

fn two_of<R: Plain + Ord>(ranks: &mut [R], wanted: Wanted) -> (R, R) {
    let (_, &mut first, above) = ranks.select_nth_unstable(wanted.low);
    let second = if wanted.high > wanted.low { above.iter().min().copied() } else { None };
    (first, second.unwrap_or(first))
}

fn of_many<T: Keyed>(x: &[T], wanted: Wanted, room: &mut [T::Rank]) -> Option<(T::Rank, T::Rank)> {
    let mut counts = filled(0_usize, 1 << BITS);
    for (x, room) in x.chunks(BLOCK).zip(room.chunks_mut(BLOCK)) {
        if ranks(x, room) {
            return None;
        }
        for &rank in &*room {
            counts[bucket::<T>(rank) as usize] += 1;
        }
    }
    let mut before = 0;
    let mut holder = |place: usize, from: usize| {
        let mut at = from;
        while before + counts[at] <= place {
            before += counts[at];
            at += 1;
        }
        (at, before)
    };
    let (low, ahead) = holder(wanted.low, 0);
    let (high, _) = holder(wanted.high, low);
    let kept = keep::<T>(&mut room[..x.len()], low as u32, high as u32);
    let wanted = Wanted { low: wanted.low - ahead, high: wanted.high - ahead, ..wanted };
    Some(two_of(&mut room[..kept], wanted))
}

/// The first bits of a rank.
#[inline(always)]
fn bucket<T: Keyed>(rank: T::Rank) -> u32 {
    (Into::<u64>::into(rank) >> (8 * size_of::<T>() - BITS)) as u32
}

vectorize!(keep[T: Keyed](ranks: &mut [T::Rank], low: u32, high: u32) -> usize => keep_body::<T>);

/// Moves the ranks of two buckets, between which there are none, to the front, and says how many they are.
#[inline(always)]
fn keep_body<T: Keyed>(ranks: &mut [T::Rank], low: u32, high: u32) -> usize {
    let wanted = |rank| bucket::<T>(rank).wrapping_sub(low) <= high - low;
    let mut kept = 0;
    for first in (0..ranks.len()).step_by(LOOK) {
        let whole = ranks[first..].first_chunk::<LOOK>();
        if whole.is_some_and(|look| !look.iter().fold(false, |any, &rank| any | wanted(rank))) {
            continue;
        }
        for at in first..ranks.len().min(first + LOOK) {
            let rank = ranks[at];
            ranks[kept] = rank;
            kept += usize::from(wanted(rank));
        }
    }
    kept
}

vectorize!(ranks[T: Keyed](x: &[T], out: &mut [T::Rank]) -> bool => ranks_body::<T>);

/// Writes ranks, and says whether there is a nan.
#[inline(always)]
fn ranks_body<T: Keyed>(x: &[T], out: &mut [T::Rank]) -> bool {
    let (flip, mut nan) = (T::flip(false), false);
    let of_nan = T::rank(T::from_f64(f64::NAN).key(flip));
    for (&x, out) in x.iter().zip(out) {
        let rank = T::rank(x.key(flip));
        nan |= rank == of_nan;
        *out = rank;
    }
    nan
}

#[cfg(test)]
mod tests;
