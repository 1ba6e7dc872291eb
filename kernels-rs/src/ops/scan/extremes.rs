//! Largest and smallest elements so far along an axis, and where they are. NaN wins, and the last of equals.

use crate::array::Array;
use crate::array::number::Ordered;
use crate::array::shape::around;
use crate::dispatch;
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::machine::threads::{self, SharedMut};
use crate::ops::elementwise::convert::cast;
use crate::vectorize;

/// Elements that are worth a task of their own.
const GRAIN: usize = 1 << 14;
/// Columns that are followed at once.
const WIDTH: usize = 256;

/// Largest element so far along an axis, and where it is, as `int64`.
pub fn cummax(x: &Array, axis: usize) -> Result<(Array, Array)> {
    running("cummax", x, axis, true)
}

/// Smallest element so far along an axis, and where it is, as `int64`.
pub fn cummin(x: &Array, axis: usize) -> Result<(Array, Array)> {
    running("cummin", x, axis, false)
}

fn running(op: &str, x: &Array, axis: usize, largest: bool) -> Result<(Array, Array)> {
    let (outer, len, inner) = around(op, x.shape(), axis)?;
    let common = x.dtype().common();
    if common != x.dtype() {
        let (values, places) = running(op, &cast(x, common)?, axis, largest)?;
        return Ok((cast(&values, x.dtype())?, places));
    }
    let x = x.contiguous()?;
    let mut values = Array::uninit(x.dtype(), x.shape())?;
    let mut places = Array::uninit(DType::I64, x.shape())?;
    if x.numel() == 0 {
        return Ok((values, places));
    }
    dispatch!(common x.dtype(), T => {
        let x = x.as_slice::<T>().expect("dense");
        let out = (values.as_mut_slice::<T>(), places.as_mut_slice::<i64>());
        match (inner, largest) {
            (1, true) => rows::<T, true>(x, out, len),
            (1, false) => rows::<T, false>(x, out, len),
            (_, true) => columns::<T, true>(x, out, (outer, len, inner)),
            (_, false) => columns::<T, false>(x, out, (outer, len, inner)),
        }
    }, else return Err(Error::Rejected("running extremes are of numbers")));
    Ok((values, places))
}

/// Whether `new` takes the place of `old`.
#[inline(always)]
fn wins<T: Ordered, const LARGEST: bool>(new: T, old: T) -> bool {
    (if LARGEST { new >= old } else { new <= old }) | new.is_nan()
}

fn rows<T: Ordered, const LARGEST: bool>(x: &[T], (values, places): (&mut [T], &mut [i64]), len: usize) {
    let (values, places) = (SharedMut::new(values.as_mut_ptr()), SharedMut::new(places.as_mut_ptr()));
    let count = x.len() / len;
    let together = (GRAIN / len).max(1);
    threads::parallel(count.div_ceil(together), &|task| {
        for row in task * together..count.min((task + 1) * together) {
            let range = row * len..(row + 1) * len;
            // SAFETY: a row of both results, which are as long as `x`; each row belongs to one task.
            let (values, places) = unsafe { (values.slice(range.clone()), places.slice(range.clone())) };
            follow::<T, LARGEST>(&x[range], values, places);
        }
    });
}

fn follow<T: Ordered, const LARGEST: bool>(x: &[T], values: &mut [T], places: &mut [i64]) {
    let (mut best, mut place) = (x[0], 0);
    for (at, ((&new, value), out)) in x.iter().zip(values).zip(places).enumerate() {
        let won = wins::<T, LARGEST>(new, best);
        best = if won { new } else { best };
        place = if won { at as i64 } else { place };
        (*value, *out) = (best, place);
    }
}

fn columns<T: Ordered, const LARGEST: bool>(
    x: &[T],
    (values, places): (&mut [T], &mut [i64]),
    (outer, len, inner): (usize, usize, usize),
) {
    let (values, places) = (SharedMut::new(values.as_mut_ptr()), SharedMut::new(places.as_mut_ptr()));
    let tiles = inner.div_ceil(WIDTH);
    let jobs = outer * tiles;
    let together = (GRAIN / (len * inner.min(WIDTH))).max(1);
    threads::parallel(jobs.div_ceil(together), &|task| {
        for job in task * together..jobs.min((task + 1) * together) {
            let first = job % tiles * WIDTH;
            let width = WIDTH.min(inner - first);
            for row in 0..len {
                let start = (job / tiles * len + row) * inner + first;
                let from = if row == 0 { start } else { start - inner };
                // SAFETY: `width` columns of this task in the row and the one before it, which do not overlap unless they
                // are one; the first row is written before it is read.
                unsafe {
                    let (value, place) = (values.slice(start..start + width), places.slice(start..start + width));
                    if row == 0 {
                        value.copy_from_slice(&x[start..start + width]);
                        place.fill(0);
                    } else {
                        let before = (&*values.slice(from..from + width), &*places.slice(from..from + width));
                        let line = &x[start..start + width];
                        if LARGEST {
                            larger_line(line, before, (value, place), row as i64);
                        } else {
                            smaller_line(line, before, (value, place), row as i64);
                        }
                    }
                }
            }
        }
    });
}

type Line<'a, T> = (&'a [T], &'a [i64]);
type LineMut<'a, T> = (&'a mut [T], &'a mut [i64]);

vectorize!(larger_line[T: Ordered](x: &[T], before: Line<'_, T>, out: LineMut<'_, T>, row: i64) => next_line::<T, true>, wide T::WIDE, fast T::FAST);
vectorize!(smaller_line[T: Ordered](x: &[T], before: Line<'_, T>, out: LineMut<'_, T>, row: i64) => next_line::<T, false>, wide T::WIDE, fast T::FAST);

#[inline(always)]
fn next_line<T: Ordered, const LARGEST: bool>(x: &[T], before: Line<'_, T>, out: LineMut<'_, T>, row: i64) {
    let lines = x.iter().zip(before.0).zip(before.1).zip(out.0).zip(out.1);
    for ((((&new, &best), &place), value), out) in lines {
        let won = wins::<T, LARGEST>(new, best);
        *value = if won { new } else { best };
        *out = if won { row } else { place };
    }
}

#[cfg(test)]
mod tests;
