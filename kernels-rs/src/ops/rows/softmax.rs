//! Softmax, its logarithm, and their gradients.
//!
//! Along the last axis a row is a slice. Along another axis the same passes run over many columns at once.

use super::columns::Columns;
use super::{Op, RowElement, Wide, check_alike, finite, float_rows, for_gathered_rows};
use crate::array::Array;
use crate::array::fold::{dot, largest, sum};
use crate::array::reader::Reader;
use crate::array::shape;
use crate::array::source::Source;
use crate::error::{Error, Result};
use crate::machine::lanes::{Kernel, Lanes, launch};
use crate::machine::threads::SharedMut;
use crate::memory::scratch::with_buffers;

/// `e^x / sum of e^x` along an axis; a row of minus infinities gives zeros.
pub fn softmax(x: &Array, axis: usize) -> Result<Array> {
    run(Op::Softmax, "softmax", x, None, axis)
}

/// The logarithm of [`softmax`]; a row of minus infinities stays one.
pub fn log_softmax(x: &Array, axis: usize) -> Result<Array> {
    run(Op::LogSoftmax, "log_softmax", x, None, axis)
}

/// `y * (g - sum of g * y)`.
pub fn softmax_backward(g: &Array, y: &Array, axis: usize) -> Result<Array> {
    check_alike("softmax_backward", g, y)?;
    run(Op::SoftmaxBackward, "softmax_backward", g, Some(y), axis)
}

/// `g - e^y * sum of g`.
pub fn log_softmax_backward(g: &Array, y: &Array, axis: usize) -> Result<Array> {
    check_alike("log_softmax_backward", g, y)?;
    run(Op::LogSoftmaxBackward, "log_softmax_backward", g, Some(y), axis)
}

fn run(op: Op, name: &str, x: &Array, y: Option<&Array>, axis: usize) -> Result<Array> {
    let (outer, len, inner) = shape::around(name, x.shape(), axis)?;
    let mut out = Array::uninit(x.dtype(), x.shape())?;
    float_rows!(name, x.dtype(), T => {
        let (x, y) = (Reader::<T>::new(x), y.map(Reader::<T>::new));
        let to = out.as_mut_slice::<T>();
        if to.is_empty() {
            return Ok(out);
        }
        if inner == 1 {
            rows(op, &x, y.as_ref(), len, to);
        } else {
            Columns { x, y, size: [outer, len, inner] }.softmax(op, to);
        }
        Ok(out)
    })
}

/// Rows of `len` elements of any sources, one after the other.
fn rows<T: RowElement, S: Source>(
    op: Op,
    xs: &Reader<'_, T, S>,
    ys: Option<&Reader<'_, T, S>>,
    len: usize,
    out: &mut [T],
) {
    let count = out.len() / len;
    let to = SharedMut::new(out.as_mut_ptr());
    let gaps = xs.room(1) > 0 || ys.is_some_and(|ys| ys.room(1) > 0);
    for_gathered_rows(gaps, count, len, &|first, end| {
        let range = first * len..end * len;
        // SAFETY: each task owns its rows of the result.
        let out = unsafe { to.slice(range.clone()) };
        let (x_room, y_room) = (xs.room(range.len()), ys.map_or(0, |ys| ys.room(range.len())));
        let size = T::buffer(len);
        let lens = [x_room, y_room, size, size, size];
        with_buffers(lens, |[for_x, for_y, x_buffer, y_buffer, out_buffer]: [&mut [T::Wide]; _]| {
            let x = xs.part(range.clone(), for_x);
            let y = ys.map_or(x, |ys| ys.part(range, for_y));
            for ((x, y), out) in x.chunks_exact(len).zip(y.chunks_exact(len)).zip(out.chunks_exact_mut(len)) {
                let x = T::read(x, x_buffer);
                let y = if ys.is_some() { T::read(y, y_buffer) } else { x };
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
        // The rows have one length.
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
    sum::<V>(out)
}

#[cfg(test)]
mod tests;
