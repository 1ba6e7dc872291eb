//! Few results with long sums, as gradients of weights and covariances are: cut along `k`, since there is little else to
//! share out.

use super::call::{Call, run};
use super::epilogue::{Epilogue, Finish, Sum};
use super::{Matrix, SERIAL};
use crate::array::Array;
use crate::error::Result;
use crate::machine::lanes::{Kernel, Lanes, Real, launch};
use crate::machine::threads::{self, SharedMut};
use crate::memory::owned::Memory;

/// Rows and columns of a result that leave little to share out.
const FEW: usize = 256;
/// Elements along `k` of a part at least, and for each row or column.
const LONG: (usize, usize) = (2048, 16);
/// Multiply-adds of a part at least.
const WORK: usize = 2 * SERIAL;
/// Parts at most: their sums are held at once.
const PARTS: usize = 16;
/// Results that a task adds up, at least.
const ADDED: usize = 1 << 12;

/// What computes a product in one piece.
pub type Whole<T> = unsafe fn(&Call<T>, bool, Option<&Array>) -> Result<()>;

/// Elements along `k` of a part of these, whatever the threads: its sums are added up. All of `k` where it is not cut.
pub fn part((m, k, n): (usize, usize, usize)) -> usize {
    let (high, work) = (m.max(n), m.saturating_mul(k).saturating_mul(n));
    let parts = (k / LONG.0.max(LONG.1 * high)).min(work / WORK).min(PARTS);
    let one = m * n == 1 || m > FEW || n > FEW || parts < 2;
    if one { k } else { k.div_ceil(parts).next_multiple_of(64) }
}

/// The product in parts along `k`, if it is one to be cut; false, and nothing done, for any other.
///
/// # Safety
/// As for the product in one piece.
pub unsafe fn multiply_parts<T: Sum>(call: &Call<T>, split: bool, whole: Whole<T>) -> Result<bool> {
    let (m, k, n) = call.size;
    let deep = part(call.size);
    if deep == k {
        return Ok(false);
    }
    let (count, size) = (k.div_ceil(deep), m * n);
    let held = Memory::new(count * size * size_of::<T>())?;
    let sums = SharedMut::new(held.data().cast::<T>());
    let one = |index: usize| {
        let from = index * deep;
        let part = Call {
            size: (m, deep.min(k - from), n),
            a: call.a.at(0, from),
            b: call.b.at(from, 0),
            c: Matrix::new(sums.ptr().wrapping_add(index * size), (n as isize, 1)),
            end: Epilogue::default(),
        };
        // SAFETY: a part of operands that the caller promises, and sums that are this task's own.
        whole(&part, false, None)
    };
    if split { threads::try_parallel(count, &one) } else { (0..count).try_for_each(one) }?;
    let high = ADDED.div_ceil(n);
    run(split, m.div_ceil(high), &|index| {
        let (from, rows) = (index * high, high.min(m - index * high));
        let start = sums.ptr().wrapping_add(from * n);
        launch(Together { start, len: rows * n, count, step: size });
        let (to, epilogue) = (call.c.at(from, 0), call.end.at(from, 0));
        launch(Finish::<T> { from: start, pitch: n as isize, rows, cols: n, to, epilogue });
    });
    Ok(true)
}

/// Adds lists to the first of them, in order.
struct Together<T> {
    start: *mut T,
    len: usize,
    count: usize,
    /// From one list to the next.
    step: usize,
}

impl<T: Real> Kernel<T> for Together<T> {
    #[inline(always)]
    unsafe fn run<V: Lanes<Elem = T>>(self) {
        for at in (0..self.len).step_by(V::N) {
            let lanes = V::N.min(self.len - at);
            // SAFETY: lanes past the end are left alone.
            let to = self.start.add(at);
            let mut sum = V::load_partial(to, lanes);
            for index in 1..self.count {
                sum = sum.add(V::load_partial(to.add(index * self.step), lanes));
            }
            sum.store_partial(to, lanes);
        }
    }
}

#[cfg(test)]
mod tests;
