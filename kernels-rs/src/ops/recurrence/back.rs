//! The walk back over the steps, for all recurrences. What the gates were is computed again.

use super::Given;
use super::gates::Gate;
use super::walk::{Job, product, rows};
use crate::array::Array;
use crate::array::view;
use crate::error::{Error, Result};
use crate::machine::lanes::{Kernel, Lanes, launch};
use crate::machine::threads::SharedMut;
use crate::memory::scratch::filled;
use crate::ops::parts;
use std::ops::Range;

/// What a step back of one sequence reads and writes.
pub struct Step<'a, T, const S: usize> {
    /// What its input gives.
    pub given: &'a [T],
    /// The product of its old hidden state with the weight, which may be overwritten; unset where the recurrence does
    /// not ask for it.
    pub total: &'a mut [T],
    /// States behind the step before.
    pub old: [&'a [T]; S],
    /// States behind this step.
    pub new: [&'a [T]; S],
    /// Cotangents of the states behind this step; left are those of the ones before, without what products give.
    pub states: [&'a mut [T]; S],
}

/// A recurrence of `S` states whose steps back give `P` rows of cotangents: that of the products of states with the
/// weight first, that of what inputs give last.
pub trait CellBack<T: Gate, const S: usize, const P: usize>: Sync {
    /// Whether a step back wants the product of the old state with the weight.
    const GATED: bool;
    /// The kernel of a step back of one sequence.
    fn step_back<'a>(&'a self, step: Step<'a, T, S>, pulls: [&'a mut [T]; P]) -> impl Kernel<T> + 'a;
}

/// Refuses states and cotangents of other steps.
pub fn require_of_steps<'a>(given: &Given<'_>, each: impl IntoIterator<Item = &'a Array>) -> Result<()> {
    let (&[n, steps, _], Some(&size)) = (&given.inputs.shape()[..], given.weight.shape().first()) else {
        return Err(Error::Rejected("a recurrence wants a sequence and a weight"));
    };
    if each.into_iter().any(|x| x.shape()[..] != [n, steps, size] || x.dtype() != given.inputs.dtype()) {
        return Err(Error::Rejected("a recurrence wants states and cotangents of its steps"));
    }
    Ok(())
}

/// Cotangents of `P` kinds of rows (N, steps, gates * H), and of the states at the start (N, H). Of the states behind
/// each step, and of their cotangents (None where a result was not used), each is (N, steps, H).
pub fn back<T: Gate, const S: usize, const P: usize>(
    job: Job<S>,
    states: [&Array; S],
    wanted: [Option<&Array>; S],
    cell: &impl CellBack<T, S, P>,
) -> Result<([Array; P], [Array; S])> {
    let [n, steps, size, wide] = job.sizes();
    let (mut behind, mut cotangents) = (states.map(Array::clone), [const { None }; S]);
    for ((state, slot), wanted) in behind.iter_mut().zip(&mut cotangents).zip(wanted) {
        *state = parts::ready(state, T::DTYPE)?;
        *slot = wanted.map(|x| parts::ready(x, T::DTYPE)).transpose()?;
    }
    let turned = view::permute_dims(&job.weight, &[1, 0])?.contiguous()?;
    let walk = Walk { turned, states: behind, wanted: cotangents, job };
    let (mut pulls, mut firsts) = (Vec::new(), Vec::new());
    for _ in 0..P {
        pulls.push(Array::uninit(T::DTYPE, &[n, steps, wide])?);
    }
    for _ in 0..S {
        firsts.push(Array::zeros(T::DTYPE, &[n, size])?);
    }
    let (mut pulls, mut firsts): ([Array; P], [Array; S]) =
        (pulls.try_into().expect("as many"), firsts.try_into().expect("as many"));
    let to = To {
        pulls: pulls.each_mut().map(|x| SharedMut::new(x.mut_ptr::<T>())),
        states: firsts.each_mut().map(|x| SharedMut::new(x.mut_ptr::<T>())),
    };
    walk.job.run(&|sequences| walk.some(cell, sequences, &to))?;
    Ok((pulls, firsts))
}

/// Where cotangents are written.
struct To<T, const S: usize, const P: usize> {
    pulls: [SharedMut<T>; P],
    states: [SharedMut<T>; S],
}

/// Dense operands of the way back.
struct Walk<const S: usize> {
    job: Job<S>,
    /// The weight (gates * H, H).
    turned: Array,
    states: [Array; S],
    wanted: [Option<Array>; S],
}

impl<const S: usize> Walk<S> {
    /// A line of a state behind a step, or at the start in front of all.
    fn line<T: Gate>(&self, which: usize, sequence: usize, step: Option<usize>) -> &[T] {
        let [_, steps, size, _] = self.job.sizes();
        let (from, at) = match step {
            None => (&self.job.starts[which], sequence),
            Some(step) => (&self.states[which], sequence * steps + step),
        };
        &from.as_slice::<T>().expect("made dense")[at * size..(at + 1) * size]
    }

