//! Sorting along an axis: stable, NaN last in both directions, rows in parallel.

mod key;
mod radix;
#[cfg(test)]
mod tests;
mod topk;

pub use topk::topk;

use crate::array::Array;
use crate::dispatch;
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::movement::{dense, dense_copy};
use crate::threads::{self, SharedMut};
use crate::view;
use key::SortKey;
use radix::{Item, Packed, Wide};
use std::ops::Range;

/// Elements that are worth a task of their own.
const GRAIN: usize = 1 << 13;

/// Elements in order along an axis.
pub fn sort(x: &Array, axis: usize, descending: bool) -> Result<Array> {
    let rows = rows_of("sort", x, axis)?;
    let out = Array::uninit(x.dtype(), rows.shape())?;
    dispatch!(num x.dtype(), T => sort_rows::<T>(&rows, &out, descending), else unreachable!("checked by rows_of"));
    back(out, axis)
}

/// Indices that sort along an axis, as `int64`. Equal elements keep their order, also when descending.
pub fn argsort(x: &Array, axis: usize, descending: bool) -> Result<Array> {
    let rows = rows_of("argsort", x, axis)?;
    let out = Array::uninit(DType::I64, rows.shape())?;
    dispatch!(num x.dtype(), T => argsort_rows::<T>(&rows, &out, descending), else unreachable!("checked by rows_of"));
    back(out, axis)
}

/// A dense array with the axis last.
fn rows_of(op: &str, x: &Array, axis: usize) -> Result<Array> {
    if x.dtype() == DType::Bool {
        return Err(Error::Rejected("sorts take numbers"));
    }
    if axis >= x.rank() {
        return Err(Error::value(op, format!("wrong axis: got {axis}, expected below {}", x.rank())));
    }
    dense(&view::permute_dims(x, &moved(x.rank(), axis, x.rank() - 1))?)
}

/// The axis back where it was.
fn back(rows: Array, axis: usize) -> Result<Array> {
    let last = rows.rank() - 1;
    if axis == last { Ok(rows) } else { dense_copy(&view::permute_dims(&rows, &moved(last + 1, last, axis))?) }
}

/// The order of axes in which axis `from` stands at `to`.
fn moved(rank: usize, from: usize, to: usize) -> Vec<usize> {
    let mut order: Vec<usize> = (0..rank).filter(|&axis| axis != from).collect();
    order.insert(to, from);
    order
}

/// Runs `work` on groups of rows, each with room for two sequences of items.
fn each_group<I: Item>(rows: &Array, work: impl Fn(Range<usize>, &mut [I], &mut [I]) + Sync) {
    let len = rows.shape()[rows.rank() - 1];
    if rows.numel() == 0 {
        return;
    }
    let count = rows.numel() / len;
    let together = (GRAIN / len).max(1);
    let group = |task: usize| {
        let mut buffer = vec![I::default(); 2 * len];
        let (items, spare) = buffer.split_at_mut(len);
        work(task * together..count.min((task + 1) * together), items, spare);
    };
    // Few long rows share the threads inside each row instead.
    if count < threads::num_threads() && len > GRAIN {
        (0..count.div_ceil(together)).for_each(group);
    } else {
        threads::parallel(count.div_ceil(together), &group);
    }
}

fn sort_rows<T: SortKey>(rows: &Array, out: &Array, descending: bool)
where
    T::Key: Item,
{
    let to = SharedMut::new(out.storage().data().cast::<T>());
    let x = rows.as_slice::<T>().expect("rows are dense");
    let len = rows.shape()[rows.rank() - 1];
    each_group::<T::Key>(rows, |group, items, spare| {
        for row in group {
            let range = row * len..(row + 1) * len;
            // SAFETY: this row of the fresh result belongs to this task.
            let out = unsafe { to.slice(range.clone()) };
            let x = &x[range];
            items.iter_mut().zip(x).for_each(|(item, x)| *item = x.key(descending));
            radix::sort(items, spare);
            out.iter_mut().zip(&*items).for_each(|(out, &item)| *out = T::of(item, descending));
            if T::SIGNED_ZERO {
                keep_zeros(x, items, out, descending);
            }
        }
    });
}

/// Zeros of both signs are equal: puts them in the order of the operand.
fn keep_zeros<T: SortKey>(x: &[T], keys: &[T::Key], out: &mut [T], descending: bool) {
    let plus = T::from_i64(0).key(descending);
    let minus = T::from_f64(-0.0).key(descending);
    let start = keys.partition_point(|&key| key < plus.min(minus));
    let end = start + keys[start..].partition_point(|&key| key <= plus.max(minus));
    let middle = start + keys[start..end].partition_point(|&key| key == plus.min(minus));
    if middle > start && middle < end {
        for (out, &zero) in out[start..end].iter_mut().zip(x.iter().filter(|x| x.is_zero())) {
            *out = zero;
        }
    }
}

fn argsort_rows<T: SortKey>(rows: &Array, out: &Array, descending: bool) {
    let to = SharedMut::new(out.ptr::<i64>().cast_mut());
    let x = rows.as_slice::<T>().expect("rows are dense");
    let len = rows.shape()[rows.rank() - 1];
    if size_of::<T::Key>() == 4 && u32::try_from(len).is_ok() {
        let pack = |at: usize, x: T| Packed(x.equal_key(descending).into() << 32 | at as u64);
        each_group::<Packed>(rows, |group, items, spare| {
            // SAFETY: these rows of the fresh result belong to this task.
            argsort_group(
                group,
                len,
                x,
                |r| unsafe { to.slice(r) },
                (items, spare),
                &pack,
                |item| item.0 as u32 as i64,
            );
        });
    } else {
        let pack = |at: usize, x: T| Wide(x.equal_key(descending).into(), at as u64);
        each_group::<Wide>(rows, |group, items, spare| {
            // SAFETY: as above.
            argsort_group(group, len, x, |r| unsafe { to.slice(r) }, (items, spare), &pack, |item| item.1 as i64);
        });
    }
}

fn argsort_group<'a, T: SortKey, I: Item>(
    group: Range<usize>,
    len: usize,
    x: &[T],
    out: impl Fn(Range<usize>) -> &'a mut [i64],
    (items, spare): (&mut [I], &mut [I]),
    pack: &impl Fn(usize, T) -> I,
    index: impl Fn(I) -> i64,
) {
    for row in group {
        let range = row * len..(row + 1) * len;
        for (at, (item, &x)) in items.iter_mut().zip(&x[range.clone()]).enumerate() {
            *item = pack(at, x);
        }
        radix::sort(items, spare);
        out(range).iter_mut().zip(&*items).for_each(|(out, &item)| *out = index(item));
    }
}
