//! The first elements of a sort, without sorting the rest.
//!
//! A row is scanned against the last of the best elements found so far. Few of a long row pass, and those wait in a
//! buffer that is cut back to the best when it is full. The order of (key, index) is total, so the result does not
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
/// Up to this many best elements are kept sorted.
const FEW: usize = 32;
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
    let few = k <= FEW;
    let room = if few { k } else { 2 * k };
    let (head, rest) = x.split_at(room.min(x.len()));
    best.reserve(room + BLOCK);
    for (at, &x) in head.iter().enumerate() {
        best.push(E::new(x.equal_key(largest).into(), start + at));
    }
    if few {
        best.sort_unstable();
    }
    let mut last = cut(best, k);
    for (number, block) in rest.chunks(BLOCK).enumerate() {
        let at = start + head.len() + number * BLOCK;
        // An equal one comes later, so it loses. The last of the best is there, or nothing would be left to look at.
        let limit = x[last.at() as usize - start].equal_key(largest);
        let mut flags = [0u8; BLOCK];
        for (flag, &x) in flags.iter_mut().zip(block) {
            *flag = u8::from(x.equal_key(largest) < limit);
        }
        let mut hits = bits(&flags);
        while hits != 0 {
            let i = hits.trailing_zeros() as usize;
            hits &= hits - 1;
            let entry = E::new(block[i].equal_key(largest).into(), at + i);
            if few {
                insert(best, entry);
            } else {
                best.push(entry);
            }
        }
        if few {
            last = best[k - 1];
        } else if best.len() > room {
            last = cut(best, k);
        }
    }
    if !few {
        cut(best, k);
        best.sort_unstable();
    }
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

/// Puts an entry where it belongs among sorted ones, the last of which goes. It may be the one.
#[inline(always)]
fn insert<E: Entry>(best: &mut [E], entry: E) {
    let mut at = best.len() - 1;
    if entry >= best[at] {
        return;
    }
    while at > 0 && entry < best[at - 1] {
        best[at] = best[at - 1];
        at -= 1;
    }
    best[at] = entry;
}

/// Keeps the best `k` and returns the last of them.
fn cut<E: Entry>(best: &mut Vec<E>, k: usize) -> E {
    if best.len() > k {
        best.select_nth_unstable(k - 1);
        best.truncate(k);
    }
    best[best.len() - 1]
}
