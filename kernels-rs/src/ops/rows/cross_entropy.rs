//! Cross-entropy of rows with one class each, and its gradient: a row is read once from memory, and its softmax is never
//! stored on the way forward.

use super::softmax::shifted_exp;
use super::{RowElement, Wide, finite, float_rows, for_gathered_rows};
use crate::array::Array;
use crate::array::fold::largest;
use crate::array::reader::Reader;
use crate::dtype::Float;
use crate::error::{Error, Result};
use crate::machine::lanes::{Kernel, Lanes, launch};
use crate::machine::threads::SharedMut;
use crate::memory::scratch::with_buffers;
use crate::ops::indexing::resolve::{Converted, Indices, Target};

/// Exponentials held at a time: a quarter of the first-level cache.
const WORK: usize = 1 << 11;

/// `-ln softmax(x)[target]` of each row over the last axis. A negative target counts from the end.
pub fn cross_entropy(x: &Array, target: &Array) -> Result<Array> {
    let (len, targets) = classes("cross_entropy", x, target)?;
    let mut out = Array::uninit(x.dtype(), target.shape())?;
    float_rows!("cross_entropy", x.dtype(), T => {
        let source = Reader::<T>::new(x);
        let to = SharedMut::new(out.mut_ptr::<T>());
        for_gathered_rows(source.room(1) > 0, targets.len(), len, &|first, end| {
            // SAFETY: each task owns its rows of the result.
            let out = unsafe { to.slice(first..end) };
            let range = first * len..end * len;
            let rooms = [T::buffer(len), WORK.min(len), source.room(range.len())];
            let (mut room, check) = (Converted::default(), targets.check());
            with_buffers(rooms, |[buffer, work, gathered]: [&mut [<T as Float>::Wide]; _]| {
                let rows = source.part(range, gathered).chunks_exact(len);
                for ((x, &target), slot) in rows.zip(targets.part(first..end, &mut room)).zip(out) {
                    let Some(at) = check.place(target) else { return targets.note(true) };
                    let mut loss = Wide::count(0);
                    launch(Loss { x: T::read(x, buffer), at, work: &mut *work, to: &mut loss });
                    *slot = Float::narrow(loss);
                }
            });
        });
        targets.finish()?;
        Ok(out)
    })
}

/// `g * (softmax(x) - one_hot(target))`.
pub fn cross_entropy_backward(g: &Array, x: &Array, target: &Array) -> Result<Array> {
    const OP: &str = "cross_entropy_backward";
    let (len, targets) = classes(OP, x, target)?;
    if g.shape() != target.shape() || g.dtype() != x.dtype() {
        return Err(Error::value(OP, format!("operands differ: got g {g:?}, x {x:?}, target {target:?}")));
    }
    let mut out = Array::uninit(x.dtype(), x.shape())?;
    float_rows!(OP, x.dtype(), T => {
        let (gradient, source) = (Reader::<T>::new(g), Reader::<T>::new(x));
        let to = SharedMut::new(out.mut_ptr::<T>());
        for_gathered_rows(source.room(1) > 0, targets.len(), len, &|first, end| {
            let range = first * len..end * len;
            // SAFETY: each task owns its rows of the result.
            let out = unsafe { to.slice(range.clone()) };
            let rooms = [T::buffer(len), T::buffer(len), source.room(range.len()), gradient.room(end - first)];
            let (mut room, check) = (Converted::default(), targets.check());
            with_buffers(rooms, |[buffer, out_buffer, gathered, for_g]: [&mut [<T as Float>::Wide]; _]| {
                let g = gradient.part(first..end, for_g).iter().zip(targets.part(first..end, &mut room));
                let rows = source.part(range, gathered).chunks_exact(len);
                for ((x, (&g, &target)), out) in rows.zip(g).zip(out.chunks_exact_mut(len)) {
                    let Some(at) = check.place(target) else { return targets.note(true) };
                    let (x, g) = (T::read(x, buffer), Float::widen(g));
                    T::write(out, out_buffer, |out| launch(Backward { x, out, at, g }));
                }
            });
        });
        targets.finish()?;
        Ok(out)
    })
}

/// Number of classes, and the classes of the rows.
fn classes(op: &'static str, x: &Array, target: &Array) -> Result<(usize, Indices)> {
    let Some((&len, rows)) = x.shape().split_last() else {
        return Err(Error::value(op, "wrong rank: got a 0-d tensor, expected a last axis"));
    };
    if target.shape()[..] != *rows {
        return Err(Error::value(op, format!("targets do not fit: got x {x:?}, target {target:?}")));
    }
    let targets = || Indices::new(target, Target { op, axis: rows.len(), size: len });
    if len == 0 {
        // Any row is one too many.
        let all = targets()?;
        all.check_all();
        all.finish()?;
    }
    Ok((len, targets()?))
}

struct Loss<'a, W> {
    x: &'a [W],
    at: usize,
    work: &'a mut [W],
    to: &'a mut W,
}

impl<W: Wide> Kernel<W> for Loss<'_, W> {
    #[inline(always)]
    unsafe fn run<V: Lanes<Elem = W>>(self) {
        // SAFETY: the caller has the instructions.
        let top = finite(unsafe { largest::<V>(self.x) });
        let mut total = W::ZERO;
        // No closure: it would not inherit the instructions.
        for part in self.x.chunks(WORK) {
            // SAFETY: as above.
            total = total + unsafe { shifted_exp::<V>(part, top, &mut self.work[..part.len()]) };
        }
        // As in `log_softmax`, a row of minus infinities has itself for a logarithm.
        let log = if total == W::ZERO { W::ZERO } else { total.ln() };
        *self.to = log - (self.x[self.at] - top);
    }
}

struct Backward<'a, W> {
    x: &'a [W],
    out: &'a mut [W],
    at: usize,
    g: W,
}

impl<W: Wide> Kernel<W> for Backward<'_, W> {
    #[inline(always)]
    unsafe fn run<V: Lanes<Elem = W>>(self) {
        let Backward { x, out, at, g } = self;
        // SAFETY: the caller has the instructions; the rows have one length.
        let total = unsafe { shifted_exp::<V>(x, largest::<V>(x), out) };
        let chosen = if total == W::ZERO { W::ZERO } else { out[at] / total };
        let scale = if total == W::ZERO { W::ZERO } else { g / total };
        for slot in &mut *out {
            *slot = *slot * scale;
        }
        out[at] = g * (chosen - W::ONE);
    }
}
