//! Pools, softmax and normalizations.

use super::arg::*;
use crate::interpolate;
use crate::pool::{self, Settings};
use crate::rows;

type Pair = (usize, usize);

super::ops! {
    avg_pool2d(
        x: Tensor, kernel: Pair, stride: Pair, padding: (Pair, Pair), ceil_mode: bool, count_include_pad: bool
    ) => pool::avg_pool2d(x, &Settings { kernel, stride, padding, dilation: (1, 1), ceil_mode }, count_include_pad);
    avg_pool2d_backward(
        g: Tensor, input_shape: Ints, kernel: Pair, stride: Pair, padding: (Pair, Pair), ceil_mode: bool,
        count_include_pad: bool
    ) => {
        let settings = Settings { kernel, stride, padding, dilation: (1, 1), ceil_mode };
        pool::avg_pool2d_backward(g, &input_shape, &settings, count_include_pad)
    };
    batch_norm(x: Tensor, weight: Tensor, bias: Tensor, mean: Tensor, var: Tensor, epsilon: f64)
        => rows::batch_norm(x, weight, bias, [mean, var], epsilon);
    batch_norm_backward(g: Tensor, x: Tensor, weight: Tensor, mean: Tensor, var: Tensor, epsilon: f64)
        => rows::batch_norm_backward(g, x, weight, [mean, var], epsilon);
    batch_norm_train(x: Tensor, weight: Tensor, bias: Tensor, epsilon: f64)
        => rows::batch_norm_train(x, weight, bias, epsilon);
    cross_entropy(x: Tensor, target: Tensor) => rows::cross_entropy(x, target);
    cross_entropy_backward(g: Tensor, x: Tensor, target: Tensor) => rows::cross_entropy_backward(g, x, target);
    interpolate2d(x: Tensor, size: Pair, mode: Text, align_corners: bool)
        => interpolate::interpolate2d(x, size, interpolate::Mode::from_name(mode)?, align_corners);
    interpolate2d_backward(g: Tensor, input_shape: Ints, mode: Text, align_corners: bool)
        => interpolate::interpolate2d_backward(g, &input_shape, interpolate::Mode::from_name(mode)?, align_corners);
    layer_norm(x: Tensor, weight: OptTensor, bias: OptTensor, epsilon: f64)
        => rows::layer_norm(x, weight, bias, epsilon);
    layer_norm_backward(g: Tensor, x: Tensor, weight: OptTensor, epsilon: f64)
        => rows::layer_norm_backward(g, x, weight, epsilon);
    log_softmax(x: Tensor, axis: usize) => rows::log_softmax(x, axis);
    log_softmax_backward(g: Tensor, y: Tensor, axis: usize) => rows::log_softmax_backward(g, y, axis);
    logsumexp(x: Tensor, axis: Ints, keepdims: bool) => rows::logsumexp(x, &axis, keepdims);
    max_pool2d(
        x: Tensor, kernel: Pair, stride: Pair, padding: (Pair, Pair), dilation: Pair, ceil_mode: bool
    ) => pool::max_pool2d(x, &Settings { kernel, stride, padding, dilation, ceil_mode });
    max_pool2d_backward(g: Tensor, indices: Tensor, input_shape: Ints)
        => pool::max_pool2d_backward(g, indices, &input_shape);
    max_pool2d_with_indices(
        x: Tensor, kernel: Pair, stride: Pair, padding: (Pair, Pair), dilation: Pair, ceil_mode: bool
    ) => pool::max_pool2d_with_indices(x, &Settings { kernel, stride, padding, dilation, ceil_mode });
    rms_norm(x: Tensor, weight: OptTensor, epsilon: f64) => rows::rms_norm(x, weight, epsilon);
    rms_norm_backward(g: Tensor, x: Tensor, weight: OptTensor, epsilon: f64)
        => rows::rms_norm_backward(g, x, weight, epsilon);
    softmax(x: Tensor, axis: usize) => rows::softmax(x, axis);
    softmax_backward(g: Tensor, y: Tensor, axis: usize) => rows::softmax_backward(g, y, axis);
    var(x: Tensor, axis: Ints, correction: f64, keepdims: bool) => rows::var(x, &axis, correction, keepdims);
}
