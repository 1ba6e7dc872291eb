//! Attention.

use super::arg::*;
use crate::ops::attention::{self as heads, Operands, Settings};

super::ops! {
    attention(
        query: Tensor, key: Tensor, value: Tensor, mask: OptTensor, bias: OptTensor, scale: f64, softcap: Option<f64>,
        is_causal: bool
    ) => heads::attention(Operands { query, key, value, mask, bias }, Settings { scale, softcap, is_causal });
    attention_backward(
        g: Tensor, query: Tensor, key: Tensor, value: Tensor, mask: OptTensor, bias: OptTensor, scale: f64,
        softcap: Option<f64>, is_causal: bool
    ) => {
        let operands = Operands { query, key, value, mask, bias };
        heads::attention_backward(g, operands, Settings { scale, softcap, is_causal })
    };
}
