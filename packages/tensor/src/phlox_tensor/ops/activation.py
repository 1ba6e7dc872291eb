"""Activations: elementwise ops that networks apply between layers."""

from __future__ import annotations

from math import pi, sqrt

import numpy as np

from .._errors.classes import ShapeError
from .._op.records import case, refusal
from .._values.tensor import Tensor
from ..reference import activation as ref
from ..reference._precision import in_float64
from ..shapes import activation as shapes
from ..shapes._equal import same
from ._expansion import in_float32, of_tensors, widely
from ._families import elementwise, row

_SQRT_HALF = sqrt(0.5)
_SQRT_2_OVER_PI = sqrt(2.0 / pi)
# Out here the other factor of a formula is 0 in every type; infinity times it would be nan.
_FAR = 1e4


@elementwise.formula(
    "x: Float; alpha: float = 1.0 -> Float",
    numpy=in_float64(lambda x, a: np.where(x > 0, x, a * np.expm1(np.minimum(x, 0) / a))),
    prepare=shapes.positive,
    ulp=4,
    atol=2,
    cases=(case((33,)), case((2, 3), alpha=2.5), case((), alpha=0.5)),
    doc="A smooth ``elu``: x above 0, ``alpha·(exp(x / alpha) - 1)`` below. Barron, 2017.",
)
@widely
def celu(x: Tensor, alpha: float) -> Tensor:
    return (x > 0).where(x, alpha * (x.clip(max=0) / alpha).expm1())


@elementwise.formula(
    "x: Float; alpha: float = 1.0 -> Float",
    numpy=in_float64(lambda x, alpha: np.where(x > 0, x, alpha * np.expm1(np.minimum(x, 0)))),
    ulp=4,
    atol=2,
    doc="Exponential linear unit: x above 0, ``alpha·(eˣ - 1)`` below. Clevert et al., 2015.",
)
def elu(x: Tensor, alpha: float) -> Tensor:
    return (x > 0).where(x, alpha * x.clip(max=0).expm1())


@elementwise.formula(
    "x: Float -> Float",
    numpy=ref.gelu,
    domain=(-6, 6),
    ulp=8,
    atol=2,
    doc="Gaussian error linear unit: ``x·Φ(x)``, with the exact Φ. Hendrycks and Gimpel, 2016.",
)
def gelu(x: Tensor) -> Tensor:
    return 0.5 * x.maximum(-_FAR) * (1 + (x * _SQRT_HALF).erf())


@elementwise.formula(
    "g: Float, x: Float -> Float",
    numpy=ref.gelu_backward,
    domain=(-5, 5),
    ulp=16,
    atol=8,
    internal=True,
    doc="Cotangent of ``gelu``: ``g·(Φ(x) + x·φ(x))``.",
)
@of_tensors
def gelu_backward(g: Tensor, x: Tensor) -> Tensor:
    slope = 0.5 * (1 + (x * _SQRT_HALF).erf())
    near = x.clip(-_FAR, _FAR)
    bump = near * (-0.5 * near * near).exp() * (1 / sqrt(2 * pi))
    return g * (slope + bump)


@elementwise.formula(
    "x: Float -> Float",
    numpy=ref.gelu_tanh,
    ulp=8,
    atol=8,
    doc="``gelu`` with the tanh formula for Φ. Hendrycks and Gimpel, 2016.",
)
def gelu_tanh(x: Tensor) -> Tensor:
    # As a sigmoid: 1 + tanh would lose the small values.
    return x.maximum(-_FAR) * (2 * _SQRT_2_OVER_PI * (x + 0.044715 * x * x * x)).sigmoid()


@elementwise.formula(
    "g: Float, x: Float -> Float",
    numpy=ref.gelu_tanh_backward,
    domain=(-5, 5),
    ulp=16,
    atol=8,
    internal=True,
    doc="Cotangent of ``gelu_tanh``, which is ``x·σ(v)``: ``g·(σ(v) + x·v'·σ(v)·σ(-v))``.",
)
@in_float32
def gelu_tanh_backward(g: Tensor, x: Tensor) -> Tensor:
    # The formula is x·σ(v); v' is the slope of v.
    near = x.clip(-_FAR, _FAR)
    square = near * near
    v = near * (square * 0.044715 + 1) * (2 * _SQRT_2_OVER_PI)
    slope = (square * (3 * 0.044715) + 1) * (2 * _SQRT_2_OVER_PI)
    s = v.sigmoid()
    return g * (s + near * slope * s * (-v).sigmoid())


@row.formula(
    "x: Float; axis: Axis = -1 -> Float",
    numpy=ref.glu,
    shape=shapes.glu,
    ulp=6,
    atol=2,
    cases=(case((3, 6)), case((4, 3, 2), axis=0), case((2, 0), axis=1)),
    refuses=(refusal(ShapeError, (3,)),),
    example="pt.glu(pt.asarray([1.0, 2.0, 0.0, 0.0]))",
    doc="Gated linear unit: ``a·σ(b)`` of the halves of x along an axis. Dauphin et al., 2016.",
)
@widely
def glu(x: Tensor, axis: int) -> Tensor:
    half = x.shape[axis] // 2
    first, second = x.split((half, half), axis=axis)
    return first * second.sigmoid()


@elementwise.formula(
    "x: Float -> Float",
    numpy=in_float64(lambda x: -np.logaddexp(0.0, -x)),
    domain=(-20, 20),
    ulp=8,
    doc="Logarithm of the sigmoid: ``-ln(1 + e⁻ˣ)``; never overflows.",
)
def log_sigmoid(x: Tensor) -> Tensor:
    return -((-x).softplus())


