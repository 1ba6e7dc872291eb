"""What others call our activations, windows and the rest that networks are made of."""

from __future__ import annotations

from typing import Final

# As the rows of ``_spellings``; sorted by our name.
NETWORK_ROWS: Final = (
    ("celu", "", "=", "="),
    ("glu", "", "=", "="),
    ("hard_shrink", "", "hardshrink", "=", "x.hard_shrink(0.5)"),
    ("hard_sigmoid", "", "hardsigmoid", "=", "x.hard_sigmoid()"),
    ("hard_swish", "", "hardswish", "=", "x.hard_swish()"),
    ("hard_tanh", "", "hardtanh", "hardtanh", "x.hard_tanh(-1.0, 1.0)"),
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
