//! Running sums. An axis is cut into blocks of 1024; inside a block elements are added one after another, and the total
//! of the blocks before is added to each. So the order depends on the length alone, and errors grow slowly.

mod extremes;
mod logcumsumexp;
mod products;

pub use extremes::{cummax, cummin};
pub use logcumsumexp::logcumsumexp;
pub use products::cumulative_prod;

use crate::array::Array;
use crate::array::copy::dense_copy;
use crate::array::number::Ring;
use crate::array::shape::around;
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::machine::threads::{self, SharedMut};
use crate::memory::scratch::filled;
use crate::ops::elementwise::convert::cast;
use crate::ops::parts;

/// Elements between two roundings into the running total.
const BLOCK: usize = 1024;
/// Elements that are worth a task of their own; whole blocks.
const GRAIN: usize = 32 * BLOCK;
/// Sums that are followed at once, since each addition waits for the one before.
const LANES: usize = 4;
/// Columns that are followed at once.
const WIDTH: usize = 256;
/// The same of narrow matrices, which should not pay for the whole width.
const NARROW: usize = 16;

/// Running sum along an axis, as `dtype`. Integers wrap; narrow floats accumulate in `f32`. Sums of floats are in the wider type,
/// sums of integers as floats in 64 bits, and rounded once.
pub fn cumsum(x: &Array, axis: usize, dtype: DType) -> Result<Array> {
    if x.dtype() == DType::Bool {
        return Err(Error::Rejected("cumsum takes numbers"));
    }
    if x.dtype() == dtype {
        return scanned(x, axis);
    }
    let through = match (x.dtype(), dtype.is_float()) {
        (DType::F16 | DType::BF16, true) if dtype.itemsize() == 2 => DType::F32,
        (from, true) if from.is_float() && from.itemsize() > dtype.itemsize() => from,
        (DType::U64, true) => DType::U64,
        (from, true) if !from.is_float() => DType::I64,
        _ => dtype,
    };
    cast(&scanned(&cast(x, through)?, axis)?, dtype)
}

fn scanned(x: &Array, axis: usize) -> Result<Array> {
    if axis >= x.rank() {
        return Err(Error::value("cumsum", format!("wrong axis: got {axis}, expected below {}", x.rank())));
    }
    match x.dtype() {
        DType::Bool => Err(Error::Rejected("cumsum takes numbers")),
        DType::BF16 | DType::F16 => parts::widened([x], axis, |[x]| scanned(x, axis)),
        DType::F32 => scan::<f32>(x, axis),
        DType::F64 => scan::<f64>(x, axis),
        // Signed and unsigned sums are the same bits.
        DType::I8 | DType::I16 | DType::U8 | DType::U16 => cast(&scanned(&cast(x, DType::I32)?, axis)?, x.dtype()),
        DType::I32 | DType::U32 => scan::<i32>(x, axis),
        DType::I64 | DType::U64 => scan::<i64>(x, axis),
    }
}

fn scan<T: Ring>(x: &Array, axis: usize) -> Result<Array> {
    // An operand with gaps is brought in order in the result itself.
    let out = if x.is_contiguous() { Array::uninit(x.dtype(), x.shape())? } else { dense_copy(x)? };
    let from = if x.is_contiguous() { x } else { &out };
    let (outer, len, inner) = around("cumsum", x.shape(), axis)?;
    if x.numel() > 0 {
        let job = Job { x: from.data().cast::<T>(), out: out.storage().data().cast::<T>(), len };
        if inner == 1 { job.rows(outer) } else { job.columns(outer, inner) }
    }
    Ok(out)
}

/// Dense arrays of equal shape, `len` along the axis; they may be one and the same.
struct Job<T> {
    x: *const T,
    out: *mut T,
    len: usize,
}

// SAFETY: tasks write disjoint parts of the fresh result and only read the operand.
unsafe impl<T> Sync for Job<T> {}

impl<T: Ring> Job<T> {
    fn rows(&self, rows: usize) {
        if self.len <= 2 * GRAIN {
            let together = (GRAIN / self.len).max(1);
            return threads::parallel(rows.div_ceil(together), &|task| {
                let (first, end) = (task * together, rows.min((task + 1) * together));
                // SAFETY: whole rows of this task.
                unsafe {
                    self.local_rows(first, end);
                    (first..end).for_each(|row| add_totals(self.row(row)));
                }
            });
        }
        for row in 0..rows {
            // SAFETY: parts of one row, cut between blocks; the totals are read before the parts are written again.
            unsafe {
                // By the pointer that the tasks write through too: a reference in between would not outlive their writes.
                let out = SharedMut::new(self.out.add(row * self.len));
                let tasks = self.len.div_ceil(GRAIN);
                let part = |task: usize| task * GRAIN..self.len.min((task + 1) * GRAIN);
                threads::parallel(tasks, &|task| {
                    let part = part(task);
                    let start = row * self.len + part.start;
                    local_blocks(self.x.add(start), self.out.add(start), part.len());
                });
                let mut before = filled(T::NEUTRAL, tasks);
                for task in 1..tasks {
                    let whole = out.slice(part(task - 1));
                    before[task] =
                        whole.chunks(BLOCK).fold(before[task - 1], |sum, block| sum.plus(block[block.len() - 1]));
                }
                threads::parallel(tasks, &|task| add_totals_from(before[task], out.slice(part(task))));
            }
        }
    }

