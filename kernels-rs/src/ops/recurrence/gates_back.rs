//! One step back of each recurrence, from the cotangents of new states to those of products, of inputs and of old states.

use super::back::{CellBack, Step};
use super::gates::{Activation, Gate, Gru, Lstm, Rnn, gru_gates, lstm_gates, quarters};
use crate::machine::lanes::{Kernel, Lanes};

struct LstmBack<'a, T> {
    step: Step<'a, T, 2>,
    pull: &'a mut [T],
}

impl<T: Gate> CellBack<T, 2, 1> for Lstm {
    const GATED: bool = true;
    fn step_back<'a>(&'a self, step: Step<'a, T, 2>, [pull]: [&'a mut [T]; 1]) -> impl Kernel<T> + 'a {
        LstmBack { step, pull }
    }
}

impl<T: Gate> Kernel<T> for LstmBack<'_, T> {
    #[inline(always)]
    unsafe fn run<V: Lanes<Elem = T>>(self) {
        let Step { given, total, old: [_, old], new: [_, new], states: [state, memory] } = self.step;
        lstm_gates::<T, V::Math>(given, total);
        let [i, f, g, o] = quarters(total);
        let n = i.len();
        let (a, rest) = self.pull.split_at_mut(n);
        let (b, rest) = rest.split_at_mut(n);
        let (c, d) = rest.split_at_mut(n);
        let one = T::ONE;
        for (((slot, &new), (m, state)), &o) in d.iter_mut().zip(new).zip(memory.iter_mut().zip(&mut *state)).zip(o) {
            let seen = new.tanh::<V::Math>();
            *m = *m + *state * (o * (one - seen * seen));
            *slot = *state * (seen * o * (one - o));
        }
        let cotangents = a.iter_mut().zip(b).zip(c).zip(memory);
        let parts = i.iter().zip(f).zip(g).zip(old);
        for ((((a, b), c), m), (((&i, &f), &g), &old)) in cotangents.zip(parts) {
            *a = *m * (g * i * (one - i));
            *b = *m * (old * f * (one - f));
            *c = *m * (i * (one - g * g));
            *m = *m * f;
        }
        state.fill(T::default());
    }
}

struct GruBack<'a, T> {
    step: Step<'a, T, 1>,
    bias: Option<&'a [T]>,
    /// Of products, and of inputs: they differ in what the reset gate takes from the new state.
    pulls: [&'a mut [T]; 2],
}

impl<T: Gate> CellBack<T, 1, 2> for Gru<T> {
    const GATED: bool = true;
    fn step_back<'a>(&'a self, step: Step<'a, T, 1>, pulls: [&'a mut [T]; 2]) -> impl Kernel<T> + 'a {
        GruBack { step, bias: self.bias(), pulls }
    }
}

impl<T: Gate> Kernel<T> for GruBack<'_, T> {
    #[inline(always)]
    unsafe fn run<V: Lanes<Elem = T>>(self) {
        let Step { given, total, old: [old], states: [state], .. } = self.step;
        let [pull, outer] = self.pulls;
        let (n, one) = (old.len(), T::ONE);
        let (by_reset, rest) = outer.split_at_mut(n);
        let (by_update, by_new) = rest.split_at_mut(n);
        gru_gates::<T, V::Math>(given, total, self.bias, by_new);
        let (reset, rest) = total.split_at(n);
        let (update, kept) = rest.split_at(n);
        let cotangents = by_update.iter_mut().zip(&mut *by_new).zip(state);
        for (((by_update, by_new), state), (&z, &old)) in cotangents.zip(update.iter().zip(old)) {
            let new = *by_new;
            *by_update = *state * ((old - new) * (z * (one - z)));
            *by_new = *state * ((one - z) * (one - new * new));
            *state = *state * z;
        }
        let (first, last) = pull.split_at_mut(2 * n);
        let cotangents = by_reset.iter_mut().zip(last).zip(&*by_new);
        for (((by_reset, last), &by_new), (&r, &kept)) in cotangents.zip(reset.iter().zip(kept)) {
            *by_reset = by_new * kept * (r * (one - r));
            *last = by_new * r;
        }
        first.copy_from_slice(&outer[..2 * n]);
    }
}

struct RnnBack<'a, T> {
    step: Step<'a, T, 1>,
    activation: Activation,
    pull: &'a mut [T],
}

impl<T: Gate> CellBack<T, 1, 1> for Rnn {
    const GATED: bool = false;
    fn step_back<'a>(&'a self, step: Step<'a, T, 1>, [pull]: [&'a mut [T]; 1]) -> impl Kernel<T> + 'a {
        RnnBack { step, activation: self.activation, pull }
    }
}

impl<T: Gate> Kernel<T> for RnnBack<'_, T> {
    #[inline(always)]
    unsafe fn run<V: Lanes<Elem = T>>(self) {
        let Step { new: [new], states: [state], .. } = self.step;
        let (zero, one) = (T::default(), T::ONE);
        let lines = self.pull.iter_mut().zip(&*state).zip(new);
        match self.activation {
            Activation::Relu => {
                lines.for_each(|((slot, &g), &y)| *slot = g * if y > zero { one } else { zero });
            }
            Activation::Tanh => lines.for_each(|((slot, &g), &y)| *slot = g * (one - y * y)),
        }
        state.fill(zero);
    }
}
