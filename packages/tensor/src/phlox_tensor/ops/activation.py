"""Activations: elementwise ops that networks apply between layers."""

from __future__ import annotations

from math import pi, sqrt
from typing import TYPE_CHECKING

import numpy as np

from ..reference import activation as ref
from ._families import elementwise

if TYPE_CHECKING:
    from .._tensor import Tensor

_SQRT_HALF = sqrt(0.5)
_SQRT_2_OVER_PI = sqrt(2.0 / pi)
# Out here the other factor of a formula is 0 in every type; infinity times it would be nan.
_FAR = 1e4


def _elu(x: Tensor, alpha: float) -> Tensor:
    return (x > 0).where(x, alpha * x.clip(max=0).expm1())


elu = elementwise(
    "elu",
    "x: Float; alpha: float = 1.0 -> Float",
    expand=_elu,
    ulp=4,
    atol=2,
    doc="Exponential linear unit: x above 0, ``alpha·(eˣ - 1)`` below. Clevert et al., 2015.",
)


def _gelu(x: Tensor) -> Tensor:
    return 0.5 * x.maximum(-_FAR) * (1 + (x * _SQRT_HALF).erf())


gelu = elementwise(
    "gelu",
    "x: Float -> Float",
    expand=_gelu,
    numpy=ref.gelu,
    domain=(-6, 6),
    ulp=8,
    atol=2,
    doc="Gaussian error linear unit: ``x·Φ(x)``, with the exact Φ. Hendrycks and Gimpel, 2016.",
)


def _gelu_backward(g: Tensor, x: Tensor) -> Tensor:
    slope = 0.5 * (1 + (x * _SQRT_HALF).erf())
    near = x.clip(-_FAR, _FAR)
    bump = near * (-0.5 * near * near).exp() * (1 / sqrt(2 * pi))
    return g * (slope + bump)


gelu_backward = elementwise(
    "gelu_backward",
    "g: Float, x: Float -> Float",
    expand=_gelu_backward,
    numpy=ref.gelu_backward,
    domain=(-5, 5),
    ulp=16,
    atol=8,
    internal=True,
    doc="Cotangent of ``gelu``: ``g·(Φ(x) + x·φ(x))``.",
)


def _gelu_tanh(x: Tensor) -> Tensor:
    bend = (_SQRT_2_OVER_PI * (x + 0.044715 * x * x * x)).tanh()
    return 0.5 * x.maximum(-_FAR) * (1 + bend)


gelu_tanh = elementwise(
    "gelu_tanh",
    "x: Float -> Float",
    expand=_gelu_tanh,
    numpy=ref.gelu_tanh,
    ulp=8,
    atol=8,
    doc="``gelu`` with the tanh formula for Φ. Hendrycks and Gimpel, 2016.",
)


def _leaky_relu(x: Tensor, slope: float) -> Tensor:
    return (x >= 0).where(x, x * slope)


leaky_relu = elementwise(
    "leaky_relu",
    "x: Float; slope: float = 0.01 -> Float",
    expand=_leaky_relu,
    ulp=1,
    doc="Leaky rectified linear unit: x above 0, ``slope·x`` below. Maas et al., 2013.",
)


def _log_sigmoid(x: Tensor) -> Tensor:
    return -((-x).softplus())


log_sigmoid = elementwise(
    "log_sigmoid",
    "x: Float -> Float",
    expand=_log_sigmoid,
    domain=(-20, 20),
    ulp=8,
    doc="Logarithm of the sigmoid: ``-ln(1 + e⁻ˣ)``; never overflows.",
)


def _relu(x: Tensor) -> Tensor:
    return x.maximum(0)


relu = elementwise(
    "relu",
    "x: Num -> Num",
    expand=_relu,
    numpy=lambda x: np.maximum(x, 0),
    signed_zeros=False,
    doc="Rectified linear unit: ``max(x, 0)``; nan stays nan. Nair and Hinton, 2010.",
)


def _sigmoid(x: Tensor) -> Tensor:
    e = (-x.abs()).exp()  # never overflows, and a small result keeps its digits
    return (x >= 0).where(1.0, e) / (1 + e)


sigmoid = elementwise(
    "sigmoid",
    "x: Float -> Float",
    expand=_sigmoid,
    numpy=ref.sigmoid,
    domain=(-20, 20),
    ulp=4,
    atol=2,
    doc="Logistic function: ``1 / (1 + e⁻ˣ)``; never overflows.",
)


def _silu(x: Tensor) -> Tensor:
    return x.maximum(-_FAR) * x.sigmoid()


silu = elementwise(
    "silu",
    "x: Float -> Float",
    expand=_silu,
    numpy=ref.silu,
    domain=(-10, 10),
    ulp=6,
    atol=2,
    doc="Sigmoid linear unit: ``x·σ(x)``. Elfwing et al., 2017.",
)


def _silu_backward(g: Tensor, x: Tensor) -> Tensor:
    s = x.sigmoid()
    return g * (s + x.clip(-_FAR, _FAR) * s * (1 - s))


silu_backward = elementwise(
    "silu_backward",
    "g: Float, x: Float -> Float",
    expand=_silu_backward,
    numpy=ref.silu_backward,
    domain=(-8, 8),
    ulp=16,
    atol=8,
    internal=True,
    doc="Cotangent of ``silu``: ``g·(σ(x) + x·σ(x)·(1 - σ(x)))``.",
)


def _softplus(x: Tensor) -> Tensor:
    return x.maximum(0) + (-x.abs()).exp().log1p()


softplus = elementwise(
    "softplus",
    "x: Float -> Float",
    expand=_softplus,
    numpy=ref.softplus,
    domain=(-20, 20),
    ulp=6,
    doc="Smooth ``relu``: ``ln(1 + eˣ)``; x itself far out, never overflows.",
)
