//! Integers times scales.

use super::arg::*;
use crate::ops::quantization;

super::ops! {
    dequantize(x: Tensor, scale: Tensor, zero_point: OptTensor, axis: Option<usize>)
        => quantization::dequantize(x, scale, zero_point, axis);
}
