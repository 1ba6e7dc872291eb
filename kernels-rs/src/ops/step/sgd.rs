//! Gradient descent with momentum.

use super::{Rule, Stream, check, run};
use crate::array::Array;
use crate::array::float::Wide;
use crate::dispatch;
use crate::error::{Error, Result};
use crate::machine::lanes::Lanes;

/// Settings of a step.
pub struct Sgd {
    /// The learning rate.
    pub lr: f64,
    /// Share of the last velocity that is kept; 0 for none.
    pub momentum: f64,
    /// Share of the gradient that a velocity leaves out.
    pub dampening: f64,
    /// Factor of an L2 penalty.
    pub weight_decay: f64,
    /// Look ahead by the momentum.
    pub nesterov: bool,
}

/// One step for each of `lists[0]`, with the gradients `lists[1]` and the velocities, which may be absent, as at the first
/// step.
pub fn sgd(lists: [Stream<'_>; 3], settings: &Sgd) -> Result<Vec<Array>> {
    check("sgd_step", &lists)?;
    let [tensors, grads, velocities] = lists;
    let Some(dtype) = tensors.first().map(|array| array.dtype()) else { return Ok(Vec::new()) };
    let starts = velocities.is_empty();
    dispatch!(float dtype, T => {
        let rule = Factors::new(settings, starts);
        if settings.momentum == 0.0 {
            run::<T, 1>([tensors], grads, &rule)
        } else {
            run::<T, 2>([tensors, velocities], grads, &rule)
        }
    }, else Err(Error::Rejected("sgd_step takes floats")))
}

/// What elements are multiplied with, rounded to their type.
struct Factors<W> {
    decay: Option<W>,
    lr: W,
    momentum: W,
    /// For the gradient in a velocity; none where the velocity starts as the gradient.
    rest: Option<W>,
    nesterov: bool,
}

impl<W: Wide> Factors<W> {
    fn new(settings: &Sgd, starts: bool) -> Self {
        Self {
            decay: (settings.weight_decay != 0.0).then(|| W::from_f64(settings.weight_decay)),
            lr: W::from_f64(settings.lr),
            momentum: W::from_f64(settings.momentum),
            rest: (!starts).then(|| W::from_f64(1.0 - settings.dampening)),
            nesterov: settings.nesterov,
        }
    }
}

impl<W: Wide> Factors<W> {
    /// The gradient with the penalty.
    #[inline(always)]
    unsafe fn pull<V: Lanes<Elem = W>>(&self, x: V, grad: V) -> V {
        if let Some(decay) = self.decay { grad.add(x.mul(V::splat(decay))) } else { grad }
    }

    #[inline(always)]
    unsafe fn descend<V: Lanes<Elem = W>>(&self, x: V, step: V) -> V {
        x.sub(step.mul(V::splat(self.lr)))
    }
}

impl<W: Wide> Rule<1> for Factors<W> {
    type Wide = W;
    #[inline(always)]
    unsafe fn step<V: Lanes<Elem = W>>(&self, [x]: [V; 1], grad: V) -> [V; 1] {
        [self.descend(x, self.pull(x, grad))]
    }
}

impl<W: Wide> Rule<2> for Factors<W> {
    type Wide = W;
    #[inline(always)]
    unsafe fn step<V: Lanes<Elem = W>>(&self, [x, v]: [V; 2], grad: V) -> [V; 2] {
        let momentum = V::splat(self.momentum);
        let grad = self.pull(x, grad);
        let v = if let Some(rest) = self.rest { v.mul(momentum).add(grad.mul(V::splat(rest))) } else { grad };
        let step = if self.nesterov { grad.add(v.mul(momentum)) } else { v };
        [self.descend(x, step), v]
    }
}
