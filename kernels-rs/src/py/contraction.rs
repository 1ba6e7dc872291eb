//! Matrix products.

use super::arg::*;
use crate::ops::contraction;

super::ops! {
    fused_linear(
        x: Tensor, weight: Tensor, bias: OptTensor, residual: OptTensor, activation: Text, scale: f64
    ) => contraction::fused_linear(
        x, weight, &contraction::End { bias, residual, activation: contraction::Activation::from_name(activation)?, scale }
    );
    linear(x: Tensor, weight: Tensor, bias: OptTensor) => contraction::linear(x, weight, bias);
    matmul(x1: Tensor, x2: Tensor) => contraction::matmul(x1, x2);
    matmul_integer(x1: Tensor, x2: Tensor, dtype: Dtype) => contraction::matmul_integer(x1, x2, dtype);
    prepacked(weight: Tensor) => contraction::prepacked(weight);
    quantized_linear(x: Tensor, weight: Tensor, scale: Tensor, bias: OptTensor, bits: usize)
        => contraction::quantized_linear(x, weight, scale, bias, bits);
}
