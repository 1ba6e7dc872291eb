//! One step of each recurrence, from what inputs and states give to new states.

use crate::array::Array;
use crate::error::{Result, named};
use crate::machine::lanes::{Kernel, Lanes, Real};
use crate::math::{Fma, exponential, special};
use crate::ops::contraction::Gemm;
use crate::ops::parts;

/// A float that recurrences compute in.
pub trait Gate: Gemm + Real {
    /// `1 / (1 + exp(-x))`.
    #[must_use]
    fn sigmoid<M: Fma>(self) -> Self;
    /// Hyperbolic tangent.
    #[must_use]
    fn tanh<M: Fma>(self) -> Self;
    /// One.
    const ONE: Self;
    /// The least normal number over the distance from 1 to the next: products of less may be denormal.
    const TRACE: Self;
    /// 0 for what has vanished; NaN stays.
    #[must_use]
    #[inline(always)]
    fn without_trace(self) -> Self {
        if self < Self::TRACE && Self::default() - self < Self::TRACE { Self::default() } else { self }
    }
}

impl Gate for f32 {
    const ONE: Self = 1.0;
    const TRACE: Self = Self::MIN_POSITIVE / Self::EPSILON;
    #[inline(always)]
    fn sigmoid<M: Fma>(self) -> Self {
        exponential::sigmoid::<M>(self)
    }
    #[inline(always)]
    fn tanh<M: Fma>(self) -> Self {
        exponential::tanh::<M>(self)
    }
}

impl Gate for f64 {
    const ONE: Self = 1.0;
    const TRACE: Self = Self::MIN_POSITIVE / Self::EPSILON;
    #[inline(always)]
    fn sigmoid<M: Fma>(self) -> Self {
        special::double::sigmoid(self)
    }
    #[inline(always)]
    fn tanh<M: Fma>(self) -> Self {
        f64::tanh(self)
    }
}

/// What a plain recurrence does to its sums.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Activation {
    /// `max(x, 0)`, of NaN NaN.
    Relu,
    /// Hyperbolic tangent.
    Tanh,
}

named!(Activation, "rnn": "relu" Relu, "tanh" Tanh);

/// A recurrence of `S` states: makes the kernel of a step of one sequence.
pub trait Cell<T: Gate, const S: usize>: Sync {
    /// From what inputs give, the product of the first state with the weight (which may be overwritten), and old states.
    fn step<'a>(
        &'a self,
        given: &'a [T],
        total: &'a mut [T],
        old: [&'a [T]; S],
        new: [&'a mut [T]; S],
    ) -> impl Kernel<T> + 'a;
}

/// `f(a + b)` in `b`.
#[inline(always)]
pub fn apply<T: Gate>(given: &[T], total: &mut [T], f: impl Fn(T) -> T) {
    for (slot, &x) in total.iter_mut().zip(given) {
        *slot = f(x + *slot);
    }
}

/// Four equal parts.
#[inline(always)]
pub fn quarters<T>(x: &[T]) -> [&[T]; 4] {
    let n = x.len() / 4;
    [&x[..n], &x[n..2 * n], &x[2 * n..3 * n], &x[3 * n..4 * n]]
}

/// The gates of an LSTM, from the parts that inputs and states give; in the second.
#[inline(always)]
pub fn lstm_gates<T: Gate, M: Fma>(given: &[T], total: &mut [T]) {
    let n = given.len() / 4;
    apply(&given[..2 * n], &mut total[..2 * n], T::sigmoid::<M>);
    apply(&given[2 * n..3 * n], &mut total[2 * n..3 * n], T::tanh::<M>);
    apply(&given[3 * n..], &mut total[3 * n..], T::sigmoid::<M>);
}

/// The gates of a GRU, from the parts that inputs and states give, and its new states: reset, update and what the state
/// gives to the new one are left in `total`.
#[inline(always)]
pub fn gru_gates<T: Gate, M: Fma>(given: &[T], total: &mut [T], bias: Option<&[T]>, new: &mut [T]) {
    if let Some(bias) = bias {
        total.iter_mut().zip(bias).for_each(|(slot, &x)| *slot = *slot + x);
    }
    let n = new.len();
    apply(&given[..2 * n], &mut total[..2 * n], T::sigmoid::<M>);
    let parts = given[2 * n..].iter().zip(&total[..n]).zip(&total[2 * n..]);
    for (slot, ((&x, &r), &kept)) in new.iter_mut().zip(parts) {
        *slot = (x + r * kept).tanh::<M>();
    }
}

/// An LSTM.
pub struct Lstm;

struct LstmStep<'a, T> {
    given: &'a [T],
    total: &'a mut [T],
    cell: &'a [T],
    new: [&'a mut [T]; 2],
}

impl<T: Gate> Cell<T, 2> for Lstm {
    fn step<'a>(
        &'a self,
        given: &'a [T],
        total: &'a mut [T],
        [_, cell]: [&'a [T]; 2],
        new: [&'a mut [T]; 2],
    ) -> impl Kernel<T> + 'a {
        LstmStep { given, total, cell, new }
    }
}

impl<T: Gate> Kernel<T> for LstmStep<'_, T> {
    #[inline(always)]
    unsafe fn run<V: Lanes<Elem = T>>(self) {
        lstm_gates::<T, V::Math>(self.given, self.total);
        let [i, f, g, o] = quarters(self.total);
        let [hidden, cell] = self.new;
        let parts = i.iter().zip(f).zip(g).zip(self.cell);
        for (slot, (((&i, &f), &g), &old)) in cell.iter_mut().zip(parts) {
            *slot = f * old + i * g;
        }
        for ((slot, &o), &c) in hidden.iter_mut().zip(o).zip(&*cell) {
            *slot = o * c.tanh::<V::Math>();
        }
    }
}

