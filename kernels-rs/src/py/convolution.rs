//! Convolutions.

use super::arg::*;
use crate::ops::convolution::{self, Settings};

type Pair = (usize, usize);

super::ops! {
    conv2d(
        x: Tensor, weight: Tensor, bias: OptTensor, stride: Pair, padding: (Pair, Pair), dilation: Pair, groups: usize
    ) => convolution::conv2d(x, weight, bias, &Settings { stride, padding, dilation, groups });
    conv2d_input_grad(
        g: Tensor, weight: Tensor, input_shape: Ints, stride: Pair, padding: (Pair, Pair), dilation: Pair, groups: usize
    ) => convolution::conv2d_input_grad(g, weight, input_shape, &Settings { stride, padding, dilation, groups });
    conv2d_weight_grad(
        g: Tensor, x: Tensor, weight_shape: Ints, stride: Pair, padding: (Pair, Pair), dilation: Pair, groups: usize
    ) => convolution::conv2d_weight_grad(g, x, weight_shape, &Settings { stride, padding, dilation, groups });
    conv_transpose2d(
        x: Tensor, weight: Tensor, bias: OptTensor, stride: Pair, padding: (Pair, Pair), output_padding: Pair,
        dilation: Pair, groups: usize
    ) => convolution::conv_transpose2d(x, weight, bias, &Settings { stride, padding, dilation, groups }, output_padding);
}
