//! The first elements of a sort, without sorting the rest.
//!
//! A row is scanned against a bound: from a first look at groups of elements, or the last of the best elements found so
//! far. Few of a long row pass, and those wait in a buffer that is cut back to the best when it is full. The order of (key, index) is total, so the result does not
//! depend on how the row is cut.

use super::lines::{Lines, Results, checked};
use super::radix::{Packed, Wide};
use super::{Entry, order, packs, placed};
use crate::array::Array;
use crate::array::key::Keyed;
use crate::dispatch;
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::machine::threads::{self, SharedMut};
use crate::memory::scratch::{Arena, OnLine, filled};
use crate::ops::elementwise::convert::cast;
use crate::vectorize;
use std::ops::Range;

/// Elements that are worth a task of their own.
const GRAIN: usize = 1 << 14;
/// Longer rows are cut into chunks of this many elements.
const CHUNK: usize = 1 << 16;
/// For up to this many, a first look at the row gives a close bound (at most half of a block).
const FEW: usize = 32;
/// Elements of that first look.
const LOOK: usize = 1 << 11;
/// Elements that are compared at a time.
const BLOCK: usize = 64;

/// The `k` largest (or smallest) elements along an axis in order, and their indices as `int64`. NaN comes last either
/// way, equal elements in the order of their indices: the first `k` of a sort.
pub fn topk(x: &Array, k: usize, axis: usize, largest: bool) -> Result<(Array, Array)> {
    let size = checked("topk", x, axis)?;
    let common = placed(x.dtype().common(), size.1);
    if common != x.dtype() {
        let (values, indices) = topk(&cast(x, common)?, k, axis, largest)?;
        return Ok((cast(&values, x.dtype())?, indices));
    }
    if k > size.1 {
        return Err(Error::value("topk", format!("k out of range: got {k}, expected at most {}", size.1)));
    }
    let mut shape = *x.shape();
    shape[axis] = k;
    let (mut values, mut indices) = (Array::uninit(x.dtype(), &shape)?, Array::uninit(DType::I64, &shape)?);
    if values.numel() > 0 {
        dispatch!(common x.dtype(), T => {
            let lines = Lines::<T>::new(x, axis, size);
            let out = Out { values: lines.result::<T>(&mut values, k), indices: lines.result(&mut indices, k), k };
            if const { packs::<T>() } {
                select::<T, Packed>(&lines, largest, &out);
            } else {
                select::<T, Wide>(&lines, largest, &out);
            }
        }, else unreachable!("checked before"));
    }
    Ok((values, indices))
}

/// Where results go.
struct Out<T> {
    values: Results<T>,
    indices: Results<i64>,
    k: usize,
}

impl<T: Keyed> Out<T> {
    /// Bytes of room for so many lines.
    fn aside(&self, lines: usize) -> [usize; 2] {
        [self.values.aside(lines) * size_of::<T>(), self.indices.aside(lines) * size_of::<i64>()]
    }

    /// Has `work` call its argument with the place of each line, counted from the first, what finds an element, and the
    /// best entries of the line in order. The room is for [`Out::aside`].
    ///
    /// # Safety
    /// The lines exist, and no other task fills them.
    unsafe fn fill<E: Entry>(&self, lines: Range<usize>, room: &mut Arena<'_>, work: impl FnOnce(&mut Put<'_, T, E>)) {
        let aside = room.take(self.indices.aside(lines.len()));
        self.values.fill(lines.clone(), room.take(self.values.aside(lines.len())), |values| {
            self.indices.fill(lines, aside, |indices| {
                work(&mut |line, x, best| {
                    let part = line * self.k..(line + 1) * self.k;
                    let slots = values[part.clone()].iter_mut().zip(&mut indices[part]);
                    for ((value, index), entry) in slots.zip(best) {
                        (*value, *index) = (x(entry.at() as usize), entry.at());
                    }
                });
            });
        });
    }
}

/// Takes the place of a line, what finds an element of it, and its best entries.
type Put<'a, T, E> = dyn FnMut(usize, &dyn Fn(usize) -> T, &[E]) + 'a;

fn select<T: Keyed, E: Entry>(lines: &Lines<'_, T>, largest: bool, out: &Out<T>) {
    let (len, k) = (lines.len, out.k);
    if k <= len / 8 && len > CHUNK {
        return select_long::<T, E>(lines, largest, out);
    }
    // Many of the elements: all of them are sorted.
    let sorted = if k > len / 8 { len } else { 0 };
    let result = out.k * (size_of::<T>() + size_of::<i64>()) / len;
    lines.each_group(if sorted > 0 { super::GRAIN } else { GRAIN }, result, &|group| {
        let (gathered, [values, indices]) = (lines.gathered(group.len()), out.aside(group.len()));
        let item = sorted * size_of::<E>();
        Arena::with([gathered * size_of::<T>(), values, indices, item, item], |mut room| {
            let (gathered, items, spare) = (room.take(gathered), room.take::<E>(sorted), room.take::<E>(sorted));
            let mut best = Vec::new();
            // SAFETY: the results have the lines of the operand, and each group has its own of them.
            unsafe {
                out.fill::<E>(group.clone(), &mut room, |put| {
                    lines.each(group, gathered, |line, x| {
                        if sorted > 0 {
                            order(x, largest, (&mut *items, &mut *spare));
                            return put(line, &|at| x[at], &items[..k]);
                        }
                        best.clear();
                        scan::<T, E>(x, 0, k, largest, &mut best);
                        put(line, &|at| x[at], &best);
                    });
                });
            }
        });
    });
}

