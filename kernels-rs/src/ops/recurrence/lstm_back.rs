//! The way back through an LSTM. What its gates were is computed again.

use super::Given;
use super::gates::{Gate, lstm_gates, quarters};
use super::walk::{Job, product, rows};
use crate::array::Array;
use crate::array::view;
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::machine::lanes::{Kernel, Lanes, launch};
use crate::machine::threads::SharedMut;
use crate::memory::scratch::filled;
use crate::ops::elementwise::convert::cast;
use crate::ops::parts;
use std::ops::Range;

/// What came out of the steps, and its cotangents; None where a result was not used. (N, steps, H) each.
#[derive(Clone, Copy)]
pub struct Found<'a> {
    /// Hidden states.
    pub hiddens: &'a Array,
    /// Cells.
    pub cells: &'a Array,
    /// Of the hidden states.
    pub g_hiddens: Option<&'a Array>,
    /// Of the cells.
    pub g_cells: Option<&'a Array>,
}

/// Cotangents of what inputs give, (N, steps, 4 * H), and of the states at the start, (N, H).
pub fn lstm_steps_backward(
    given: &Given<'_>,
    hidden: &Array,
    cell: &Array,
    found: &Found<'_>,
) -> Result<(Array, Array, Array)> {
    let dtype = given.inputs.dtype();
    let all = if dtype == DType::F64 {
        back::<f64>(given, [hidden, cell], found)?
    } else {
        back::<f32>(given, [hidden, cell], found)?
    };
    let [pulls, hidden, cell] = all;
    Ok((cast(&pulls, dtype)?, cast(&hidden, dtype)?, cast(&cell, dtype)?))
}

fn back<T: Gate>(given: &Given<'_>, starts: [&Array; 2], found: &Found<'_>) -> Result<[Array; 3]> {
    let job = given.job::<T, 2>(starts, 4)?;
    let [n, steps, size, wide] = job.sizes();
    let fits = |x: &Array| x.shape()[..] == [n, steps, size] && x.dtype() == given.inputs.dtype();
    let made = [Some(found.hiddens), Some(found.cells), found.g_hiddens, found.g_cells];
    if !made.into_iter().flatten().all(fits) {
        return Err(Error::Rejected("a recurrence wants states and cotangents of its steps"));
    }
    let ready = |x: &Array| parts::ready(x, T::DTYPE);
    let walk = Walk::<T> {
        turned: view::permute_dims(&job.weight, &[1, 0])?.contiguous()?,
        states: [ready(found.hiddens)?, ready(found.cells)?],
        wanted: [found.g_hiddens.map(ready).transpose()?, found.g_cells.map(ready).transpose()?],
        job,
        float: std::marker::PhantomData,
    };
    let mut pulls = Array::uninit(T::DTYPE, &[n, steps, wide])?;
    let (mut first, mut memory) = (Array::zeros(T::DTYPE, &[n, size])?, Array::zeros(T::DTYPE, &[n, size])?);
    let to = [&mut pulls, &mut first, &mut memory].map(|x| SharedMut::new(x.mut_ptr::<T>()));
    walk.job.run(&|sequences| walk.some(sequences, to))?;
    Ok([pulls, first, memory])
}

/// Dense operands of the way back.
struct Walk<T> {
    job: Job<2>,
    /// The weight (4 * H, H).
    turned: Array,
    states: [Array; 2],
    wanted: [Option<Array>; 2],
    float: std::marker::PhantomData<T>,
}

