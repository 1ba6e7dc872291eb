"""Derivatives of activations; those that are not here follow their expansion."""

from __future__ import annotations

from math import pi, sqrt
from typing import Final

from phlox_tensor import Tensor
from phlox_tensor.ops import activation as ops

from .._rule import Rule
from .._unchecked import unchecked

_SQRT_2_OVER_PI: Final = sqrt(2 / pi)
_FAR: Final = 40.0  # from where on a normal density is 0
_FARTHEST: Final = 1000.0  # from where on a sigmoid is 0 or 1 in every type


def _elu(g: Tensor, x: Tensor, alpha: float) -> Tensor:
    # Above 0 the exponential is not used; held at 1 there, it cannot overflow.
    return (x > 0).where(g, g * (x.clip(max=0.0).exp() * alpha))


def _gelu_bend(gg: Tensor, g: Tensor, x: Tensor) -> Tensor:
    """``φ(x)·(2 - x²)``, the second derivative of gelu."""
    near = x.clip(-_FAR, _FAR)  # beyond, infinity times 0 would be nan
    square = near * near
    return gg * g * ((2 - square) * (square * -0.5).exp() * (1 / sqrt(2 * pi)))


def _gelu_tanh_bend(gg: Tensor, g: Tensor, x: Tensor) -> Tensor:
    """The second derivative of ``x·σ(v)``: ``σ·(1 - σ)·(2v' + x·v'' + x·v'²·(1 - 2σ))``."""
    near = x.to_full_precision().clip(-_FAR, _FAR)  # beyond, infinity times 0 would be nan
    square = near * near
    v = near * (square * 0.044715 + 1) * (2 * _SQRT_2_OVER_PI)
    slope = (square * (3 * 0.044715) + 1) * (2 * _SQRT_2_OVER_PI)
    turn = square * (6 * 0.044715 * 2 * _SQRT_2_OVER_PI)  # x·v''
    s, rest = v.sigmoid(), (-v).sigmoid()
    bend = s * rest * (2 * slope + turn + near * slope * slope * (rest - s))
    return (gg.to_full_precision() * g.to_full_precision() * bend).astype(x.dtype)


def _mish(g: Tensor, x: Tensor) -> Tensor:
    """``tanh(s) + x·σ(x)·(1 - tanh²(s))`` with ``s = softplus(x)``."""
    near = x.to_full_precision().clip(-_FARTHEST, _FARTHEST)  # infinity times 0 would be nan
    t = near.softplus().tanh()
    return (g.to_full_precision() * (t + near * near.sigmoid() * (1 - t * t))).astype(x.dtype)


def _selu(g: Tensor, x: Tensor) -> Tensor:
    low = (ops.SELU_SCALE * ops.SELU_ALPHA) * x.clip(max=0.0).exp()
    return (x > 0).where(g * ops.SELU_SCALE, g * low)


def _silu_bend(gg: Tensor, g: Tensor, x: Tensor) -> Tensor:
    """``σ·(1 - σ)·(2 + x·(1 - 2σ))``, the second derivative of silu."""
    near = x.clip(-_FARTHEST, _FARTHEST)  # infinity times 0 would be nan
    s = near.sigmoid()
    return gg * g * (s * (1 - s) * (near * (1 - s * 2) + 2))


RULES: Final[dict[str, Rule]] = {
    "celu": lambda g, x, alpha: (x > 0).where(g, g * (x.clip(max=0.0) / alpha).exp()),
    "elu": _elu,
    "gelu": lambda g, x: unchecked(ops.gelu_backward, (g, x)),
    "gelu_backward": (lambda gg, x: ops.gelu_backward(gg, x), _gelu_bend),
    "gelu_tanh": lambda g, x: unchecked(ops.gelu_tanh_backward, (g, x)),
    "gelu_tanh_backward": (lambda gg, x: ops.gelu_tanh_backward(gg, x), _gelu_tanh_bend),
    "log_sigmoid": lambda g, x: g * (-x).sigmoid(),
    "mish": _mish,
    "selu": _selu,
    "sigmoid": lambda g, y: g * (y * (1 - y)),
    "silu": lambda g, x: unchecked(ops.silu_backward, (g, x)),
    "silu_backward": (lambda gg, x: ops.silu_backward(gg, x), _silu_bend),
    "softplus": lambda g, x: g * x.sigmoid(),
    "softsign": lambda g, x: g * (1 / (1 + x.abs())).square(),
}