/// A GRU.
pub struct Gru<T> {
    /// Of the hidden side.
    bias: Option<Vec<T>>,
}

impl<T: Gate> Gru<T> {
    pub fn new(bias: Option<&Array>) -> Result<Self> {
        Ok(Self { bias: bias.map(|x| parts::ready(x, T::DTYPE)?.to_vec::<T>()).transpose()? })
    }

    /// That of the hidden side.
    pub fn bias(&self) -> Option<&[T]> {
        self.bias.as_deref()
    }
}

struct GruStep<'a, T> {
    given: &'a [T],
    total: &'a mut [T],
    bias: Option<&'a [T]>,
    old: &'a [T],
    new: &'a mut [T],
}

impl<T: Gate> Cell<T, 1> for Gru<T> {
    fn step<'a>(
        &'a self,
        given: &'a [T],
        total: &'a mut [T],
        [old]: [&'a [T]; 1],
        [new]: [&'a mut [T]; 1],
    ) -> impl Kernel<T> + 'a {
        GruStep { given, total, bias: self.bias(), old, new }
    }
}

impl<T: Gate> Kernel<T> for GruStep<'_, T> {
    #[inline(always)]
    unsafe fn run<V: Lanes<Elem = T>>(self) {
        let Self { given, total, bias, old, new } = self;
        gru_gates::<T, V::Math>(given, total, bias, new);
        let update = &total[old.len()..];
        for (slot, (&z, &old)) in new.iter_mut().zip(update.iter().zip(old)) {
            *slot = *slot + z * (old - *slot);
        }
    }
}

/// A plain recurrence.
pub struct Rnn {
    pub activation: Activation,
}

struct RnnStep<'a, T> {
    given: &'a [T],
    total: &'a [T],
    new: &'a mut [T],
    activation: Activation,
}

impl<T: Gate> Cell<T, 1> for Rnn {
    fn step<'a>(
        &'a self,
        given: &'a [T],
        total: &'a mut [T],
        _: [&'a [T]; 1],
        [new]: [&'a mut [T]; 1],
    ) -> impl Kernel<T> + 'a {
        RnnStep { given, total, new, activation: self.activation }
    }
}

impl<T: Gate> Kernel<T> for RnnStep<'_, T> {
    #[inline(always)]
    unsafe fn run<V: Lanes<Elem = T>>(self) {
        let Self { given, total, new, activation } = self;
        new.copy_from_slice(total);
        let zero = T::default();
        match activation {
            Activation::Relu => apply(given, new, |x| if x < zero { zero } else { x }),
            Activation::Tanh => apply(given, new, T::tanh::<V::Math>),
        }
    }
}