    #[allow(clippy::mut_from_ref)] // The caller keeps rows apart.
    unsafe fn row(&self, row: usize) -> &mut [T] {
        // SAFETY: the result holds this row.
        std::slice::from_raw_parts_mut(self.out.add(row * self.len), self.len)
    }

    /// Running sums inside the blocks of some rows.
    unsafe fn local_rows(&self, first: usize, end: usize) {
        if self.len > BLOCK {
            return (first..end).for_each(|row| {
                let start = row * self.len;
                local_blocks(self.x.add(start), self.out.add(start), self.len);
            });
        }
        let mut row = first;
        while row + LANES <= end {
            let start = row * self.len;
            local::<T, LANES>(self.x.add(start), self.out.add(start), self.len, self.len);
            row += LANES;
        }
        (row..end).for_each(|row| {
            let start = row * self.len;
            local::<T, 1>(self.x.add(start), self.out.add(start), self.len, self.len);
        });
    }

    /// Matrices of `len` rows and `inner` columns, summed down the columns.
    fn columns(&self, outer: usize, inner: usize) {
        let tiles = inner.div_ceil(WIDTH);
        let together = (GRAIN / (self.len * inner.min(WIDTH))).max(1);
        let jobs = outer * tiles;
        threads::parallel(jobs.div_ceil(together), &|task| {
            for job in task * together..jobs.min((task + 1) * together) {
                let first = job % tiles * WIDTH;
                let start = job / tiles * self.len * inner + first;
                // SAFETY: columns of this task.
                unsafe {
                    if inner <= NARROW {
                        self.tile::<NARROW>(start, inner, inner);
                    } else {
                        self.tile::<WIDTH>(start, inner, WIDTH.min(inner - first));
                    }
                }
            }
        });
    }

    /// Sums down `width` columns, at most `MOST`.
    unsafe fn tile<const MOST: usize>(&self, start: usize, step: usize, width: usize) {
        let (mut local, mut total) = ([T::NEUTRAL; MOST], [T::NEUTRAL; MOST]);
        let mut line = [T::NEUTRAL; MOST];
        for row in 0..self.len {
            let at = start + row * step;
            // SAFETY: a part of a row of both arrays; the operand's is copied first where they are one.
            let mut from = self.x.add(at);
            if std::ptr::eq(self.x, self.out) {
                std::ptr::copy_nonoverlapping(from, line.as_mut_ptr(), width);
                from = line.as_ptr();
            }
            let x = std::slice::from_raw_parts(from, width);
            add_line(x, std::slice::from_raw_parts_mut(self.out.add(at), width), &mut local, &total);
            if (row + 1).is_multiple_of(BLOCK) {
                for (total, local) in total.iter_mut().zip(&mut local) {
                    *total = total.plus(*local);
                    *local = T::NEUTRAL;
                }
            }
        }
    }
}

#[inline(always)]
fn add_line<T: Ring>(x: &[T], out: &mut [T], local: &mut [T], total: &[T]) {
    for (((out, &x), local), &total) in out.iter_mut().zip(x).zip(local).zip(total) {
        *local = local.plus(x);
        *out = total.plus(*local);
    }
}

/// Running sums inside each block.
unsafe fn local_blocks<T: Ring>(x: *const T, out: *mut T, len: usize) {
    let mut at = 0;
    while at < len {
        let left = len - at;
        let (x, out) = (x.add(at), out.add(at));
        if left >= LANES * BLOCK {
            local::<T, LANES>(x, out, BLOCK, BLOCK);
            at += LANES * BLOCK;
        } else {
            let len = left.min(BLOCK);
            local::<T, 1>(x, out, len, len);
            at += len;
        }
    }
}

/// Running sums of `L` runs of `len` elements, `step` apart.
#[inline(always)]
unsafe fn local<T: Ring, const L: usize>(x: *const T, out: *mut T, len: usize, step: usize) {
    let mut sums = [T::NEUTRAL; L];
    for i in 0..len {
        for (lane, sum) in sums.iter_mut().enumerate() {
            *sum = sum.plus(*x.add(lane * step + i));
            out.add(lane * step + i).write(*sum);
        }
    }
}

/// Adds to each block but the first the total of those before.
fn add_totals<T: Ring>(row: &mut [T]) {
    if row.len() > BLOCK {
        add_totals_from(T::NEUTRAL, row);
    }
}

fn add_totals_from<T: Ring>(mut before: T, row: &mut [T]) {
    for block in row.chunks_mut(BLOCK) {
        let total = block[block.len() - 1];
        for value in block.iter_mut() {
            *value = before.plus(*value);
        }
        before = before.plus(total);
    }
}

#[cfg(test)]
mod tests;
