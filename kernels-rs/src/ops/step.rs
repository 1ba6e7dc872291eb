//! Optimizer steps over a list of tensors: one call, one pass over memory, for all of them.
//!
//! Each stream (the parameter and its states) is read once and written once, block by block. Elements do not depend on
//! each other, so neither cuts nor threads change a result. The operations are those of the op-by-op formula, in its order
//! and never contracted, so that f32 and f64 steps give its bits.

mod adam;
mod clip;
mod sgd;
#[cfg(test)]
mod tests;

pub use adam::{Adam, adam};
pub use clip::clip_norms;
pub use sgd::{Sgd, sgd};

use crate::array::Array;
use crate::array::float::{RowElement, Wide};
use crate::array::reader::Reader;
use crate::error::{Error, Result};
use crate::machine::lanes::{Kernel, Lanes, launch};
use crate::machine::threads::{self, SharedMut};
use crate::memory::scratch::{reserved, with_scratch};
use std::ops::Range;

/// Elements that are worked on in one go: nine streams of `f64` fit a 48 KiB first-level cache.
const BLOCK: usize = 512;
/// Elements per task (about 10 us).
const TASK: usize = 16 << 10;

/// What happens to each element, a register of them at a time.
trait Rule<const S: usize>: Sync {
    /// The number type.
    type Wide: Wide;
    /// The streams after the step, the first of which is the parameter, from those before and the gradient.
    ///
    /// # Safety
    /// The machine has the instructions of `V`.
    unsafe fn step<V: Lanes<Elem = Self::Wide>>(&self, streams: [V; S], grad: V) -> [V; S];
}

/// A block of every stream.
struct Block<'a, R: Rule<S>, const S: usize> {
    rule: &'a R,
    from: [&'a [R::Wide]; S],
    grad: &'a [R::Wide],
    to: [&'a mut [R::Wide]; S],
}

impl<R: Rule<S>, const S: usize> Kernel<R::Wide> for Block<'_, R, S> {
    #[inline(always)]
    unsafe fn run<V: Lanes<Elem = R::Wide>>(self) {
        let len = self.grad.len();
        let from = self.from.map(<[_]>::as_ptr);
        let to = self.to.map(<[_]>::as_mut_ptr);
        let mut at = 0;
        while at < len {
            let count = V::N.min(len - at);
            // SAFETY: all slices hold `len` elements.
            let grad = V::load_some(self.grad.as_ptr().add(at), count);
            let mut streams = [grad; S];
            for s in 0..S {
                streams[s] = V::load_some(from[s].add(at), count);
            }
            let after = self.rule.step(streams, grad);
            for s in 0..S {
                after[s].store_some(to[s].add(at), count);
            }
            at += V::N;
        }
    }
}

/// The tensors of one stream; none stands for zeros.
type Stream<'a> = &'a [&'a Array];

/// All lists that are given have the shapes of the first; all tensors have its dtype.
fn check(op: &str, lists: &[Stream<'_>]) -> Result<()> {
    let like = lists[0];
    for list in &lists[1..] {
        let fits = list.iter().zip(like).all(|(array, like)| array.same_shape(like));
        if !list.is_empty() && (list.len() != like.len() || !fits) {
            return Err(Error::value(op, format!("lists differ: got {list:?}, expected the shapes of {like:?}")));
        }
    }
    let mut all = lists.iter().flat_map(|list| list.iter());
    if all.any(|array| array.dtype() != like[0].dtype()) {
        return Err(Error::Rejected("tensors of different dtypes"));
    }
    Ok(())
}

/// Where one tensor is read and written.
struct Item<'a, T, const S: usize> {
    from: [Option<Reader<'a, T>>; S],
    grad: Reader<'a, T>,
    to: [SharedMut<T>; S],
}

/// Steps every tensor. The result holds the new tensors of the first stream, then those of the second, and so on.
fn run<T: RowElement, const S: usize>(
    streams: [Stream<'_>; S],
    grads: Stream<'_>,
    rule: &impl Rule<S, Wide = T::Wide>,
) -> Result<Vec<Array>> {
    let count = streams[0].len();
    let mut results = reserved(S * count);
    for _ in 0..S {
        for array in streams[0] {
            results.push(Array::uninit(T::DTYPE, array.shape())?);
        }
    }
    let mut item = |k: usize| Item::<T, S> {
        from: streams.map(|stream| stream.get(k).copied().map(Reader::new)),
        grad: Reader::new(grads[k]),
        to: std::array::from_fn(|s| SharedMut::new(results[s * count + k].mut_ptr::<T>())),
    };
    let part = |item: &Item<'_, T, S>, range: Range<usize>| {
        with_scratch((3 * S + 3) * BLOCK, |scratch: &mut [T::Wide]| {
            for start in range.clone().step_by(BLOCK) {
                // SAFETY: ranges do not overlap, and lie inside the tensor.
                unsafe { block(item, start..(start + BLOCK).min(range.end), scratch, rule) };
            }
        });
    };
    let total: usize = grads.iter().map(|grad| grad.numel()).sum();
    if total < 2 * TASK {
        // No lists, which little tensors would spend more on than on their steps.
        for (k, grad) in grads.iter().enumerate() {
            part(&item(k), 0..grad.numel());
        }
        return Ok(results);
    }
    let mut items = reserved(count);
    let mut tasks = reserved(count);
    for (k, grad) in grads.iter().enumerate() {
        items.push(item(k));
        tasks.extend((0..grad.numel()).step_by(TASK).map(|start| (k, start..(start + TASK).min(grad.numel()))));
    }
    threads::parallel(tasks.len(), &|index| {
        let (k, range) = &tasks[index];
        part(&items[*k], range.clone());
    });
    Ok(results)
}

/// Steps a part of a tensor.
///
/// # Safety
/// No other task works on this part, which lies inside the tensor.
unsafe fn block<T: RowElement, const S: usize>(
    item: &Item<'_, T, S>,
    range: Range<usize>,
    scratch: &mut [T::Wide],
    rule: &impl Rule<S, Wide = T::Wide>,
) {
    let len = range.len();
    let mut buffers = scratch.chunks_exact_mut(BLOCK).map(|buffer| &mut buffer[..len]);
    let mut next = || buffers.next().expect("three buffers per stream, two for the gradient, and zeros");
    let zeros = next();
    if item.from.iter().any(Option::is_none) {
        zeros.fill(T::Wide::ZERO);
    }
    let zeros = &*zeros;
    let grad = T::read(item.grad.part(range.clone(), next()), next());
    let from = item.from.each_ref().map(|from| match from {
        Some(from) => T::read(from.part(range.clone(), next()), next()),
        None => zeros,
    });
    // SAFETY: the caller promises that the range belongs to this task, and every tensor has it.
    let mut rows = item.to.map(|to| to.slice(range.clone()));
    let direct = rows.each_mut().map(|row| T::wide(row));
    if direct.iter().all(Option::is_some) {
        let to = direct.map(Option::unwrap_or_default);
        return launch(Block { rule, from, grad, to });
    }
    let mut wide: [&mut [T::Wide]; S] = std::array::from_fn(|_| next());
    launch(Block { rule, from, grad, to: wide.each_mut().map(|to| &mut **to) });
    for (row, wide) in rows.iter_mut().zip(wide) {
        T::save(wide, row);
    }
}
