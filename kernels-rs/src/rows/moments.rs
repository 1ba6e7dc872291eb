//! Reductions that pass over a row twice: variance and the logarithm of a sum of exponentials.

use super::fold::{self, largest, sum};
use super::{RowElement, Rows, Wide, float_rows, for_rows, reduced};
use crate::array::Array;
use crate::dtype::{Element, Float};
use crate::error::{Error, Result};
use crate::lanes::{Kernel, Lanes, launch};
use crate::math::Fma;
use crate::threads::SharedMut;

/// Elements of a piece of a long row.
const PIECE: usize = 1 << 13;

/// The mean of `(x - mean)^2`, with `count - correction` (at least 0) for the count.
pub fn var(x: &Array, axes: &[usize], correction: f64, keepdims: bool) -> Result<Array> {
    let rows = Rows::along("var", x, axes)?;
    let mut out = Array::uninit(x.dtype(), &reduced(x, axes, keepdims))?;
    float_rows!("var", x.dtype(), T => {
        if rows.len == 0 {
            out.as_mut_slice::<T>().fill(T::from_f64(f64::NAN));
        } else {
            run::<T>(Mode::Var(correction), rows.elements(), rows.len, out.as_mut_slice());
        }
        Ok(out)
    })
}

/// `ln(sum of e^x)`; minus infinity where every element is.
pub fn logsumexp(x: &Array, axes: &[usize], keepdims: bool) -> Result<Array> {
    let rows = Rows::along("logsumexp", x, axes)?;
    let mut out = Array::uninit(x.dtype(), &reduced(x, axes, keepdims))?;
    float_rows!("logsumexp", x.dtype(), T => {
        if rows.len == 0 {
            out.as_mut_slice::<T>().fill(T::from_f64(f64::NEG_INFINITY));
        } else {
            run::<T>(Mode::LogSumExp, rows.elements(), rows.len, out.as_mut_slice());
        }
        Ok(out)
    })
}

#[derive(Clone, Copy)]
enum Mode {
    Var(f64),
    LogSumExp,
}

fn run<T: RowElement>(mode: Mode, x: &[T], len: usize, out: &mut [T]) {
    let to = SharedMut::new(out.as_mut_ptr());
    let rows = x.len() / len;
    if rows < 8 && len > 8 * PIECE {
        for (row, slot) in x.chunks_exact(len).zip(out) {
            *slot = T::narrow(long_row(mode, row));
        }
        return;
    }
    for_rows(rows, len, &|first, end| {
        // SAFETY: each task owns its part of the result.
        let out = unsafe { to.slice(first..end) };
        for (row, slot) in x[first * len..end * len].chunks_exact(len).zip(out) {
            let mut result = T::Wide::ZERO;
            launch::<T::Wide, _>(Row { mode, x: row, result: &mut result });
            *slot = T::narrow(result);
        }
    });
}

/// The result from the sums of the second pass.
fn finish<W: Wide>(mode: Mode, [first, second]: [W; 2], middle: W, len: usize) -> W {
    match mode {
        Mode::Var(correction) => {
            let squares = second - first / W::count(len) * first;
            squares / W::from_f64((len as f64 - correction).max(0.0))
        }
        Mode::LogSumExp => first.ln() + middle,
    }
}

/// What the row is shifted by: its mean, or its maximum where that is finite.
#[inline(always)]
fn middle<W: Wide>(mode: Mode, total: W, len: usize) -> W {
    match mode {
        Mode::Var(_) => total / W::count(len),
        Mode::LogSumExp => {
            if total.to_f64().is_finite() {
                total
            } else {
                W::ZERO
            }
        }
    }
}

#[inline(always)]
fn first_pass<T: RowElement>(mode: Mode, piece: &[T]) -> T::Wide {
    match mode {
        Mode::Var(_) => sum(piece, Float::widen),
        Mode::LogSumExp => largest(piece, Float::widen),
    }
}

#[inline(always)]
fn second_pass<T: RowElement, M: Fma>(mode: Mode, piece: &[T], middle: T::Wide) -> [T::Wide; 2] {
    match mode {
        Mode::Var(_) => fold::moments(piece, |x| x.widen() - middle, |_, _| ()).into(),
        Mode::LogSumExp => [sum(piece, |x| (x.widen() - middle).exp::<M>()), T::Wide::ZERO],
    }
}

fn plus<W: Wide>(a: [W; 2], b: [W; 2]) -> [W; 2] {
    [a[0] + b[0], a[1] + b[1]]
}

/// A whole row, in pieces whose results are added in order.
struct Row<'a, T: Float> {
    mode: Mode,
    x: &'a [T],
    result: &'a mut T::Wide,
}

impl<T: RowElement> Kernel<T::Wide> for Row<'_, T> {
    #[inline(always)]
    unsafe fn run<V: Lanes<Elem = T::Wide>>(self) {
        let mut total = first_of(self.mode);
        for piece in self.x.chunks(PIECE) {
            total = join(self.mode, total, first_pass(self.mode, piece));
        }
        let middle = middle(self.mode, total, self.x.len());
        let mut totals = [T::Wide::ZERO; 2];
        for piece in self.x.chunks(PIECE) {
            totals = plus(totals, second_pass::<T, V::Math>(self.mode, piece, middle));
        }
        *self.result = finish(self.mode, totals, middle, self.x.len());
    }
}

#[inline(always)]
fn first_of<W: Wide>(mode: Mode) -> W {
    if let Mode::Var(_) = mode { W::ZERO } else { W::LOWEST }
}

#[inline(always)]
fn join<W: Wide>(mode: Mode, a: W, b: W) -> W {
    match mode {
        Mode::Var(_) => a + b,
        Mode::LogSumExp => {
            if b > a {
                b
            } else {
                a
            }
        }
    }
}

/// One pass over one piece.
struct Piece<'a, T: Float> {
    mode: Mode,
    x: &'a [T],
    middle: Option<T::Wide>,
    result: &'a mut [T::Wide; 2],
}

impl<T: RowElement> Kernel<T::Wide> for Piece<'_, T> {
    #[inline(always)]
    unsafe fn run<V: Lanes<Elem = T::Wide>>(self) {
        *self.result = match self.middle {
            None => [first_pass(self.mode, self.x), T::Wide::ZERO],
            Some(middle) => second_pass::<T, V::Math>(self.mode, self.x, middle),
        };
    }
}

/// The same sums as [`Row`], the pieces in parallel.
fn long_row<T: RowElement>(mode: Mode, row: &[T]) -> T::Wide {
    let pieces = row.len().div_ceil(PIECE);
    let pass = |middle: Option<T::Wide>| {
        let mut results = vec![[T::Wide::ZERO; 2]; pieces];
        let to = SharedMut::new(results.as_mut_ptr());
        for_rows(pieces, PIECE, &|first, end| {
            for (index, piece) in (first..end).zip(row[first * PIECE..].chunks(PIECE)) {
                // SAFETY: one task per piece.
                let result = unsafe { &mut to.slice(index..index + 1)[0] };
                launch::<T::Wide, _>(Piece { mode, x: piece, middle, result });
            }
        });
        results
    };
    let total = pass(None).into_iter().fold(first_of(mode), |a, b| join(mode, a, b[0]));
    let middle = middle(mode, total, row.len());
    let totals = pass(Some(middle)).into_iter().fold([T::Wide::ZERO; 2], plus);
    finish(mode, totals, middle, row.len())
}