impl<T: Gate> Walk<T> {
    /// A line of (N, steps, H) at a step, or at the start in front of all.
    fn line(&self, which: usize, sequence: usize, step: Option<usize>) -> &[T] {
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

    /// Cotangents of products, of hidden states and of cells, for some sequences.
    fn some(&self, sequences: Range<usize>, to: [SharedMut<T>; 3]) -> Result<()> {
        let [_, steps, size, wide] = self.job.sizes();
        let (count, first) = (sequences.len(), sequences.start);
        let [pulls, hidden, cell] = to;
        // SAFETY: each task has its own sequences.
        let (carried, memory) = unsafe {
            let own = first * size..sequences.end * size;
            (hidden.slice(own.clone()), cell.slice(own))
        };
        let inputs = self.job.inputs.as_slice::<T>().expect("made dense");
        let (mut gates, mut state) = (filled(T::default(), count * wide), filled(T::default(), count * size));
        for step in self.job.order(true) {
            let old = match self.before(step) {
                None => rows(self.line(0, first, None).as_ptr().cast_mut(), size),
                Some(old) => rows(self.line(0, first, Some(old)).as_ptr().cast_mut(), steps * size),
            };
            let weight = rows(self.job.weight.ptr::<T>().cast_mut(), wide);
            // SAFETY: states of these sequences, the weight, and room for their product.
            unsafe { product((count, size, wide), old, weight, rows(gates.as_mut_ptr(), wide))? };
            for (i, sequence) in sequences.clone().enumerate() {
                let line = i * size..(i + 1) * size;
                let at = sequence * steps + step;
                let wanted = self
                    .wanted
                    .each_ref()
                    .map(|x| x.as_ref().map(|x| &x.as_slice::<T>().expect("made dense")[at * size..(at + 1) * size]));
                // SAFETY: as above.
                let pull = unsafe { pulls.slice(at * wide..(at + 1) * wide) };
                launch(Back {
                    given: self.job.counts(sequence, step).then(|| &inputs[at * wide..(at + 1) * wide]),
                    gates: &mut gates[i * wide..(i + 1) * wide],
                    cells: [self.line(1, sequence, self.before(step)), self.line(1, sequence, Some(step))],
                    wanted,
                    carried: &carried[line.clone()],
                    state: &mut state[line.clone()],
                    memory: &mut memory[line],
                    pull,
                });
            }
            let from = rows(pulls.ptr().wrapping_add((first * steps + step) * wide), steps * wide);
            // SAFETY: the cotangents just written, the turned weight, and the lines of these sequences.
            unsafe {
                let turned = rows(self.turned.ptr::<T>().cast_mut(), size);
                product((count, wide, size), from, turned, rows(carried.as_mut_ptr(), size))?;
            }
            for (i, sequence) in sequences.clone().enumerate() {
                if !self.job.counts(sequence, step) {
                    carried[i * size..(i + 1) * size].copy_from_slice(&state[i * size..(i + 1) * size]);
                }
            }
        }
        Ok(())
    }
}

/// One step back of one sequence.
struct Back<'a, T> {
    /// What its input gives; None where the step does not count.
    given: Option<&'a [T]>,
    /// What its hidden state gives.
    gates: &'a mut [T],
    /// Behind the step before, and behind this one.
    cells: [&'a [T]; 2],
    wanted: [Option<&'a [T]>; 2],
    carried: &'a [T],
    /// The cotangent of the hidden state.
    state: &'a mut [T],
    /// That of the cell behind this step, then of the one before.
    memory: &'a mut [T],
    pull: &'a mut [T],
}

impl<T: Gate> Kernel<T> for Back<'_, T> {
    #[inline(always)]
    unsafe fn run<V: Lanes<Elem = T>>(self) {
        let Self { given, gates, cells: [old, new], wanted, carried, state, memory, pull } = self;
        state.copy_from_slice(carried);
        for (slot, wanted) in [(&mut *state, wanted[0]), (&mut *memory, wanted[1])] {
            slot.iter_mut().zip(wanted.unwrap_or_default()).for_each(|(slot, &g)| *slot = *slot + g);
        }
        let Some(given) = given else { return pull.fill(T::default()) };
        lstm_gates::<T, V::Math>(given, gates);
        let [i, f, g, o] = quarters(gates);
        let n = i.len();
        let (a, rest) = pull.split_at_mut(n);
        let (b, rest) = rest.split_at_mut(n);
        let (c, d) = rest.split_at_mut(n);
        let one = T::ONE;
        for (((slot, &new), (m, &state)), &o) in d.iter_mut().zip(new).zip(memory.iter_mut().zip(&*state)).zip(o) {
            let seen = new.tanh::<V::Math>();
            *m = *m + state * (o * (one - seen * seen));
            *slot = state * (seen * o * (one - o));
        }
        let cotangents = a.iter_mut().zip(b).zip(c).zip(memory);
        let parts = i.iter().zip(f).zip(g).zip(old);
        for ((((a, b), c), m), (((&i, &f), &g), &old)) in cotangents.zip(parts) {
            *a = *m * (g * i * (one - i));
            *b = *m * (old * f * (one - f));
            *c = *m * (i * (one - g * g));
            *m = *m * f;
        }
    }
}
