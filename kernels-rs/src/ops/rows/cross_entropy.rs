//! Cross-entropy of rows with one class each, and its gradient: a row is read once from memory, and its softmax is never
//! stored on the way forward. Short rows go many at a time.

use super::short::{self, Exps, LANES};
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
use crate::ops::indexing::resolve::{Check, Converted, Indices, Target};

/// Exponentials held at a time: a quarter of the first-level cache.
const WORK: usize = 1 << 11;

/// `-ln softmax(x)[target]` of each row over the last axis. A negative target counts from the end.
pub fn cross_entropy(x: &Array, target: &Array) -> Result<Array> {
    let (len, targets) = classes("cross_entropy", x, target)?;
    let mut out = Array::uninit(x.dtype(), target.shape())?;
    let many = short::together(len);
    float_rows!("cross_entropy", x.dtype(), T => {
        let source = Reader::<T>::new(x);
        let to = SharedMut::new(out.mut_ptr::<T>());
        for_gathered_rows(source.room(1) > 0, targets.len(), len, &|first, end| {
            // SAFETY: each task owns its rows of the result.
            let out = unsafe { to.slice(first..end) };
            let range = first * len..end * len;
            let rooms = [T::buffer(many * len), WORK.min(len), source.room(range.len())];
            let (mut room, check) = (Converted::default(), targets.check());
            with_buffers(rooms, |[buffer, work, gathered]: [&mut [<T as Float>::Wide]; _]| {
                let rows = source.part(range, gathered).chunks(many * len);
                let targets_here = targets.part(first..end, &mut room).chunks(many);
                for ((x, own), out) in rows.zip(targets_here).zip(out.chunks_mut(many)) {
                    let mut places = [0; LANES];
                    let Some(at) = placed(check, own, &mut places) else { return targets.note(true) };
                    let mut losses = [Wide::count(0); LANES];
                    let to = &mut losses[..at.len()];
                    launch(Losses { x: T::read(x, buffer), at, work: &mut *work, to });
                    for (slot, loss) in out.iter_mut().zip(losses) {
                        *slot = Float::narrow(loss);
                    }
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
    let many = short::together(len);
    float_rows!(OP, x.dtype(), T => {
        let (gradient, source) = (Reader::<T>::new(g), Reader::<T>::new(x));
        let to = SharedMut::new(out.mut_ptr::<T>());
        for_gathered_rows(source.room(1) > 0, targets.len(), len, &|first, end| {
            let range = first * len..end * len;
            // SAFETY: each task owns its rows of the result.
            let out = unsafe { to.slice(range.clone()) };
            let size = T::buffer(many * len);
            let rooms = [size, size, source.room(range.len()), gradient.room(end - first)];
            let (mut room, check) = (Converted::default(), targets.check());
            with_buffers(rooms, |[buffer, out_buffer, gathered, for_g]: [&mut [<T as Float>::Wide]; _]| {
                let own = targets.part(first..end, &mut room).chunks(many);
                let own = gradient.part(first..end, for_g).chunks(many).zip(own);
                let rows = source.part(range, gathered).chunks(many * len);
                for ((x, (gs, own)), out) in rows.zip(own).zip(out.chunks_mut(many * len)) {
                    let (mut places, mut g) = ([0; LANES], [Wide::count(0); LANES]);
                    let Some(at) = placed(check, own, &mut places) else { return targets.note(true) };
                    for (wide, &own) in g.iter_mut().zip(gs) {
                        *wide = Float::widen(own);
                    }
                    let x = T::read(x, buffer);
                    T::write(out, out_buffer, |out| launch(Backward { x, out, at, g: &g }));
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

/// Where the classes of some rows stand; `None` where one is no class.
fn placed<'a>(check: Check, targets: &[i64], room: &'a mut [usize; LANES]) -> Option<&'a [usize]> {
    for (slot, &target) in room.iter_mut().zip(targets) {
        *slot = check.place(target)?;
    }
    Some(&room[..targets.len()])
}

struct Losses<'a, W> {
    x: &'a [W],
    at: &'a [usize],
    work: &'a mut [W],
    to: &'a mut [W],
}

impl<W: Wide> Kernel<W> for Losses<'_, W> {
    #[inline(always)]
    unsafe fn run<V: Lanes<Elem = W>>(self) {
        let Losses { x, at, work, to } = self;
        let len = x.len() / at.len();
        if len < V::N {
            for ((x, at), to) in x.chunks(len * V::N).zip(at.chunks(V::N)).zip(to.chunks_mut(V::N)) {
                let Exps { tops, totals, .. } = Exps::of::<V>(x, len);
                for (row, (&at, slot)) in at.iter().zip(to).enumerate() {
                    *slot = loss(totals[row], x[row * len + at] - tops[row]);
                }
            }
            return;
        }
        for ((x, &at), slot) in x.chunks_exact(len).zip(at).zip(to) {
            let top = finite(largest::<V>(x));
            let mut total = W::ZERO;
            // No closure: it would not inherit the instructions.
            for part in x.chunks(WORK) {
                total = total + shifted_exp::<V>(part, top, &mut work[..part.len()]);
            }
            *slot = loss(total, x[at] - top);
        }
    }
}

/// As in `log_softmax`, a row of minus infinities has itself for a logarithm.
#[inline(always)]
fn loss<W: Wide>(total: W, shifted: W) -> W {
    let log = if total == W::ZERO { W::ZERO } else { total.ln() };
    log - shifted
}

struct Backward<'a, W> {
    x: &'a [W],
    out: &'a mut [W],
    at: &'a [usize],
    g: &'a [W; LANES],
}

impl<W: Wide> Kernel<W> for Backward<'_, W> {
    #[inline(always)]
    unsafe fn run<V: Lanes<Elem = W>>(self) {
        let Backward { x, out, at, g } = self;
        let len = x.len() / at.len();
        if len < V::N {
            let parts = x.chunks(len * V::N).zip(out.chunks_mut(len * V::N));
            for ((x, out), (at, g)) in parts.zip(at.chunks(V::N).zip(g.chunks(V::N))) {
                let mut exps = Exps::of::<V>(x, len);
                let mut own = [W::ZERO; LANES];
                let mut scales = [W::ZERO; LANES];
                for (row, (&at, &g)) in at.iter().zip(g).enumerate() {
                    (scales[row], own[row]) = parts_of(exps.totals[row], exps.lines[at][row], g);
                }
                // SAFETY: the rows have one length.
                exps.scaled::<V>(&scales, out, len);
                for (row, &at) in at.iter().enumerate() {
                    out[row * len + at] = own[row];
                }
            }
            return;
        }
        for ((x, out), (&at, &g)) in x.chunks_exact(len).zip(out.chunks_exact_mut(len)).zip(at.iter().zip(g)) {
            // SAFETY: the rows have one length.
            let total = shifted_exp::<V>(x, largest::<V>(x), out);
            let (scale, own) = parts_of(total, out[at], g);
            for slot in &mut *out {
                *slot = *slot * scale;
            }
            out[at] = own;
        }
    }
}

/// What exponentials are multiplied by, and the gradient of the class itself.
#[inline(always)]
fn parts_of<W: Wide>(total: W, exp: W, g: W) -> (W, W) {
    let (scale, chosen) = if total == W::ZERO { (W::ZERO, W::ZERO) } else { (g / total, exp / total) };
    (scale, g * (chosen - W::ONE))
}
