//! The first elements of a sort, without sorting the rest.
//!
//! A row is scanned against a bound: from a first look at groups of elements, or the last of the best elements found so
//! far. Few of a long row pass, and those wait in a buffer that is cut back to the best when it is full. The order of (key, index) is total, so the result does not
//! depend on how the row is cut.

use super::key::SortKey;
use super::radix::{Item, Packed, Wide};
use super::{argsort, back, rows_of};
use crate::array::Array;
use crate::dispatch;
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::threads::{self, SharedMut};
use crate::vectorize;

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
    let rows = rows_of("topk", x, axis)?;
    let len = x.shape()[axis];
    if k > len {
        return Err(Error::value("topk", format!("k out of range: got {k}, expected at most {len}")));
    }
    let mut shape = *rows.shape();
    shape[rows.rank() - 1] = k;
    let (values, indices) = (Array::uninit(x.dtype(), &shape)?, Array::uninit(DType::I64, &shape)?);
    if values.numel() > 0 {
        if k > len / 8 {
            let order = argsort(&rows, rows.rank() - 1, largest)?;
            dispatch!(num x.dtype(), T => from_order::<T>(&rows, &order, k, &values, &indices),
                else unreachable!("checked by rows_of"));
        } else {
            dispatch!(num x.dtype(), T => select::<T>(&rows, k, largest, &values, &indices),
                else unreachable!("checked by rows_of"));
        }
    }
    Ok((back(values, axis)?, back(indices, axis)?))
}

/// The first `k` of each sorted row.
fn from_order<T: SortKey>(rows: &Array, order: &Array, k: usize, values: &Array, indices: &Array) {
    let len = rows.shape()[rows.rank() - 1];
    let x = rows.as_slice::<T>().expect("rows are dense");
    let order = order.as_slice::<i64>().expect("an argsort along the last axis is dense");
    let out = Out::<T>::new(values, indices);
    threads::for_ranges(rows.numel() / len, (GRAIN / len).max(1), &|range| {
        for row in range {
            out.write(row, k, &x[row * len..(row + 1) * len], order[row * len..row * len + k].iter().copied());
        }
    });
}

/// Where results go.
struct Out<T> {
    values: SharedMut<T>,
    indices: SharedMut<i64>,
}

impl<T: SortKey> Out<T> {
    fn new(values: &Array, indices: &Array) -> Self {
        Self {
            values: SharedMut::new(values.ptr::<T>().cast_mut()),
            indices: SharedMut::new(indices.ptr::<i64>().cast_mut()),
        }
    }

    /// Writes row `row`; the caller alone does.
    fn write(&self, row: usize, k: usize, x: &[T], order: impl Iterator<Item = i64>) {
        // SAFETY: a row of the fresh results, which one task writes.
        let (values, indices) =
            unsafe { (self.values.slice(row * k..(row + 1) * k), self.indices.slice(row * k..(row + 1) * k)) };
        for ((value, index), at) in values.iter_mut().zip(indices).zip(order) {
            (*value, *index) = (x[at as usize], at);
        }
    }
}

