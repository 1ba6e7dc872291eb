"""What others call our activations, windows and the rest that networks are made of."""

from __future__ import annotations

from typing import Final

# As the rows of ``_spellings``; sorted by our name.
NETWORK_ROWS: Final = (
    ("adaptive_avg_pool1d", "", "=", "="),
    ("adaptive_avg_pool2d", "", "=", "="),
    ("adaptive_avg_pool3d", "", "=", "="),
    ("adaptive_max_pool1d", "", "=", ""),
    ("adaptive_max_pool2d", "", "=", ""),
    ("adaptive_max_pool3d", "", "=", ""),
    ("avg_pool1d", "", "=", "="),
    ("avg_pool3d", "", "=", ""),
    ("celu", "", "=", "="),
    ("conv1d", "", "=", "="),
    ("conv3d", "", "=", "="),
    ("conv_transpose1d", "", "=", "="),
    ("conv_transpose3d", "", "=", "="),
    ("glu", "", "=", "="),
    ("hard_shrink", "", "hardshrink", "=", "x.hard_shrink(0.5)"),
    ("hard_sigmoid", "", "hardsigmoid", "=", "x.hard_sigmoid()"),
    ("hard_swish", "", "hardswish", "=", "x.hard_swish()"),
    ("hard_tanh", "", "hardtanh", "hardtanh", "x.hard_tanh(-1.0, 1.0)"),
    ("lp_pool1d", "", "=", ""),
    ("lp_pool2d", "", "=", ""),
    ("lp_pool3d", "", "=", ""),
    ("max_pool1d", "", "=", "="),
    ("max_pool1d_with_indices", "", "=", "="),
    ("max_pool3d", "", "=", ""),
    ("max_pool3d_with_indices", "", "=", ""),
    ("mish", "", "=", "="),
    ("prelu", "", "=", "="),
    ("quiet_softmax", "", "", "="),
    ("relu6", "", "=", "="),
    ("selu", "", "=", "="),
    ("shrink", "", "", "="),
    ("soft_shrink", "", "softshrink", "=", "x.soft_shrink(0.5)"),
    ("softmin", "", "=", "="),
    ("softsign", "", "=", "="),
    ("swiglu", "", "", ""),
    ("tanh_shrink", "", "tanhshrink", "tanhshrink", "x.tanh_shrink()"),
    ("threshold", "", "=", "="),
    ("thresholded_relu", "", "", "="),
)
