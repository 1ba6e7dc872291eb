//! Sorting along an axis: stable, NaN last in both directions, lines in parallel. Work space is that of the lines that
//! are sorted at the same time.

mod among;
mod lines;
mod radix;
mod search;
#[cfg(test)]
mod tests;
mod topk;

pub use among::isin;
pub use search::searchsorted;
pub use topk::topk;

use crate::array::Array;
use crate::array::key::Keyed;
use crate::dispatch;
use crate::dtype::DType;
use crate::error::Result;
use crate::memory::scratch::Arena;
use crate::ops::elementwise::convert::cast;
use lines::{Lines, checked};
use radix::{Item, Packed, Wide};

/// Elements that are worth a task of their own.
const GRAIN: usize = 1 << 13;

/// Elements in order along an axis.
pub fn sort(x: &Array, axis: usize, descending: bool) -> Result<Array> {
    let size = checked("sort", x, axis)?;
    if let Some(held) = other(x, size.1)? {
        return cast(&sort(&held, axis, descending)?, x.dtype());
    }
    let mut out = Array::uninit(x.dtype(), x.shape())?;
    dispatch!(usual x.dtype(), T => sort_lines::<T>(&Lines::new(x, axis, size), &mut out, descending),
        else unreachable!("checked before"));
    Ok(out)
}

/// Indices that sort along an axis, as `int64`. Equal elements keep their order, also when descending.
pub fn argsort(x: &Array, axis: usize, descending: bool) -> Result<Array> {
    let size = checked("argsort", x, axis)?;
    if let Some(held) = other(x, size.1)? {
        return argsort(&held, axis, descending);
    }
    let mut out = Array::uninit(DType::I64, x.shape())?;
    dispatch!(usual x.dtype(), T => argsort_lines::<T>(&Lines::new(x, axis, size), &mut out, descending),
        else unreachable!("checked before"));
    Ok(out)
}

/// The elements in the type that has loops for them, where it is another: narrow integers are in a wider one.
fn other(x: &Array, len: usize) -> Result<Option<Array>> {
    let held = placed(if x.dtype().is_float() { x.dtype() } else { x.dtype().common() }, len);
    if held == x.dtype() { Ok(None) } else { cast(x, held).map(Some) }
}

/// The type in which lines are so long: those of up to 32 bits have places of as many.
fn placed(dtype: DType, len: usize) -> DType {
    match dtype {
        DType::F64 | DType::I64 | DType::U64 => dtype,
        _ if u32::try_from(len).is_ok() => dtype,
        _ if dtype.is_float() => DType::F64,
        _ => DType::I64,
    }
}

fn sort_lines<T: Keyed>(lines: &Lines<'_, T>, out: &mut Array, descending: bool)
where
    T::Rank: Item,
{
    let len = lines.len;
    let results = lines.result::<T>(out, len);
    lines.each_group(GRAIN, size_of::<T>(), &|group| {
        let (gathered, aside) = (lines.gathered(group.len()), results.aside(group.len()));
        let (size, key) = (size_of::<T>(), size_of::<T::Rank>());
        Arena::with([gathered * size, aside * size, len * key, len * key], |mut room| {
            let (items, spare) = (room.take::<T::Rank>(len), room.take(len));
            let gathered = room.take(gathered);
            // SAFETY: the result has the lines of the operand, and each group has its own of them.
            unsafe {
                results.fill(group.clone(), room.take(aside), |out| {
                    lines.each(group, gathered, |at, x| {
                        sort_line(x, &mut out[at * len..(at + 1) * len], (items, spare), descending);
                    });
                });
            }
        });
    });
}

fn sort_line<T: Keyed>(x: &[T], out: &mut [T], (items, spare): (&mut [T::Rank], &mut [T::Rank]), descending: bool)
where
    T::Rank: Item,
{
    let flip = T::flip(descending);
    items.iter_mut().zip(x).for_each(|(item, x)| *item = T::rank(x.key(flip)));
    radix::sort(items, spare);
    out.iter_mut().zip(&*items).for_each(|(out, &item)| *out = T::of(item, flip));
    if T::SIGNED_ZERO {
        keep_zeros(x, items, out, flip);
    }
}

/// Zeros of both signs are equal: puts them in the order of the operand.
fn keep_zeros<T: Keyed>(x: &[T], keys: &[T::Rank], out: &mut [T], flip: T::Key) {
    let plus = T::rank(T::from_i64(0).key(flip));
    let minus = T::rank(T::from_f64(-0.0).key(flip));
    let start = keys.partition_point(|&key| key < plus.min(minus));
    let end = start + keys[start..].partition_point(|&key| key <= plus.max(minus));
    let middle = start + keys[start..end].partition_point(|&key| key == plus.min(minus));
    if middle > start && middle < end {
        for (out, &zero) in out[start..end].iter_mut().zip(x.iter().filter(|x| x.is_zero())) {
            *out = zero;
        }
    }
}

/// A key with its index, in one order.
trait Entry: Item {
    fn new(key: u64, at: usize) -> Self;
    fn at(self) -> i64;
}

impl Entry for Packed {
    #[inline(always)]
    fn new(key: u64, at: usize) -> Self {
        Packed(key << 32 | at as u64)
    }
    #[inline(always)]
    fn at(self) -> i64 {
        self.0 as u32 as i64
    }
}

impl Entry for Wide {
    #[inline(always)]
    fn new(key: u64, at: usize) -> Self {
        Wide(key, at as u64)
    }
    #[inline(always)]
    fn at(self) -> i64 {
        self.1 as i64
    }
}

/// Whether a key and an index go into [`Packed`].
const fn packs<T: Keyed>() -> bool {
    size_of::<T::Rank>() == 4
}

/// Sorts the entries of a line.
fn order<T: Keyed, E: Entry>(x: &[T], descending: bool, (items, spare): (&mut [E], &mut [E])) {
    let flip = T::flip(descending);
    for (at, (item, &x)) in items.iter_mut().zip(x).enumerate() {
        *item = E::new(T::rank(x.equal_key(flip)).into(), at);
    }
    radix::sort(items, spare);
}

fn argsort_lines<T: Keyed>(lines: &Lines<'_, T>, out: &mut Array, descending: bool) {
    if const { packs::<T>() } {
        argsort_as::<T, Packed>(lines, out, descending);
    } else {
        argsort_as::<T, Wide>(lines, out, descending);
    }
}

fn argsort_as<T: Keyed, E: Entry>(lines: &Lines<'_, T>, out: &mut Array, descending: bool) {
    let len = lines.len;
    let results = lines.result::<i64>(out, len);
    lines.each_group(GRAIN, size_of::<i64>(), &|group| {
        let (gathered, aside) = (lines.gathered(group.len()), results.aside(group.len()));
        let item = len * size_of::<E>();
        Arena::with([gathered * size_of::<T>(), aside * 8, item, item], |mut room| {
            let (items, spare) = (room.take::<E>(len), room.take::<E>(len));
            let gathered = room.take(gathered);
            // SAFETY: the result has the lines of the operand, and each group has its own of them.
            unsafe {
                results.fill(group.clone(), room.take(aside), |out| {
                    lines.each(group, gathered, |at, x| {
                        order(x, descending, (&mut *items, &mut *spare));
                        let out = &mut out[at * len..(at + 1) * len];
                        out.iter_mut().zip(&*items).for_each(|(out, &item)| *out = item.at());
                    });
                });
            }
        });
    });
}
