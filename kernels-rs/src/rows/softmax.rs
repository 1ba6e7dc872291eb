//! Softmax, its logarithm, and their gradients.
//!
//! Along the last axis a row is a slice. Along another axis the same passes run over many columns at once.

use super::columns::Columns;
use super::fold::{dot, largest, sum};
use super::{RowElement, Wide, check_alike, float_rows, for_rows, split_at_axis};
use crate::array::Array;
use crate::error::{Error, Result};
use crate::lanes::{Kernel, Lanes, launch};
use crate::scratch::with_scratch;
use crate::threads::SharedMut;

/// `e^x / sum of e^x` along an axis; a row of minus infinities gives zeros.
pub fn softmax(x: &Array, axis: usize) -> Result<Array> {
    run(Op::Softmax, "softmax", x, x, axis)
}

/// The logarithm of [`softmax`]; a row of minus infinities stays one.
pub fn log_softmax(x: &Array, axis: usize) -> Result<Array> {
    run(Op::LogSoftmax, "log_softmax", x, x, axis)
}

/// `y * (g - sum of g * y)`.
pub fn softmax_backward(g: &Array, y: &Array, axis: usize) -> Result<Array> {
    check_alike("softmax_backward", g, y)?;
    run(Op::SoftmaxBackward, "softmax_backward", g, y, axis)
}

/// `g - e^y * sum of g`.
pub fn log_softmax_backward(g: &Array, y: &Array, axis: usize) -> Result<Array> {
    check_alike("log_softmax_backward", g, y)?;
    run(Op::LogSoftmaxBackward, "log_softmax_backward", g, y, axis)
}

/// What happens to a row. `y` is `x` itself in the forward ops.
#[derive(Clone, Copy)]
pub enum Op {
    /// See [`softmax`].
    Softmax,
    /// See [`log_softmax`].
    LogSoftmax,
    /// See [`softmax_backward`].
    SoftmaxBackward,
    /// See [`log_softmax_backward`].
    LogSoftmaxBackward,
}

fn run(op: Op, name: &str, x: &Array, y: &Array, axis: usize) -> Result<Array> {
    let (outer, len, inner) = split_at_axis(name, x, axis)?;
    let (xs, ys) = (x.contiguous()?, y.contiguous()?);
    let mut out = Array::uninit(x.dtype(), x.shape())?;
    float_rows!(name, x.dtype(), T => {
        let (xs, ys) = (xs.as_slice::<T>().expect("contiguous"), ys.as_slice::<T>().expect("contiguous"));
        let out_slice = out.as_mut_slice::<T>();
        if out_slice.is_empty() {
            return Ok(out);
        }
        if inner == 1 {
            rows(op, xs, ys, len, out_slice);
        } else {
            Columns { x: xs, y: ys, size: [outer, len, inner] }.softmax(op, out_slice);
        }
        Ok(out)
    })
}

fn rows<T: RowElement>(op: Op, xs: &[T], ys: &[T], len: usize, out: &mut [T]) {
    let to = SharedMut::new(out.as_mut_ptr());
    for_rows(xs.len() / len, len, &|first, end| {
        let range = first * len..end * len;
        // SAFETY: each task owns its rows of the result.
        let out = unsafe { to.slice(range.clone()) };
        let size = T::buffer(len);
        with_scratch(3 * size, |scratch: &mut [T::Wide]| {
            let (x_buffer, rest) = scratch.split_at_mut(size);
            let (y_buffer, out_buffer) = rest.split_at_mut(size);
            let lines = xs[range.clone()].chunks_exact(len).zip(ys[range].chunks_exact(len));
            for ((x, y), out) in lines.zip(out.chunks_exact_mut(len)) {
                let (x, y) = (T::read(x, x_buffer), T::read(y, y_buffer));
                T::write(out, out_buffer, |out| launch::<T::Wide, _>(Row { op, x, y, out }));
            }
        });
    });
}

struct Row<'a, W> {
    op: Op,
    x: &'a [W],
    y: &'a [W],
    out: &'a mut [W],
}

impl<W: Wide> Kernel<W> for Row<'_, W> {
    #[inline(always)]
    unsafe fn run<V: Lanes<Elem = W>>(self) {
        let Row { op, x, y, out } = self;
        // SAFETY: the caller has the instructions; the rows have one length.
        unsafe {
            match op {
                Op::Softmax => {
                    let total = shifted_exp::<V>(x, largest::<V>(x), out);
                    let scale = if total == W::ZERO { W::ONE } else { W::ONE / total };
                    for slot in out {
                        *slot = *slot * scale;
                    }
                }
                Op::LogSoftmax => {
                    let top = largest::<V>(x);
                    let total = shifted_exp::<V>(x, top, out);
                    let (top, log) = (finite(top), if total == W::ZERO { W::ZERO } else { total.ln() });
                    for (slot, &x) in out.iter_mut().zip(x) {
                        *slot = x - top - log;
                    }
                }
                Op::SoftmaxBackward => {
                    let inner = dot::<V>(x, y);
                    for ((slot, &g), &y) in out.iter_mut().zip(x).zip(y) {
                        *slot = y * (g - inner);
                    }
                }
                Op::LogSoftmaxBackward => {
                    let total = sum::<V>(x);
                    for ((slot, &g), &y) in out.iter_mut().zip(x).zip(y) {
                        *slot = g - y.exp_below::<V::Math>() * total;
                    }
                }
            }
        }
    }
}

/// What to shift by: the maximum, or 0 for a row of minus infinities.
#[inline(always)]
pub fn finite<W: Wide>(top: W) -> W {
    if top == W::LOWEST { W::ZERO } else { top }
}

/// Writes `e^(x - top)` and returns its sum; a `top` of minus infinity does not shift.
///
/// # Safety
/// Equal lengths; the machine has the instructions of `V`.
#[inline(always)]
pub unsafe fn shifted_exp<V: Lanes<Elem: Wide>>(x: &[V::Elem], top: V::Elem, out: &mut [V::Elem]) -> V::Elem {
    let top = finite(top);
    for (slot, &x) in out.iter_mut().zip(x) {
        *slot = (x - top).exp_below::<V::Math>();
    }
    // SAFETY: the caller has the instructions.
    unsafe { sum::<V>(out) }
}