/// The best of each chunk of a line, then the best of those.
fn select_long<T: Keyed, E: Entry>(lines: &Lines<'_, T>, largest: bool, out: &Out<T>) {
    let chunks = lines.len.div_ceil(CHUNK);
    let mut found = filled(Vec::<E>::new(), lines.count * chunks);
    let slots = SharedMut::new(found.as_mut_ptr());
    threads::parallel(lines.count * chunks, &|task| {
        let (line, first) = (task / chunks, task % chunks * CHUNK);
        let part = first..lines.len.min(first + CHUNK);
        let gathered = if lines.gathered(1) > 0 { part.len() } else { 0 };
        Arena::with([gathered * size_of::<T>()], |mut room| {
            let x = lines.part(line, part, room.take(gathered));
            // SAFETY: each task has its own slot.
            scan::<T, E>(x, first, out.k, largest, unsafe { &mut *slots.ptr().add(task) });
        });
    });
    for (line, parts) in found.chunks(chunks).enumerate() {
        let mut best = parts.concat();
        best.sort_unstable();
        Arena::with(out.aside(1), |mut room| {
            // SAFETY: the results have a line for each of the operand; they are filled one after the other.
            unsafe {
                out.fill::<E>(line..line + 1, &mut room, |put| put(0, &|at| lines.get(line, at), &best[..out.k]));
            };
        });
    }
}

vectorize!(
    scan[T: Keyed, E: Entry](x: &[T], start: usize, k: usize, largest: bool, best: &mut Vec<E>) => scan_body::<T, E>, wide T::WIDE, fast T::FAST
);

/// Puts the best `k` entries of `x` (all of them when there are fewer) into `best`, sorted. Indices count from `start`.
#[inline(always)]
fn scan_body<T: Keyed, E: Entry>(x: &[T], start: usize, k: usize, largest: bool, best: &mut Vec<E>) {
    // Known directions make loops that vectorise.
    if largest { scan_in::<T, E, true>(x, start, k, best) } else { scan_in::<T, E, false>(x, start, k, best) }
}

#[inline(always)]
fn scan_in<T: Keyed, E: Entry, const LARGEST: bool>(x: &[T], start: usize, k: usize, best: &mut Vec<E>) {
    let (room, flip) = ((4 * k).max(BLOCK), T::flip(LARGEST));
    best.reserve(room + BLOCK);
    let (head, rest) = x.split_at(if k <= FEW { 0 } else { room.min(x.len()) });
    for (at, &x) in head.iter().enumerate() {
        best.push(E::new(T::rank(x.equal_key(flip)).into(), start + at));
    }
    // What is better than `limit` may be among the best, and what equals it where `equal` says so.
    let (mut limit, mut equal) = if k <= FEW {
        (bound_of::<T, LARGEST>(&x[..x.len().min(LOOK)], k), true)
    } else {
        let last = cut(best, k);
        (x[last.at() as usize - start].equal_key(flip), false)
    };
    for (number, block) in rest.chunks(BLOCK).enumerate() {
        let at = start + head.len() + number * BLOCK;
        let keys = &mut OnLine([limit; BLOCK]).0;
        for (key, &x) in keys.iter_mut().zip(block) {
            *key = x.equal_key(flip);
        }
        let mut any = false;
        for &key in &keys[..block.len()] {
            any |= (key < limit) | (equal & (key == limit));
        }
        if !any {
            continue;
        }
        let flags = &mut OnLine([0u8; BLOCK]).0;
        for (flag, &key) in flags.iter_mut().zip(&*keys) {
            *flag = u8::from((key < limit) | (equal & (key == limit)));
        }
        let mut hits = bits(flags);
        while hits != 0 {
            let i = hits.trailing_zeros() as usize;
            hits &= hits - 1;
            if i < block.len() {
                best.push(E::new(T::rank(keys[i]).into(), at + i));
            }
        }
        if best.len() > room {
            let last = cut(best, k);
            // From here on an equal one comes later, so it loses.
            (limit, equal) = (x[last.at() as usize - start].equal_key(flip), false);
        }
    }
    cut(best, k);
    best.sort_unstable();
}

/// A key that at least `k` elements do not exceed, and few more: the `k`-th of the best of as many groups as a block has
/// elements.
#[inline(always)]
fn bound_of<T: Keyed, const LARGEST: bool>(x: &[T], k: usize) -> T::Key {
    let flip = T::flip(LARGEST);
    let worst = T::from_f64(f64::NAN).equal_key(flip);
    let worst = x.iter().take(BLOCK).map(|x| x.equal_key(flip)).max().unwrap_or(worst);
    let least = &mut OnLine([worst; BLOCK]).0;
    for block in x.chunks(BLOCK) {
        for (least, &x) in least.iter_mut().zip(block) {
            let key = x.equal_key(flip);
            *least = if key < *least { key } else { *least };
        }
    }
    // Groups that have no elements say nothing.
    let groups = &mut least[..x.len().min(BLOCK)];
    let last = k.min(groups.len()).max(1) - 1;
    if groups.is_empty() { worst } else { *groups.select_nth_unstable(last).1 }
}

/// Bit `i` is flag `i`.
#[inline(always)]
fn bits(flags: &[u8; BLOCK]) -> u64 {
    let mut out = 0;
    for (number, bytes) in flags.as_chunks::<8>().0.iter().enumerate() {
        // Flag `i` of eight is moved to bit `56 + i`; no two of the sums meet.
        let byte = u64::from_le_bytes(*bytes).wrapping_mul(0x0102_0408_1020_4080) >> 56;
        out |= byte << (8 * number);
    }
    out
}

/// Keeps the best `k` and returns the last of them.
fn cut<E: Entry>(best: &mut Vec<E>, k: usize) -> E {
    if best.len() > k {
        best.select_nth_unstable(k - 1);
        best.truncate(k);
    }
    best[best.len() - 1]
}