@elementwise.formula(
    "x: Float -> Float",
    numpy=ref.mish,
    domain=(-10, 10),
    ulp=8,
    atol=2,
    doc="``x·tanh(softplus(x))``. Misra, 2019.",
)
@widely
def mish(x: Tensor) -> Tensor:
    return x.maximum(-_FAR) * x.softplus().tanh()


@row.formula(
    "x: Float; axis: Axis = -1 -> Float",
    numpy=ref.quiet_softmax,
    shape=same,
    ulp=8,
    atol=4,
    cases=(case((3, 5)), case((4, 3, 2), axis=1), case((6,), axis=0)),
    refuses=(refusal(ShapeError, (2,), axis=1),),
    example="pt.quiet_softmax(pt.asarray([0.0, 0.0]))",
    doc="``eˣ / (1 + Σ eˣ)`` along an axis: a softmax that may choose nothing. Miller, 2023.",
)
@widely
def quiet_softmax(x: Tensor, axis: int) -> Tensor:
    top = x.max(axis=axis, keepdims=True).detach().maximum(0.0)
    e = (x - top).exp()
    return e / (e.sum(axis=axis, keepdims=True) + (-top).exp())


SELU_ALPHA, SELU_SCALE = 1.6732632423543772, 1.0507009873554805  # the paper's fixed point


@elementwise.formula(
    "x: Float -> Float",
    numpy=ref.selu,
    ulp=4,
    atol=2,
    doc="``elu`` with the two factors that keep mean 0 and variance 1. Klambauer et al., 2017.",
)
@widely
def selu(x: Tensor) -> Tensor:
    low = (SELU_SCALE * SELU_ALPHA) * x.clip(max=0.0).expm1()
    return (x > 0).where(SELU_SCALE * x, low)


@elementwise.formula(
    "x: Float -> Float",
    numpy=ref.sigmoid,
    domain=(-20, 20),
    ulp=4,
    atol=2,
    doc="Logistic function: ``1 / (1 + e⁻ˣ)``; never overflows.",
)
def sigmoid(x: Tensor) -> Tensor:
    e = (-x.abs()).exp()  # never overflows, and a small result keeps its digits
    return (x >= 0).where(1.0, e) / (1 + e)


@elementwise.formula(
    "x: Float -> Float",
    numpy=ref.silu,
    signed_zeros=True,
    domain=(-10, 10),
    ulp=6,
    atol=2,
    doc="Sigmoid linear unit: ``x·σ(x)``. Elfwing et al., 2017.",
)
def silu(x: Tensor) -> Tensor:
    return x.maximum(-_FAR) * x.sigmoid()


@elementwise.formula(
    "g: Float, x: Float -> Float",
    numpy=ref.silu_backward,
    domain=(-8, 8),
    ulp=16,
    atol=8,
    internal=True,
    doc="Cotangent of ``silu``: ``g·(σ(x) + x·σ(x)·(1 - σ(x)))``.",
)
@of_tensors
def silu_backward(g: Tensor, x: Tensor) -> Tensor:
    s = x.sigmoid()
    return g * (s + x.clip(-_FAR, _FAR) * s * (1 - s))


softmin = row(
    "softmin",
    "x: Float; axis: Axis = -1 -> Float",
    numpy=ref.softmin,
    expand=lambda x, axis: (-x).softmax(axis=axis),
    shape=same,
    ulp=8,
    atol=4,
    cases=(case((3, 5)), case((4, 3, 2), axis=1)),
    refuses=(refusal(ShapeError, (2,), axis=1),),
    example="pt.softmin(pt.asarray([0.0, 0.0, 1.0]))",
    doc="``softmax`` of ``-x`` along an axis.",
)


@elementwise.formula(
    "x: Float -> Float",
    numpy=ref.softplus,
    domain=(-20, 20),
    ulp=6,
    doc="Smooth ``relu``: ``ln(1 + eˣ)``; x itself far out, never overflows.",
)
def softplus(x: Tensor) -> Tensor:
    return x.maximum(0) + (-x.abs()).exp().log1p()


# Beyond it 1 + |x| is |x|, in float64 too.
_EDGE = 1e30


@elementwise.formula(
    "x: Float -> Float",
    numpy=in_float64(lambda x: np.where(np.isinf(x), np.sign(x), x / (1 + np.abs(x)))),
    ulp=3,
    doc="``x / (1 + |x|)``; ±1 far out. Turian et al., 2009.",
)
@widely
def softsign(x: Tensor) -> Tensor:
    near = x.clip(-_EDGE, _EDGE)
    return near / (1 + near.abs())


@elementwise.formula(
    "x1: Float, x2: Float -> Float",
    ulp=8,
    atol=4,
    refuses=(refusal(ShapeError, (3,), (2,)),),
    doc="``silu(x1)·x2``: a gate and what it lets through. Shazeer, 2020.",
)
@in_float32
def swiglu(x1: Tensor, x2: Tensor) -> Tensor:
    return x1.maximum(-_FAR) * (x1.sigmoid() * x2)


tanh_shrink = elementwise(
    "tanh_shrink",
    "x: Float -> Float",
    expand=widely(lambda x: x - x.tanh()),
    numpy=in_float64(lambda x: x - np.tanh(x)),
    ulp=4,
    atol=4,
    doc="``x - tanh(x)``.",
)
