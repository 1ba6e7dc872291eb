//! Columns side by side, some of them at a time.

use super::Transformed;
use super::columns::{Columns, Rows};
use super::rows::joined;
use crate::machine::threads::{self, SharedMut};
use crate::memory::scratch::with_scratch;
use crate::vectorize;
use std::ops::Range;

/// Elements of the columns of a task: what is between two stages stays in the second-level cache.
const TASK: usize = 1 << 14;
/// Columns of a task, at least: cache lines of the operands are used whole.
const LEAST: usize = 16;

/// Which columns, and what becomes of them.
pub struct Bands {
    /// Elements of a column.
    pub n: usize,
    /// Elements of a column of results.
    pub out: usize,
    /// Columns that lie side by side.
    pub beside: usize,
    /// Matrices of such columns.
    pub batches: usize,
    pub inverse: bool,
}

impl Bands {
    /// Runs `work(batch, columns)` over all columns, in parallel.
    fn run(&self, work: &(dyn Fn(usize, Range<usize>) + Sync)) {
        let width = (TASK / self.n / LEAST * LEAST).max(LEAST);
        let bands = self.beside.div_ceil(width);
        threads::parallel(self.batches * bands, &|task| {
            let (batch, first) = (task / bands, task % bands * width);
            work(batch, first..self.beside.min(first + width));
        });
    }

    /// Columns of two parts.
    pub fn complex<T: Transformed>(&self, plan: &Columns<T>, from: [&[T]; 2], to: [SharedMut<T>; 2]) {
        let (n, pitch) = (self.n, self.beside);
        let size = self.batches * n * pitch;
        assert!(from[0].len() == size && from[1].len() == size && plan.length == n && self.out == n);
        self.run(&|batch, columns| {
            let (at, width) = (batch * n * pitch + columns.start, columns.len());
            with_scratch::<T, _>(4 * n * width, |room| {
                let place = places(room, n * width, width);
                // SAFETY: `width` columns of this matrix, each task its own.
                let to = unsafe { Rows { re: to[0].ptr().add(at), im: to[1].ptr().add(at), pitch } };
                let from = Rows::new(&from[0][at..], &from[1][at..], pitch);
                // With both parts in each other's place, conjugates times i.
                let (from, to) = if self.inverse { (from.turned(), to.turned()) } else { (from, to) };
                // SAFETY: operands, results and room have `n` rows of `width` elements, and none of them overlap.
                unsafe { plan.run(from, to, width, place) };
            });
        });
    }

    /// Real columns of even length: each second row is the imaginary part of the one before.
    pub fn halved<T: Transformed>(&self, plan: &Columns<T>, turns: &[Vec<T>; 2], from: &[T], to: [SharedMut<T>; 2]) {
        let (n, out, half, pitch) = (self.n, self.out, self.n / 2, self.beside);
        assert!(from.len() == self.batches * n * pitch && plan.length == half && (out == n || out == half + 1));
        assert!(turns.iter().all(|part| part.len() == half + 1));
        let sign = if self.inverse { -T::one() } else { T::one() };
        self.run(&|batch, columns| {
            let (first, width) = (batch * n * pitch + columns.start, columns.len());
            with_scratch::<T, _>(6 * half * width, |room| {
                let (room, found) = room.split_at_mut(4 * half * width);
                let place = places(room, half * width, width);
                let (real, imag) = found.split_at_mut(half * width);
                let rows = Rows::new(&from[first..], &from[first + pitch..], 2 * pitch);
                // SAFETY: operands, results and room have `half` rows of `width` elements, and none of them overlap.
                unsafe { plan.run(rows, Rows::over(real, imag, width), width, place) };
                let row = |k: usize| {
                    let row = k % half * width..(k % half + 1) * width;
                    [&real[row.clone()], &imag[row]]
                };
                for (k, (&cos, &sin)) in turns[0].iter().zip(&turns[1]).enumerate() {
                    let slots = |k: usize| {
                        let at = (batch * out + k) * pitch + columns.start;
                        // SAFETY: `width` elements of a row of the results; each task has its own columns.
                        unsafe { [to[0].slice(at..at + width), to[1].slice(at..at + width)] }
                    };
                    untangle(row(k), row(half - k), [cos, sin], sign, slots(k));
                    if out == n && k > 0 && k < half {
                        let ([real, imag], [to_real, to_imag]) = (slots(k), slots(n - k));
                        to_real.copy_from_slice(real);
                        to_imag.iter_mut().zip(imag).for_each(|(slot, x)| *slot = -*x);
                    }
                }
            });
        });
    }
}

/// Two places of rows that lie together.
fn places<T: Transformed>(room: &mut [T], len: usize, width: usize) -> [Rows<T>; 2] {
    let (first, second) = room.split_at_mut(2 * len);
    [first, second].map(|place| {
        let (re, im) = place.split_at_mut(len);
        Rows::over(re, im, width)
    })
}

vectorize!(
    untangle[T: Transformed](parts: [&[T]; 2], others: [&[T]; 2], turn: [T; 2], sign: T, to: [&mut [T]; 2])
        => untangle_body::<T>
);

/// Of some columns, the numbers at k from those at k and at -k of their halves.
#[inline(always)]
fn untangle_body<T: Transformed>(
    [re, im]: [&[T]; 2],
    [other_re, other_im]: [&[T]; 2],
    turn: [T; 2],
    sign: T,
    [real, imag]: [&mut [T]; 2],
) {
    let others = other_re.iter().zip(other_im);
    for (((&a, &b), (&c, &d)), (real, imag)) in re.iter().zip(im).zip(others).zip(real.iter_mut().zip(imag)) {
        [*real, *imag] = joined([a, b], [c, d], turn, sign);
    }
}
