"""Elementwise ops of one operand: mathematics, rounding, conversion, tests for special values."""

from __future__ import annotations

from math import log as _log
from math import nan
from typing import Any

import numpy as np

from .._op.records import case
from .._values.kinds import Bool, NumKind
from .._values.tensor import Tensor
from ..reference import unary as ref
from ..reference._precision import in_float64, through_float32
from ..shapes import unary as shapes
from ..shapes._broadcast import broadcast_shapes
from ._expansion import in_float32
from ._families import cast as _cast
from ._families import elementwise

_LN_2 = _log(2.0)
_PER_LN_2, _PER_LN_10 = 1 / _LN_2, 1 / _log(10.0)
# Beyond it the square of x is all of x² ± 1, in float64 too.
_FAR = 1e9
# Beyond it e⁻ˣ is nothing beside eˣ, in float64 too.
_LONG = 20.0

cast = _cast(
    "cast",
    "x: Any; dtype: DType -> Any",
    numpy=ref.cast,
    linear=True,
    domain=(-9, 9),
    internal=True,
    doc="The elements in another type: floats are truncated to integers, nan gives 0, out of "
    "range saturates, integers wrap; ``x.astype`` is the usual spelling.",
)
abs_ = elementwise(
    "abs",
    "x: Num -> Num",
    expand=lambda x: (x <= 0).where(0 - x, x),
    numpy=np.abs,
    domain=(-3, 3),
    ulp=0,
    doc="Absolute value, elementwise: ``|x|``.",
)


@elementwise.formula(
    "x: Float -> Float",
    numpy=np.arccos,
    domain=(-0.95, 0.95),
    ulp=4,
    doc="Inverse cosine, elementwise, in radians; nan outside [-1, 1].",
)
@in_float32
def acos(x: Tensor) -> Tensor:
    return ((1 - x) * (1 + x)).sqrt().atan2(x)


@elementwise.formula(
    "x: Float -> Float",
    numpy=np.arccosh,
    domain=(1.1, 20),
    ulp=4,
    doc="Inverse hyperbolic cosine, elementwise; nan below 1.",
)
@in_float32
def acosh(x: Tensor) -> Tensor:
    above = x - 1
    near = (above + (above * (above + 2)).sqrt()).log1p()
    return (x < 1).where(nan, (x > _FAR).where(x.log() + _LN_2, near))


@elementwise.formula(
    "x: Float -> Float",
    numpy=np.arcsin,
    domain=(-0.95, 0.95),
    ulp=4,
    doc="Inverse sine, elementwise, in radians; nan outside [-1, 1].",
)
@in_float32
def asin(x: Tensor) -> Tensor:
    return x.atan2(((1 - x) * (1 + x)).sqrt())


def _odd(x: Tensor, positive: Tensor) -> Tensor:
    """The values for ``|x|`` with the sign of x, also that of a zero."""
    return (x == 0).where(x, (x < 0).where(-positive, positive))


@elementwise.formula(
    "x: Float -> Float",
    numpy=np.arcsinh,
    domain=(-20, 20),
    ulp=4,
    doc="Inverse hyperbolic sine, elementwise.",
)
@in_float32
def asinh(x: Tensor) -> Tensor:
    a = x.abs()
    square = a * a
    near = (a + square / (1 + (1 + square).sqrt())).log1p()
    return _odd(x, (a > _FAR).where(a.log() + _LN_2, near))


@elementwise.formula(
    "x: Float -> Float",
    numpy=np.arctan,
    domain=(-20, 20),
    ulp=4,
    doc="Inverse tangent, elementwise, in radians.",
)
@in_float32
def atan(x: Tensor) -> Tensor:
    return x.atan2(1.0)


@elementwise.formula(
    "x: Float -> Float",
    numpy=np.arctanh,
    domain=(-0.95, 0.95),
    ulp=4,
    doc="Inverse hyperbolic tangent, elementwise; nan outside [-1, 1].",
)
@in_float32
def atanh(x: Tensor) -> Tensor:
    a = x.abs()
    return _odd(x, (a > 1).where(nan, 0.5 * (2 * a / (1 - a)).log1p()))


@elementwise.formula(
    "x: Bits -> Bits",
    numpy=np.invert,
    domain=(-9, 9),
    ulp=0,
    doc="Each bit flipped, elementwise; for Bool the same as ``logical_not``.",
)
def bitwise_invert(x: Tensor[Any]) -> Tensor[Any]:
    return logical_not(x) if x.dtype.kind == "Bool" else -(x + 1)


