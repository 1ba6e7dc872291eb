//! Pools.

use super::arg::*;
use crate::ops::pooling::{self, Settings};

type Pair = (usize, usize);

super::ops! {
    avg_pool2d(
        x: Tensor, kernel: Pair, stride: Pair, padding: (Pair, Pair), ceil_mode: bool, count_include_pad: bool
    ) => pooling::avg_pool2d(x, &Settings { kernel, stride, padding, dilation: (1, 1), ceil_mode }, count_include_pad);
    avg_pool2d_backward(
        g: Tensor, input_shape: Ints, kernel: Pair, stride: Pair, padding: (Pair, Pair), ceil_mode: bool,
        count_include_pad: bool
    ) => {
        let settings = Settings { kernel, stride, padding, dilation: (1, 1), ceil_mode };
        pooling::avg_pool2d_backward(g, input_shape, &settings, count_include_pad)
    };
    max_pool2d(
        x: Tensor, kernel: Pair, stride: Pair, padding: (Pair, Pair), dilation: Pair, ceil_mode: bool
    ) => pooling::max_pool2d(x, &Settings { kernel, stride, padding, dilation, ceil_mode });
    max_pool2d_backward(g: Tensor, indices: Tensor, input_shape: Ints)
        => pooling::max_pool2d_backward(g, indices, input_shape);
    max_pool2d_with_indices(
        x: Tensor, kernel: Pair, stride: Pair, padding: (Pair, Pair), dilation: Pair, ceil_mode: bool
    ) => pooling::max_pool2d_with_indices(x, &Settings { kernel, stride, padding, dilation, ceil_mode });
}
