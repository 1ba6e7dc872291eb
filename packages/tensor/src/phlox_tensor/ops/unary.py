"""Elementwise ops of one operand: mathematics, rounding, conversion, tests for special values."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from .._op import case
from ..reference import unary as ref
from ..reference._precision import in_float64, through_float32
from ..shapes import unary as shapes
from ._families import cast as _cast
from ._families import elementwise

if TYPE_CHECKING:
    from .._tensor import Tensor

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
    numpy=np.abs,
    domain=(-3, 3),
    ulp=0,
    doc="Absolute value, elementwise: ``|x|``.",
)
acos = elementwise(
    "acos",
    "x: Float -> Float",
    numpy=np.arccos,
    domain=(-0.95, 0.95),
    ulp=4,
    doc="Inverse cosine, elementwise, in radians; nan outside [-1, 1].",
)
acosh = elementwise(
    "acosh",
    "x: Float -> Float",
    numpy=np.arccosh,
    domain=(1.1, 20),
    ulp=4,
    doc="Inverse hyperbolic cosine, elementwise; nan below 1.",
)
asin = elementwise(
    "asin",
    "x: Float -> Float",
    numpy=np.arcsin,
    domain=(-0.95, 0.95),
    ulp=4,
    doc="Inverse sine, elementwise, in radians; nan outside [-1, 1].",
)
asinh = elementwise(
    "asinh",
    "x: Float -> Float",
    numpy=np.arcsinh,
    domain=(-20, 20),
    ulp=4,
    doc="Inverse hyperbolic sine, elementwise.",
)
atan = elementwise(
    "atan",
    "x: Float -> Float",
    numpy=np.arctan,
    domain=(-20, 20),
    ulp=4,
    doc="Inverse tangent, elementwise, in radians.",
)
atanh = elementwise(
    "atanh",
    "x: Float -> Float",
    numpy=np.arctanh,
    domain=(-0.95, 0.95),
    ulp=4,
    doc="Inverse hyperbolic tangent, elementwise; nan outside [-1, 1].",
)
bitwise_invert = elementwise(
    "bitwise_invert",
    "x: Bits -> Bits",
    numpy=np.invert,
    domain=(-9, 9),
    ulp=0,
    doc="Each bit flipped, elementwise; for Bool the same as ``logical_not``.",
)
ceil = elementwise(
    "ceil",
    "x: Num -> Num",
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
cosh = elementwise(
    "cosh",
    "x: Float -> Float",
    numpy=np.cosh,
    domain=(-8, 8),
    ulp=4,
    doc="Hyperbolic cosine, elementwise.",
)
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
    numpy=np.reciprocal,
    domain=(0.2, 5),
    ulp=1,
    doc="``1 / x``, elementwise.",
)
sign = elementwise(
    "sign",
    "x: Num -> Num",
    numpy=through_float32(np.sign),  # of -0 in every type what NumPy gives for float32
    domain=(-3, 3),
    ulp=0,
    doc="-1, 0 or 1 by the sign of x, elementwise; nan stays nan.",
)
sin = elementwise(
    "sin",
    "x: Float -> Float",
    numpy=np.sin,
    domain=(-20, 20),
    ulp=2,
    doc="Sine of x in radians, elementwise; nan for infinities.",
)
sinh = elementwise(
    "sinh",
    "x: Float -> Float",
    numpy=np.sinh,
    domain=(-8, 8),
    ulp=4,
    doc="Hyperbolic sine, elementwise.",
)
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
    numpy=np.square,
    domain=(-3, 3),
    ulp=1,
    doc="``x · x``, elementwise.",
)
tan = elementwise(
    "tan",
    "x: Float -> Float",
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
    numpy=ref.rounded(np.trunc),
    domain=(-9, 9),
    ulp=0,
    doc="The whole number next to x towards 0, elementwise; integers stay.",
)
isfinite = elementwise(
    "isfinite",
    "x: Num -> Bool",
    numpy=np.isfinite,
    doc="Whether x is neither infinite nor nan, elementwise; True for integers.",
)
isinf = elementwise(
    "isinf",
    "x: Num -> Bool",
    numpy=np.isinf,
    doc="Whether x is an infinity, elementwise; False for integers.",
)
isnan = elementwise(
    "isnan",
    "x: Num -> Bool",
    numpy=np.isnan,
    doc="Whether x is nan, elementwise; False for integers.",
)
logical_not = elementwise(
    "logical_not",
    "x: Bool -> Bool",
    numpy=np.logical_not,
    doc="True where x is False, elementwise.",
)
positive = elementwise(
    "positive",
    "x: Num -> Num",
    numpy=np.positive,
    method=False,
    doc="The element itself.",
)
round_ = elementwise(
    "round",
    "x: Num -> Num",
    numpy=ref.rounded(np.rint),
    domain=(-9, 9),
    doc="Nearest whole number, half to even, elementwise; integers stay.",
)


def _rsqrt(x: Tensor) -> Tensor:
    return x.sqrt().reciprocal()


rsqrt = elementwise(
    "rsqrt",
    "x: Float -> Float",
    expand=_rsqrt,
    numpy=in_float64(lambda x: 1 / np.sqrt(x)),
    domain=(0.1, 20),
    ulp=3,
    doc="``1 / √x``, elementwise.",
)
clip = elementwise(
    "clip",
    "x: Num; min: Scalar? = None, max: Scalar? = None -> Num",
    numpy=ref.clip,
    prepare=shapes.prepare_clip,
    signed_zeros=False,
    cases=(
        case((3, 5), min=0, max=2),
        case((7,), max=1),
        case((2, 3), min=1),
        case((0, 2), min=0, max=1),
        case((), min=0),
    ),
    doc="Elements held between ``min`` and ``max``; None leaves a side open, nan stays nan.",
)