ceil = elementwise(
    "ceil",
    "x: Num -> Num",
    expand=lambda x: -(-x).floor(),
    numpy=ref.rounded(np.ceil),
    domain=(-9, 9),
    ulp=0,
    doc="Smallest whole number not below x, elementwise; integers stay.",
)
cos = elementwise(
    "cos",
    "x: Float -> Float",
    numpy=np.cos,
    domain=(-20, 20),
    ulp=2,
    doc="Cosine of x in radians, elementwise; nan for infinities.",
)


@elementwise.formula(
    "x: Float -> Float",
    numpy=np.cosh,
    domain=(-8, 8),
    ulp=4,
    doc="Hyperbolic cosine, elementwise.",
)
@in_float32
def cosh(x: Tensor) -> Tensor:
    half = (0.5 * x.abs()).exp()  # the whole would overflow before the result does
    return 0.5 * half * half + 0.5 / (half * half)


erf = elementwise(
    "erf",
    "x: Float -> Float",
    numpy=ref.erf,
    domain=(-4, 4),
    ulp=4,
    doc="Error function, elementwise: ``2/√π · ∫₀ˣ exp(-t²) dt``.",
)
exp = elementwise(
    "exp",
    "x: Float -> Float",
    numpy=np.exp,
    domain=(-20, 20),
    ulp=2,
    doc="Exponential, elementwise: ``eˣ``.",
)
expm1 = elementwise(
    "expm1",
    "x: Float -> Float",
    numpy=np.expm1,
    domain=(-5, 5),
    ulp=4,
    doc="``eˣ - 1``, elementwise, accurate near 0.",
)
floor = elementwise(
    "floor",
    "x: Num -> Num",
    numpy=ref.rounded(np.floor),
    domain=(-9, 9),
    ulp=0,
    doc="Largest whole number not above x, elementwise; integers stay.",
)
log = elementwise(
    "log",
    "x: Float -> Float",
    numpy=np.log,
    domain=(0.05, 20),
    ulp=2,
    doc="Natural logarithm, elementwise; -inf at 0, nan below.",
)
log10 = elementwise(
    "log10",
    "x: Float -> Float",
    expand=in_float32(lambda x: x.log() * _PER_LN_10),
    numpy=np.log10,
    domain=(0.05, 20),
    ulp=4,
    doc="Logarithm to base 10, elementwise.",
)
log1p = elementwise(
    "log1p",
    "x: Float -> Float",
    numpy=np.log1p,
    domain=(-0.9, 20),
    ulp=4,
    doc="``ln(1 + x)``, elementwise, accurate near 0.",
)
log2 = elementwise(
    "log2",
    "x: Float -> Float",
    expand=in_float32(lambda x: x.log() * _PER_LN_2),
    numpy=through_float32(np.log2),
    domain=(0.05, 20),
    ulp=4,
    doc="Logarithm to base 2, elementwise.",
)
negative = elementwise(
    "negative",
    "x: Num -> Num",
    numpy=np.negative,
    domain=(-3, 3),
    ulp=0,
    doc="Numerical negative, elementwise: ``-x``; wraps for unsigned integers.",
)
reciprocal = elementwise(
    "reciprocal",
    "x: Float -> Float",
    expand=lambda x: 1.0 / x,
    numpy=np.reciprocal,
    domain=(0.2, 5),
    ulp=1,
    doc="``1 / x``, elementwise.",
)


@elementwise.formula(
    "x: Num -> Num",
    numpy=through_float32(np.sign),  # of -0 in every type what NumPy gives for float32
    domain=(-3, 3),
    ulp=0,
    doc="-1, 0 or 1 by the sign of x, elementwise; nan stays nan.",
)
def sign(x: Tensor) -> Tensor:
    ones = x * 0 + 1 if x.dtype.kind == "Int" else 1.0
    below = (x < 0).where(-ones, x * x)  # 0 of either sign becomes 0, nan stays
    return (x > 0).where(ones, below)


sin = elementwise(
    "sin",
    "x: Float -> Float",
    numpy=np.sin,
    domain=(-20, 20),
    ulp=2,
    doc="Sine of x in radians, elementwise; nan for infinities.",
)


@elementwise.formula(
    "x: Float -> Float",
    numpy=np.sinh,
    domain=(-8, 8),
    ulp=4,
    doc="Hyperbolic sine, elementwise.",
)
@in_float32
def sinh(x: Tensor) -> Tensor:
    a = x.abs()
    t = a.expm1()
    half = (0.5 * a).exp()
    return _odd(x, (a > _LONG).where(0.5 * half * half, 0.5 * (t + t / (t + 1))))


