//! Adam and its relatives.

use super::{Rule, Stream, check, run};
use crate::array::Array;
use crate::array::float::Wide;
use crate::dispatch;
use crate::error::{Error, Result};
use crate::machine::lanes::Lanes;

/// Settings of a step.
pub struct Adam {
    /// The learning rate.
    pub lr: f64,
    /// 1 for the first step.
    pub time: i64,
    /// Decays of the means.
    pub betas: (f64, f64),
    /// Added to the root of the second mean.
    pub epsilon: f64,
    /// Factor of the decay of the parameter.
    pub weight_decay: f64,
    /// The decay acts on the parameter, not by way of the gradient.
    pub decoupled: bool,
    /// Divide by the root of the largest second mean so far.
    pub amsgrad: bool,
}

/// One step for each of `lists[0]`, with the gradients `lists[1]`, first means, second means, and largest second means.
/// Means may be absent, as at the first step.
pub fn adam(lists: [Stream<'_>; 5], settings: &Adam) -> Result<Vec<Array>> {
    check("adam_step", &lists)?;
    let [tensors, grads, firsts, seconds, largest] = lists;
    if firsts.is_empty() != seconds.is_empty() {
        return Err(Error::value("adam_step", "one mean without the other"));
    }
    let Some(dtype) = tensors.first().map(|array| array.dtype()) else { return Ok(Vec::new()) };
    dispatch!(float dtype, T => {
        let rule = Factors::new(settings);
        if settings.amsgrad {
            run::<T, 4>([tensors, firsts, seconds, largest], grads, &rule)
        } else {
            run::<T, 3>([tensors, firsts, seconds], grads, &rule)
        }
    }, else Err(Error::Rejected("adam_step takes floats")))
}

/// What elements are multiplied with, rounded to their type.
struct Factors<W> {
    /// For the gradient, where the decay is not decoupled.
    decay: Option<W>,
    /// For the parameter, where it is.
    keep: Option<W>,
    lr: W,
    beta: [W; 2],
    rest: [W; 2],
    first_scale: W,
    root_scale: W,
    epsilon: W,
}

impl<W: Wide> Factors<W> {
    fn new(settings: &Adam) -> Self {
        let Adam { lr, time, betas, epsilon, weight_decay, decoupled, .. } = *settings;
        let time = i32::try_from(time).unwrap_or(i32::MAX);
        let decays = weight_decay != 0.0;
        let of = W::from_f64;
        Self {
            decay: (decays && !decoupled).then(|| of(weight_decay)),
            keep: (decays && decoupled).then(|| of(1.0 - lr * weight_decay)),
            lr: of(lr),
            beta: [of(betas.0), of(betas.1)],
            rest: [of(1.0 - betas.0), of(1.0 - betas.1)],
            first_scale: of(1.0 / (1.0 - betas.0.powi(time))),
            root_scale: of(1.0 / (1.0 - betas.1.powi(time)).sqrt()),
            epsilon: of(epsilon),
        }
    }
}

impl<W: Wide> Factors<W> {
    /// The gradient with the penalty.
    #[inline(always)]
    unsafe fn pull<V: Lanes<Elem = W>>(&self, x: V, grad: V) -> V {
        if let Some(decay) = self.decay { grad.add(x.mul(V::splat(decay))) } else { grad }
    }

    /// The parameter after the step, and the new means. With `top`, the largest second mean is the root's.
    #[inline(always)]
    unsafe fn all<V: Lanes<Elem = W>>(&self, [x, m, v]: [V; 3], top: Option<V>, grad: V) -> ([V; 3], V) {
        let grad = self.pull(x, grad);
        let m = grad.mul(V::splat(self.rest[0])).add(m.mul(V::splat(self.beta[0])));
        let v = grad.mul(grad).mul(V::splat(self.rest[1])).add(v.mul(V::splat(self.beta[1])));
        let top = if let Some(top) = top { v.max_or_nan(top) } else { v };
        let root = top.sqrt().mul(V::splat(self.root_scale)).add(V::splat(self.epsilon));
        let step = m.mul(V::splat(self.first_scale)).div(root);
        let kept = if let Some(keep) = self.keep { x.mul(V::splat(keep)) } else { x };
        ([kept.sub(step.mul(V::splat(self.lr))), m, v], top)
    }
}

impl<W: Wide> Rule<3> for Factors<W> {
    type Wide = W;
    #[inline(always)]
    unsafe fn step<V: Lanes<Elem = W>>(&self, streams: [V; 3], grad: V) -> [V; 3] {
        self.all(streams, None, grad).0
    }
}

impl<W: Wide> Rule<4> for Factors<W> {
    type Wide = W;
    #[inline(always)]
    unsafe fn step<V: Lanes<Elem = W>>(&self, [x, m, v, top]: [V; 4], grad: V) -> [V; 4] {
        let ([x, m, v], top) = self.all([x, m, v], Some(top), grad);
        [x, m, v, top]
    }
}
