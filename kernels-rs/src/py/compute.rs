//! Contractions and windows.

use super::arg::*;
use crate::attention::{self as heads, Operands, Settings as Scores};
use crate::conv::{self, Settings};
use crate::gemm;

type Pair = (usize, usize);

super::ops! {
    attention(
        query: Tensor, key: Tensor, value: Tensor, mask: OptTensor, bias: OptTensor, scale: f64, softcap: Option<f64>,
        is_causal: bool
    ) => heads::attention(Operands { query, key, value, mask, bias }, Scores { scale, softcap, is_causal });
    attention_backward(
        g: Tensor, query: Tensor, key: Tensor, value: Tensor, mask: OptTensor, bias: OptTensor, scale: f64,
        softcap: Option<f64>, is_causal: bool
    ) => {
        let operands = Operands { query, key, value, mask, bias };
        heads::attention_backward(g, operands, Scores { scale, softcap, is_causal })
    };
    conv2d(
        x: Tensor, weight: Tensor, bias: OptTensor, stride: Pair, padding: (Pair, Pair), dilation: Pair, groups: usize
    ) => conv::conv2d(x, weight, bias, &Settings { stride, padding, dilation, groups });
    conv2d_input_grad(
        g: Tensor, weight: Tensor, input_shape: Ints, stride: Pair, padding: (Pair, Pair), dilation: Pair, groups: usize
    ) => conv::conv2d_input_grad(g, weight, &input_shape, &Settings { stride, padding, dilation, groups });
    conv2d_weight_grad(
        g: Tensor, x: Tensor, weight_shape: Ints, stride: Pair, padding: (Pair, Pair), dilation: Pair, groups: usize
    ) => conv::conv2d_weight_grad(g, x, &weight_shape, &Settings { stride, padding, dilation, groups });
    conv_transpose2d(
        x: Tensor, weight: Tensor, bias: OptTensor, stride: Pair, padding: (Pair, Pair), output_padding: Pair,
        dilation: Pair, groups: usize
    ) => conv::conv_transpose2d(x, weight, bias, &Settings { stride, padding, dilation, groups }, output_padding);
    fused_linear(
        x: Tensor, weight: Tensor, bias: OptTensor, residual: OptTensor, activation: Text, scale: f64
    ) => gemm::fused_linear(
        x, weight, &gemm::End { bias, residual, activation: gemm::Activation::from_name(activation)?, scale }
    );
    linear(x: Tensor, weight: Tensor, bias: OptTensor) => gemm::linear(x, weight, bias);
    matmul(x1: Tensor, x2: Tensor) => gemm::matmul(x1, x2);
}
