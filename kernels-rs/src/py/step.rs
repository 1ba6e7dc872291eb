//! Optimizer steps.

use super::arg::*;
use crate::ops::step::{self, Adam, Sgd};

super::ops! {
    adam_step(
        tensors: Tensors, grads: Tensors, firsts: Tensors, seconds: Tensors, largest: Tensors,
        lr: f64, time: i64, beta_1: f64, beta_2: f64, epsilon: f64, weight_decay: f64, decoupled: bool, amsgrad: bool
    ) => {
        let settings = Adam { lr, time, betas: (beta_1, beta_2), epsilon, weight_decay, decoupled, amsgrad };
        step::adam([&tensors, &grads, &firsts, &seconds, &largest], &settings)
    };
    clip_norms(grads: Tensors, threshold: f64, joint: bool) => step::clip_norms(&grads, threshold, joint);
    sgd_step(
        tensors: Tensors, grads: Tensors, velocities: Tensors,
        lr: f64, momentum: f64, dampening: f64, weight_decay: f64, nesterov: bool
    ) => {
        let settings = Sgd { lr, momentum, dampening, weight_decay, nesterov };
        step::sgd([&tensors, &grads, &velocities], &settings)
    };
}