sqrt = elementwise(
    "sqrt",
    "x: Float -> Float",
    numpy=np.sqrt,
    domain=(0.1, 20),
    ulp=1,
    doc="Square root, elementwise; nan below 0.",
)
square = elementwise(
    "square",
    "x: Num -> Num",
    expand=lambda x: x * x,
    numpy=np.square,
    domain=(-3, 3),
    ulp=1,
    doc="``x · x``, elementwise.",
)
tan = elementwise(
    "tan",
    "x: Float -> Float",
    expand=in_float32(lambda x: x.sin() / x.cos()),
    numpy=np.tan,
    domain=(-1.4, 1.4),
    ulp=4,
    doc="Tangent of x in radians, elementwise.",
)
tanh = elementwise(
    "tanh",
    "x: Float -> Float",
    numpy=np.tanh,
    domain=(-6, 6),
    ulp=2,
    doc="Hyperbolic tangent, elementwise; ±1 far out.",
)
trunc = elementwise(
    "trunc",
    "x: Num -> Num",
    expand=lambda x: (x < 0).where(x.ceil(), x.floor()),
    numpy=ref.rounded(np.trunc),
    domain=(-9, 9),
    ulp=0,
    doc="The whole number next to x towards 0, elementwise; integers stay.",
)


def _is_number(x: Tensor) -> Tensor[Bool]:
    return x == x  # noqa: PLR0124 - nan alone is not equal to itself


isfinite = elementwise(
    "isfinite",
    "x: Num -> Bool",
    expand=lambda x: _is_number(x - x),
    numpy=np.isfinite,
    doc="Whether x is neither infinite nor nan, elementwise; True for integers.",
)
isinf = elementwise(
    "isinf",
    "x: Num -> Bool",
    expand=lambda x: ~_is_number(x - x) & _is_number(x),
    numpy=np.isinf,
    doc="Whether x is an infinity, elementwise; False for integers.",
)
isnan = elementwise(
    "isnan",
    "x: Num -> Bool",
    expand=lambda x: ~_is_number(x),
    numpy=np.isnan,
    doc="Whether x is nan, elementwise; False for integers.",
)


@elementwise.formula(
    "x: Bool -> Bool",
    numpy=np.logical_not,
    doc="True where x is False, elementwise.",
)
def logical_not(x: Tensor[Bool]) -> Tensor[Bool]:
    return x == False  # noqa: E712 - elementwise


positive = elementwise(
    "positive",
    "x: Num -> Num",
    expand=lambda x: x,
    numpy=np.positive,
    method=False,
    doc="The element itself.",
)


@elementwise.formula(
    "x: Num -> Num",
    numpy=ref.rounded(np.rint),
    domain=(-9, 9),
    doc="Nearest whole number, half to even, elementwise; integers stay.",
)
def round_(x: Tensor) -> Tensor:
    if x.dtype.kind == "Int":
        return x
    low = x.floor()
    rest = x - low
    odd = low - 2 * (low * 0.5).floor() == 1
    near = ((rest > 0.5) | ((rest == 0.5) & odd)).where(low + 1, low)
    return (near == 0).where(x * 0, near)  # 0 with the sign of x


@elementwise.formula(
    "x: Float -> Float",
    numpy=in_float64(lambda x: 1 / np.sqrt(x)),
    domain=(0.1, 20),
    ulp=3,
    doc="``1 / √x``, elementwise.",
)
def rsqrt(x: Tensor) -> Tensor:
    return x.sqrt().reciprocal()


def _clip_by_tensors(
    x: Tensor[NumKind], low: Tensor[NumKind] | float | None, high: Tensor[NumKind] | float | None
) -> Tensor[NumKind]:
    """At a bound the slope is the bound's; the upper bound wins."""
    broadcast_shapes([getattr(each, "shape", ()) for each in (x, low, high)], "clip")
    if low is not None:
        x = ((x > low) | x.isnan()).where(x, low)
    return x if high is None else ((x < high) | x.isnan()).where(x, high)


@elementwise.formula(
    "x: Num; min: Scalar? = None, max: Scalar? = None -> Num",
    numpy=ref.clip,
    prepare=shapes.prepare_clip,
    with_tensors=_clip_by_tensors,
    signed_zeros=False,
    cases=(
        case((3, 5), min=0, max=2),
        case((7,), max=1),
        case((2, 3), min=1),
        case((0, 2), min=0, max=1),
        case((), min=0),
    ),
    doc="Elements held between ``min`` and ``max``; None leaves a side open, nan stays nan. Bounds "
    "may be tensors: they broadcast, and the gradient goes to the bound where it holds an element.",
)
def clip(x: Tensor, low: float | None, high: float | None) -> Tensor:
    out = x if low is None else x.maximum(low)
    return out if high is None else out.minimum(high)
