//! One float product, and what all ways of computing it share.

use super::epilogue::{Epilogue, Finish, Sum};
use super::tile::Start;
use super::{Matrix, SERIAL};
use crate::dtype::Float;
use crate::machine::lanes::launch;
use crate::machine::threads;
use std::ops::Range;

/// Rows up to which dot products beat packing.
pub const FEW_DOTS: usize = 8;
/// Rows of the result up to which the right side is read where it lies.
pub const FEW_ROWS: usize = 64;
/// Rows of the result up to which the right side is read where it lies, where there are columns enough to share out.
pub const FEWER_THAN_COLUMNS: usize = 512;
/// Elements along `k` of a block of a right side that is read where it lies.
pub const LYING_DEPTH: usize = 128;
/// Elements of a right side that a task reads, at least, where few rows leave little else to do: 256 KiB of floats.
pub const READ: usize = 1 << 16;
/// Elements of a right side that stays in the first-level cache: no reason to pack it.
pub const CACHED: usize = 1 << 12;

/// `c = epilogue(a @ b)` for sizes `(m, k, n)` of at least 1. Narrow floats accumulate in `f32` and are rounded once.
/// Where the CPU has a bf16 dot product, bfloat16 operands below the normal range may count as 0.
#[derive(Clone, Copy)]
pub struct Call<T> {
    /// `(m, k, n)`.
    pub size: (usize, usize, usize),
    /// The left side.
    pub a: Matrix<T>,
    /// The right side.
    pub b: Matrix<T>,
    /// The result.
    pub c: Matrix<T>,
    /// What happens to the product.
    pub end: Epilogue<T>,
}

impl<T: Copy> Call<T> {
    /// The same product by columns.
    pub fn turned(&self) -> Self {
        let (m, k, n) = self.size;
        let (a, b) = (self.b.turned(), self.a.turned());
        Self { size: (n, k, m), a, b, c: self.c.turned(), end: self.end.turned() }
    }

    /// Multiply-adds.
    pub fn work(&self) -> usize {
        self.size.0.saturating_mul(self.size.1).saturating_mul(self.size.2)
    }

    /// Cuts columns into tasks of whole panels. The cuts change no sum, so they may follow the threads.
    pub fn by_columns(&self, split: bool, panel: usize, task: &(dyn Fn(Range<usize>) + Sync)) {
        let (_, k, n) = self.size;
        // Few rows are bound by memory: longer runs.
        let most = if self.size.0 <= 6 { 8 } else { 16 };
        let most = if split { threads::tasks(most) } else { most };
        let pieces = if self.work() < SERIAL { 1 } else { (self.work() >> 18).max(k * n / READ).clamp(2, most) };
        let step = n.div_ceil(pieces).next_multiple_of(panel);
        let run = |index: usize| task(index * step..n.min((index + 1) * step));
        if split {
            threads::parallel(n.div_ceil(step), &run);
        } else {
            (0..n.div_ceil(step)).for_each(run);
        }
    }
}

/// Where sums are kept: in the result, if it has their type and runs along rows, else aside.
pub fn in_place<T: Float>(c: Matrix<T>) -> Option<*mut T::Wide> {
    (size_of::<T>() == size_of::<T::Wide>() && c.col == 1).then(|| c.start.cast())
}

/// Finishes a block of sums, where there is anything to do.
pub fn finish<T: Float<Wide: Sum>>(
    from: *mut T::Wide,
    pitch: isize,
    (rows, cols): (usize, usize),
    to: Matrix<T>,
    end: Epilogue<T>,
) {
    if !(end.is_empty() && in_place(to).is_some()) {
        launch(Finish::<T> { from, pitch, rows, cols, to, epilogue: end });
    }
}

/// Bias that the sums can begin with, or what stands in the result.
pub fn first_addend<T: Float>(end: &mut Epilogue<T>) -> Start<T::Wide> {
    if end.adds {
        return Start::Kept;
    }
    let Some(bias) = end.bias.filter(|_| end.scale == 1.0 && size_of::<T>() == size_of::<T::Wide>()) else {
        return Start::Zero;
    };
    let start = match (bias.row, bias.col) {
        (0, 1) => Start::Columns(bias.start.cast_const().cast()),
        (row, 0) => Start::Rows(bias.start.cast_const().cast(), row),
        _ => return Start::Zero,
    };
    end.bias = None;
    start
}

/// What the sums from a column on begin with.
pub fn shifted<R>(start: Start<R>, cols: usize) -> Start<R> {
    match start {
        Start::Columns(at) => Start::Columns(at.wrapping_add(cols)),
        other => other,
    }
}

/// Cells of a scratch buffer of `W`.
pub fn cells<C, W>(count: usize) -> usize {
    (count * size_of::<C>()).div_ceil(64) * (64 / size_of::<W>())
}

/// Runs tasks, on more than one thread where that is allowed.
pub fn run(split: bool, tasks: usize, task: &(dyn Fn(usize) + Sync)) {
    if split {
        threads::parallel(tasks, task);
    } else {
        (0..tasks).for_each(task);
    }
}