fn select<T: SortKey>(rows: &Array, k: usize, largest: bool, values: &Array, indices: &Array) {
    let len = rows.shape()[rows.rank() - 1];
    if size_of::<T::Key>() == 4 && u32::try_from(len).is_ok() {
        select_as::<T, Packed>(rows, k, largest, &Out::new(values, indices));
    } else {
        select_as::<T, Wide>(rows, k, largest, &Out::new(values, indices));
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

fn select_as<T: SortKey, E: Entry>(rows: &Array, k: usize, largest: bool, out: &Out<T>) {
    let len = rows.shape()[rows.rank() - 1];
    let x = rows.as_slice::<T>().expect("rows are dense");
    let (count, chunks) = (rows.numel() / len, len.div_ceil(CHUNK));
    if chunks == 1 {
        threads::for_ranges(count, (GRAIN / len).max(1), &|range| {
            let mut best = Vec::new();
            for row in range {
                let x = &x[row * len..(row + 1) * len];
                best.clear();
                scan::<T, E>(x, 0, k, largest, &mut best);
                out.write(row, k, x, best.iter().map(|entry| entry.at()));
            }
        });
        return;
    }
    // The best of each chunk, then the best of those.
    let mut found = vec![Vec::<E>::new(); count * chunks];
    let slots = SharedMut::new(found.as_mut_ptr());
    threads::parallel(count * chunks, &|task| {
        let (row, first) = (task / chunks, task % chunks * CHUNK);
        // SAFETY: each task has its own slot.
        let best = unsafe { &mut *slots.ptr().add(task) };
        let part = row * len + first..row * len + len.min(first + CHUNK);
        scan::<T, E>(&x[part], first, k, largest, best);
    });
    for (row, parts) in found.chunks(chunks).enumerate() {
        let mut best = parts.concat();
        best.sort_unstable();
        out.write(row, k, &x[row * len..(row + 1) * len], best[..k].iter().map(|entry| entry.at()));
    }
}

vectorize!(
    scan[T: SortKey, E: Entry](x: &[T], start: usize, k: usize, largest: bool, best: &mut Vec<E>) => scan_body::<T, E>
);

/// Puts the best `k` entries of `x` (all of them when there are fewer) into `best`, sorted. Indices count from `start`.
#[inline(always)]
fn scan_body<T: SortKey, E: Entry>(x: &[T], start: usize, k: usize, largest: bool, best: &mut Vec<E>) {
    // Known directions make loops that vectorise.
    if largest { scan_in::<T, E, true>(x, start, k, best) } else { scan_in::<T, E, false>(x, start, k, best) }
}

#[inline(always)]
fn scan_in<T: SortKey, E: Entry, const LARGEST: bool>(x: &[T], start: usize, k: usize, best: &mut Vec<E>) {
    let room = (4 * k).max(BLOCK);
    best.reserve(room + BLOCK);
    let (head, rest) = x.split_at(if k <= FEW { 0 } else { room.min(x.len()) });
    for (at, &x) in head.iter().enumerate() {
        best.push(E::new(x.equal_key(LARGEST).into(), start + at));
    }
    // What is better than `limit` may be among the best, and what equals it where `equal` says so.
    let (mut limit, mut equal) = if k <= FEW {
        (bound_of::<T, LARGEST>(&x[..x.len().min(LOOK)], k), true)
    } else {
        let last = cut(best, k);
        (x[last.at() as usize - start].equal_key(LARGEST), false)
    };
    for (number, block) in rest.chunks(BLOCK).enumerate() {
        let at = start + head.len() + number * BLOCK;
        let mut keys = [limit; BLOCK];
        for (key, &x) in keys.iter_mut().zip(block) {
            *key = x.equal_key(LARGEST);
        }
        let mut any = false;
        for &key in &keys[..block.len()] {
            any |= (key < limit) | (equal & (key == limit));
        }
        if !any {
            continue;
        }
        let mut flags = [0u8; BLOCK];
        for (flag, &key) in flags.iter_mut().zip(&keys) {
            *flag = u8::from((key < limit) | (equal & (key == limit)));
        }
        let mut hits = bits(&flags);
        while hits != 0 {
            let i = hits.trailing_zeros() as usize;
            hits &= hits - 1;
            if i < block.len() {
                best.push(E::new(keys[i].into(), at + i));
            }
        }
        if best.len() > room {
            let last = cut(best, k);
            // From here on an equal one comes later, so it loses.
            (limit, equal) = (x[last.at() as usize - start].equal_key(LARGEST), false);
        }
    }
    cut(best, k);
    best.sort_unstable();
}

/// A key that at least `k` elements do not exceed, and few more: the `k`-th of the best of as many groups as a block has
/// elements.
#[inline(always)]
fn bound_of<T: SortKey, const LARGEST: bool>(x: &[T], k: usize) -> T::Key {
    let worst = T::from_f64(f64::NAN).equal_key(LARGEST);
    let worst = x.iter().take(BLOCK).map(|x| x.equal_key(LARGEST)).max().unwrap_or(worst);
    let mut least = [worst; BLOCK];
    for block in x.chunks(BLOCK) {
        for (least, &x) in least.iter_mut().zip(block) {
            let key = x.equal_key(LARGEST);
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