    /// The step whose state a step began with.
    fn before(&self, step: usize) -> Option<usize> {
        let next = if self.job.reverse { step + 1 } else { step.wrapping_sub(1) };
        (next < self.job.sizes()[1]).then_some(next)
    }

    /// Cotangents of products and of states, for some sequences.
    fn some<T: Gate, C: CellBack<T, S, P>, const P: usize>(
        &self,
        cell: &C,
        sequences: Range<usize>,
        to: &To<T, S, P>,
    ) -> Result<()> {
        let [_, steps, size, wide] = self.job.sizes();
        let (count, first) = (sequences.len(), sequences.start);
        let gated = if C::GATED { wide } else { 0 };
        let (mut total, mut passed) = (filled(T::default(), count * gated), filled(T::default(), count * size));
        for step in self.job.order(true) {
            if C::GATED {
                let before = self.before(step);
                let pitch = if before.is_some() { steps * size } else { size };
                let old = rows(self.line::<T>(0, first, before).as_ptr().cast_mut(), pitch);
                let weight = rows(self.job.weight.ptr::<T>().cast_mut(), wide);
                // SAFETY: states of these sequences, the weight, and room for their product.
                unsafe { product((count, size, wide), old, weight, rows(total.as_mut_ptr(), wide))? };
            }
            for (i, sequence) in sequences.clone().enumerate() {
                self.one(cell, (sequence, step), &mut total[i * gated..(i + 1) * gated], to);
            }
            let pulls = rows(to.pulls[0].ptr().wrapping_add((first * steps + step) * wide), steps * wide);
            let turned = rows(self.turned.ptr::<T>().cast_mut(), size);
            // SAFETY: the cotangents just written, the turned weight, and room for their product.
            unsafe { product((count, wide, size), pulls, turned, rows(passed.as_mut_ptr(), size))? };
            for (i, sequence) in sequences.clone().enumerate() {
                // SAFETY: each task has its own sequences.
                let states = to.states.map(|x| unsafe { x.slice(sequence * size..(sequence + 1) * size) });
                let passed = self.job.counts(sequence, step).then(|| &passed[i * size..(i + 1) * size]);
                launch(Passed { states, passed });
            }
        }
        Ok(())
    }

    /// A step back of one sequence, up to its product with the weight.
    fn one<T: Gate, const P: usize>(
        &self,
        cell: &impl CellBack<T, S, P>,
        (sequence, step): (usize, usize),
        total: &mut [T],
        to: &To<T, S, P>,
    ) {
        let [_, steps, size, wide] = self.job.sizes();
        let at = sequence * steps + step;
        // SAFETY: each task has its own sequences.
        let (mut states, pulls) = unsafe {
            (
                to.states.map(|x| x.slice(sequence * size..(sequence + 1) * size)),
                to.pulls.map(|x| x.slice(at * wide..(at + 1) * wide)),
            )
        };
        for (state, wanted) in states.iter_mut().zip(&self.wanted) {
            if let Some(wanted) = wanted {
                let wanted = &wanted.as_slice::<T>().expect("made dense")[at * size..(at + 1) * size];
                launch(Arrived { state, wanted });
            }
        }
        if !self.job.counts(sequence, step) {
            return pulls.into_iter().for_each(|pull| pull.fill(T::default()));
        }
        let inputs = self.job.inputs.as_slice::<T>().expect("made dense");
        let behind = |step| std::array::from_fn(|which| self.line(which, sequence, step));
        let (old, new) = (behind(self.before(step)), behind(Some(step)));
        let step = Step { given: &inputs[at * wide..(at + 1) * wide], total, old, new, states };
        launch(cell.step_back(step, pulls));
    }
}

/// The cotangent of a result joins that of its state.
struct Arrived<'a, T> {
    state: &'a mut [T],
    wanted: &'a [T],
}

impl<T: Gate> Kernel<T> for Arrived<'_, T> {
    #[inline(always)]
    unsafe fn run<V: Lanes<Elem = T>>(self) {
        self.state.iter_mut().zip(self.wanted).for_each(|(slot, &g)| *slot = *slot + g);
    }
}

/// What goes on to the step before; traces of what has vanished do not, for products of them would be denormal, of
/// which each takes a hundred times as long.
struct Passed<'a, T, const S: usize> {
    states: [&'a mut [T]; S],
    /// What products give to the hidden state; None where the step does not count.
    passed: Option<&'a [T]>,
}

impl<T: Gate, const S: usize> Kernel<T> for Passed<'_, T, S> {
    #[inline(always)]
    unsafe fn run<V: Lanes<Elem = T>>(self) {
        if let Some(passed) = self.passed {
            self.states[0].iter_mut().zip(passed).for_each(|(slot, &x)| *slot = *slot + x);
        }
        for state in self.states {
            for slot in state.iter_mut() {
                *slot = slot.without_trace();
            }
        }
    }
}
