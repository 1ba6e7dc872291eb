//! Softmax, its logarithm, and their gradients.

use super::fold::{largest, map_sum, sum, sum2};
use super::{RowElement, Rows, Wide, check_alike, float_rows, for_rows, restored};
use crate::array::Array;
use crate::dtype::Float;
use crate::error::{Error, Result};
use crate::lanes::{Kernel, Lanes, launch};
use crate::math::Fma;
use crate::scratch::with_scratch;
use crate::threads::SharedMut;

/// `e^x / sum of e^x` along an axis; a row of minus infinities gives zeros.
pub fn softmax(x: &Array, axis: usize) -> Result<Array> {
    unary(Mode::Plain, "softmax", x, axis)
}

/// The logarithm of [`softmax`]; a row of minus infinities stays one.
pub fn log_softmax(x: &Array, axis: usize) -> Result<Array> {
    unary(Mode::Log, "log_softmax", x, axis)
}

/// `y * (g - sum of g * y)`.
pub fn softmax_backward(g: &Array, y: &Array, axis: usize) -> Result<Array> {
    binary(Mode::Plain, "softmax_backward", g, y, axis)
}

/// `g - e^y * sum of g`.
pub fn log_softmax_backward(g: &Array, y: &Array, axis: usize) -> Result<Array> {
    binary(Mode::Log, "log_softmax_backward", g, y, axis)
}

#[derive(Clone, Copy)]
enum Mode {
    Plain,
    Log,
}

fn unary(mode: Mode, op: &str, x: &Array, axis: usize) -> Result<Array> {
    let rows = Rows::along(op, x, &[axis])?;
    let mut out = Array::uninit(x.dtype(), rows.data.shape())?;
    float_rows!(op, x.dtype(), T => {
        run_unary::<T>(mode, rows.elements(), rows.len, out.as_mut_slice());
        restored(&out, axis)
    })
}

fn binary(mode: Mode, op: &str, g: &Array, y: &Array, axis: usize) -> Result<Array> {
    check_alike(op, g, y)?;
    let (rows, other) = (Rows::along(op, g, &[axis])?, Rows::along(op, y, &[axis])?);
    let mut out = Array::uninit(g.dtype(), rows.data.shape())?;
    float_rows!(op, g.dtype(), T => {
        run_binary::<T>(mode, rows.elements(), other.elements(), rows.len, out.as_mut_slice());
        restored(&out, axis)
    })
}

fn run_unary<T: RowElement>(mode: Mode, x: &[T], len: usize, out: &mut [T]) {
    if out.is_empty() {
        return;
    }
    let to = SharedMut::new(out.as_mut_ptr());
    for_rows(x.len() / len, len, &|first, end| {
        // SAFETY: each task owns its rows of the result.
        let out = unsafe { to.slice(first * len..end * len) };
        with_scratch(len, |row: &mut [T::Wide]| {
            launch::<T::Wide, _>(Unary { mode, x: &x[first * len..end * len], out, row });
        });
    });
}

struct Unary<'a, T: Float> {
    mode: Mode,
    x: &'a [T],
    out: &'a mut [T],
    row: &'a mut [T::Wide],
}

impl<T: RowElement> Kernel<T::Wide> for Unary<'_, T> {
    #[inline(always)]
    unsafe fn run<V: Lanes<Elem = T::Wide>>(self) {
        let len = self.row.len();
        for (x, out) in self.x.chunks_exact(len).zip(self.out.chunks_exact_mut(len)) {
            match self.mode {
                Mode::Plain => softmax_row::<T, V::Math>(x, out, self.row),
                Mode::Log => log_softmax_row::<T, V::Math>(x, out),
            }
        }
    }
}

/// The maximum, or 0 where there is none to shift by.
#[inline(always)]
pub fn shift<T: RowElement>(x: &[T]) -> T::Wide {
    let top = largest(x, Float::widen);
    if top == T::Wide::LOWEST { T::Wide::ZERO } else { top }
}

#[inline(always)]
fn softmax_row<T: RowElement, M: Fma>(x: &[T], out: &mut [T], row: &mut [T::Wide]) {
    let top = shift(x);
    let total = map_sum(x, row, |x| (x.widen() - top).exp::<M>());
    let scale = if total == T::Wide::ZERO { T::Wide::ONE } else { T::Wide::ONE / total };
    for (slot, &e) in out.iter_mut().zip(&*row) {
        *slot = T::narrow(e * scale);
    }
}

#[inline(always)]
fn log_softmax_row<T: RowElement, M: Fma>(x: &[T], out: &mut [T]) {
    let top = shift(x);
    let total = sum(x, |x| (x.widen() - top).exp::<M>());
    let log = if total == T::Wide::ZERO { T::Wide::ZERO } else { total.ln() };
    for (slot, &x) in out.iter_mut().zip(x) {
        *slot = T::narrow(x.widen() - top - log);
    }
}

fn run_binary<T: RowElement>(mode: Mode, g: &[T], y: &[T], len: usize, out: &mut [T]) {
    if out.is_empty() {
        return;
    }
    let to = SharedMut::new(out.as_mut_ptr());
    for_rows(g.len() / len, len, &|first, end| {
        let range = first * len..end * len;
        // SAFETY: each task owns its rows of the result.
        let out = unsafe { to.slice(range.clone()) };
        launch::<T::Wide, _>(Binary { mode, g: &g[range.clone()], y: &y[range], out, len });
    });
}

struct Binary<'a, T> {
    mode: Mode,
    g: &'a [T],
    y: &'a [T],
    out: &'a mut [T],
    len: usize,
}

impl<T: RowElement> Kernel<T::Wide> for Binary<'_, T> {
    #[inline(always)]
    unsafe fn run<V: Lanes<Elem = T::Wide>>(self) {
        let rows = self.g.chunks_exact(self.len).zip(self.y.chunks_exact(self.len));
        for ((g, y), out) in rows.zip(self.out.chunks_exact_mut(self.len)) {
            match self.mode {
                Mode::Plain => {
                    let inner = sum2(g, y, |g, y| g.widen() * y.widen());
                    for ((slot, &g), &y) in out.iter_mut().zip(g).zip(y) {
                        *slot = T::narrow(y.widen() * (g.widen() - inner));
                    }
                }
                Mode::Log => {
                    let total = sum(g, Float::widen);
                    for ((slot, &g), &y) in out.iter_mut().zip(g).zip(y) {
                        *slot = T::narrow(g.widen() - y.widen().exp::<V::Math>() * total);
                    }
                }
            }
        }
    }
}
