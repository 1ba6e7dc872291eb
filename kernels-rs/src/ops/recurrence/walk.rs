//! The walk over the steps, for all recurrences.

use super::gates::{Cell, Gate};
use crate::array::Array;
use crate::error::Result;
use crate::machine::lanes::launch;
use crate::machine::threads::{self, SharedMut};
use crate::memory::scratch::filled;
use crate::ops::contraction::{Call, Epilogue, Matrix, multiply};
use std::ops::Range;

/// Multiply-adds of a whole walk below which it has one task.
const SERIAL: usize = 1 << 19;
/// Sequences of a task: fewer would read the weights more often than they pay.
const TOGETHER: usize = 8;

/// Dense operands in the dtype that is computed in; `S` states.
pub struct Job<const S: usize> {
    pub inputs: Array,
    pub weight: Array,
    pub lengths: Option<Array>,
    pub starts: [Array; S],
    pub reverse: bool,
}

impl<const S: usize> Job<S> {
    /// Sequences, steps, size of a state, and of what the gates are made of.
    pub fn sizes(&self) -> [usize; 4] {
        let shape = self.inputs.shape();
        [shape[0], shape[1], self.weight.shape()[0], shape[2]]
    }

    /// The steps in their order.
    pub fn order(&self, backwards: bool) -> Box<dyn Iterator<Item = usize>> {
        let steps = 0..self.inputs.shape()[1];
        if self.reverse == backwards { Box::new(steps) } else { Box::new(steps.rev()) }
    }

    /// Whether a step of a sequence counts.
    pub fn counts(&self, sequence: usize, step: usize) -> bool {
        let lengths = self.lengths.as_ref().and_then(Array::as_slice::<i64>);
        lengths.is_none_or(|lengths| (step as i64) < lengths[sequence])
    }

    /// Runs `work` over the sequences, some at a time.
    pub fn run(&self, work: &(dyn Fn(Range<usize>) -> Result<()> + Sync)) -> Result<()> {
        let [n, steps, size, wide] = self.sizes();
        let whole = n.saturating_mul(steps).saturating_mul(size).saturating_mul(wide);
        let together = if whole < SERIAL { n.max(1) } else { n.div_ceil(n.div_ceil(TOGETHER).max(1)) };
        threads::try_parallel(n.div_ceil(together), &|task| work(task * together..n.min((task + 1) * together)))
    }
}

/// A matrix of some rows, with steps between rows and between columns of 1.
pub fn rows<T>(start: *mut T, pitch: usize) -> Matrix<T> {
    Matrix::new(start, (pitch as isize, 1))
}

/// `c = a @ b`.
///
/// # Safety
/// The matrices have these sizes, and `c` overlaps nothing.
pub unsafe fn product<T: Gate>(size: (usize, usize, usize), a: Matrix<T>, b: Matrix<T>, c: Matrix<T>) -> Result<()> {
    if size.0 * size.2 == 0 {
        return Ok(());
    }
    multiply(&Call { size, a, b, c, end: Epilogue::default() }, false, None)
}

/// The states (N, steps, H) behind each step.
pub fn walk<T: Gate, const S: usize>(job: &Job<S>, cell: &impl Cell<T, S>) -> Result<[Array; S]> {
    let [n, steps, size, wide] = job.sizes();
    let mut found = Vec::new();
    for _ in 0..S {
        found.push(Array::uninit(T::DTYPE, &[n, steps, size])?);
    }
    let outs: Vec<_> = found.iter_mut().map(|x| SharedMut::new(x.mut_ptr::<T>())).collect();
    let inputs = job.inputs.as_slice::<T>().expect("made dense");
    let starts = job.starts.each_ref().map(|x| x.as_slice::<T>().expect("made dense"));
    job.run(&|sequences| {
        let mut total = filled(T::default(), sequences.len() * wide);
        let mut before: Option<usize> = None;
        for step in job.order(false) {
            let at = |sequence: usize, step: usize| (sequence * steps + step) * size;
            let first = sequences.start;
            let hidden = match before {
                None => rows(starts[0][first * size..].as_ptr().cast_mut(), size),
                Some(old) => rows(outs[0].ptr().wrapping_add(at(first, old)), steps * size),
            };
            let weight = rows(job.weight.ptr::<T>().cast_mut(), wide);
            let size_of = (sequences.len(), size, wide);
            // SAFETY: states of these sequences, the weight, and room for their product.
            unsafe { product(size_of, hidden, weight, rows(total.as_mut_ptr(), wide))? };
            for (sequence, total) in sequences.clone().zip(total.chunks_exact_mut(wide.max(1))) {
                // SAFETY: each task has its own sequences, and the step before differs from this one.
                let old: [&[T]; S] = std::array::from_fn(|i| match before {
                    None => &starts[i][sequence * size..(sequence + 1) * size],
                    // SAFETY: as above.
                    Some(old) => unsafe { &*outs[i].slice(at(sequence, old)..at(sequence, old) + size) },
                });
                // SAFETY: as above.
                let new: [&mut [T]; S] =
                    std::array::from_fn(|i| unsafe { outs[i].slice(at(sequence, step)..at(sequence, step) + size) });
                if job.counts(sequence, step) {
                    let given = &inputs[(sequence * steps + step) * wide..][..wide];
                    launch(cell.step(given, total, old, new));
                } else {
                    new.into_iter().zip(old).for_each(|(new, old)| new.copy_from_slice(old));
                }
            }
            before = Some(step);
        }
        Ok(())
    })?;
    Ok(found.try_into().expect("as many as there are states"))
}
