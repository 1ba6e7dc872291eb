//! Softmax and normalizations.

use super::arg::*;
use crate::ops::rows;

super::ops! {
    batch_norm(x: Tensor, weight: Tensor, bias: Tensor, mean: Tensor, var: Tensor, epsilon: f64)
        => rows::batch_norm(x, weight, bias, [mean, var], epsilon);
    batch_norm_backward(g: Tensor, x: Tensor, weight: Tensor, mean: Tensor, var: Tensor, epsilon: f64)
        => rows::batch_norm_backward(g, x, weight, [mean, var], epsilon);
    batch_norm_train(x: Tensor, weight: Tensor, bias: Tensor, epsilon: f64)
        => rows::batch_norm_train(x, weight, bias, epsilon);
    cross_entropy(x: Tensor, target: Tensor) => rows::cross_entropy(x, target);
    cross_entropy_backward(g: Tensor, x: Tensor, target: Tensor) => rows::cross_entropy_backward(g, x, target);
    layer_norm(x: Tensor, weight: OptTensor, bias: OptTensor, epsilon: f64)
        => rows::layer_norm(x, weight, bias, epsilon);
    layer_norm_backward(g: Tensor, x: Tensor, weight: OptTensor, epsilon: f64)
        => rows::layer_norm_backward(g, x, weight, epsilon);
    log_softmax(x: Tensor, axis: usize) => rows::log_softmax(x, axis);
    log_softmax_backward(g: Tensor, y: Tensor, axis: usize) => rows::log_softmax_backward(g, y, axis);
    rms_norm(x: Tensor, weight: OptTensor, epsilon: f64) => rows::rms_norm(x, weight, epsilon);
    rms_norm_backward(g: Tensor, x: Tensor, weight: OptTensor, epsilon: f64)
        => rows::rms_norm_backward(g, x, weight, epsilon);
    softmax(x: Tensor, axis: usize) => rows::softmax(x, axis);
    softmax_backward(g: Tensor, y: Tensor, axis: usize) => rows::softmax_backward(g, y, axis);
}
