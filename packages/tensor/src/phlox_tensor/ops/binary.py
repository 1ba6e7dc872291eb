"""Elementwise ops of two operands, and the choice between them."""

from __future__ import annotations

from math import inf
from typing import Any

import numpy as np

from .._errors.classes import ShapeError
from .._op.records import case, refusal
from .._values.kinds import Int
from .._values.tensor import Tensor
from ..reference import binary as ref
from ..reference._precision import through_float32
from ._expansion import in_float32, of_tensors
from ._families import elementwise

_NUM = "x1: Num, x2: Num -> Num"
_FLOAT = "x1: Float, x2: Float -> Float"
_BITS = "x1: Bits, x2: Bits -> Bits"
_SHIFT = "x1: Int, x2: Int -> Int"
_COMPARE = "x1: Num, x2: Num -> Bool"
_TRUTH = "x1: Bool, x2: Bool -> Bool"

add = elementwise("add", _NUM, numpy=np.add, ulp=1, doc="Sum, elementwise: ``x1 + x2``.")
atan2 = elementwise(
    "atan2",
    _FLOAT,
    numpy=np.arctan2,
    ulp=4,
    doc="Angle of the point (x2, x1) in radians, elementwise, in [-π, π].",
)
bitwise_and = elementwise(
    "bitwise_and", _BITS, numpy=np.bitwise_and, doc="Bits set in both, elementwise."
)


@elementwise.formula(
    _SHIFT,
    numpy=ref.shifted(np.left_shift),
    domain={"x1": (-9, 9), "x2": (0, 7)},
    refuses=(refusal(ShapeError, (2,), (3,)),),
    doc="``x1`` with its bits moved left by ``x2``, elementwise; 0 for a shift by the "
    "width or more.",
)
@of_tensors
def bitwise_left_shift(x1: Tensor[Int], x2: Tensor[Int]) -> Tensor[Int]:
    width = x1.dtype.itemsize * 8
    inside = (x2 >= 0) & (x2 < width)
    return inside.where(x1 * pow_(2, inside.where(x2, 0)), 0)


@elementwise.formula(
    _BITS,
    numpy=np.bitwise_or,
    doc="Bits set in either, elementwise.",
)
@of_tensors
def bitwise_or(x1: Tensor[Any], x2: Tensor[Any]) -> Tensor[Any]:
    if x1.dtype.kind == "Bool":
        return ~(~x1 & ~x2)
    return x1 + x2 - (x1 & x2)


@elementwise.formula(
    _SHIFT,
    numpy=ref.shifted(np.right_shift),
    domain={"x1": (-99, 99), "x2": (0, 7)},
    doc="``x1`` with its bits moved right by ``x2``, elementwise; the sign is kept.",
)
@of_tensors
def bitwise_right_shift(x1: Tensor[Int], x2: Tensor[Int]) -> Tensor[Int]:
    # 2 to the last bit of a signed type is negative; there only the sign is left.
    last = x1.dtype.itemsize * 8 - (1 if x1.dtype.signed else 0)
    inside = (x2 >= 0) & (x2 < last)
    return inside.where(x1 // pow_(2, inside.where(x2, 0)), (x1 < 0).where(~(x1 * 0), 0))


@elementwise.formula(
    _BITS,
    numpy=np.bitwise_xor,
    doc="Bits set in one alone, elementwise.",
)
@of_tensors
def bitwise_xor(x1: Tensor[Any], x2: Tensor[Any]) -> Tensor[Any]:
    if x1.dtype.kind == "Bool":
        return x1 != x2
    both = x1 & x2
    return x1 + x2 - (both + both)


divide = elementwise(
    "divide",
    "x1: Num, x2: Num -> Float",
    numpy=np.divide,
    domain={"x1": (-3, 3), "x2": (0.3, 3)},
    ulp=1,
    doc="Quotient, elementwise: ``x1 / x2``. Integers are divided in the default float type.",
)
equal = elementwise(
    "equal",
    "x1: Any, x2: Any -> Bool",
    numpy=np.equal,
    compares=True,
    doc="Whether ``x1 == x2``, elementwise; False for nan.",
)
floor_divide = elementwise(
    "floor_divide",
    _NUM,
    numpy=ref.floor_divide,
    domain={"x1": (-9, 9), "x2": (0.3, 3)},
    ulp=1,
    doc="Exact quotient rounded down, elementwise, so ``x1 == (x1 // x2) * x2 + x1 % x2`` but for "
    "rounding: ``1.0 // 0.1`` is 9, as in Python; for integers 0 where ``x2`` is 0. Of floats, "
    "infinity divided by anything but 0 gives nan.",
)


@elementwise.formula(
    _NUM,
    numpy=through_float32(np.fmod),
    domain={"x1": (-9, 9), "x2": (0.3, 3)},
    doc="Remainder with the sign of ``x1``, elementwise; for integers 0 where ``x2`` is 0.",
)
@of_tensors
def fmod(x1: Tensor, x2: Tensor) -> Tensor:
    if x1.dtype.kind == "Int":
        rest = x1 % x2
        return ((rest != 0) & ((rest < 0) != (x1 < 0))).where(rest - x2, rest)
    rest = x1.abs() % x2.abs()
    # A rest of 0 has the sign of x1, which a comparison does not tell for x1 = -0.
    return ((x1 == 0) & (rest == 0)).where(x1, (x1 < 0).where(-rest, rest))


greater = elementwise(
    "greater",
    _COMPARE,
    expand=of_tensors(lambda x1, x2: x2 < x1),
    numpy=np.greater,
    compares=True,
    doc="Whether ``x1 > x2``, elementwise.",
)
greater_equal = elementwise(
    "greater_equal",
    _COMPARE,
    expand=of_tensors(lambda x1, x2: x2 <= x1),
    numpy=np.greater_equal,
    compares=True,
    doc="Whether ``x1 >= x2``, elementwise.",
)


@elementwise.formula(
    _FLOAT,
    numpy=through_float32(np.hypot),
    ulp=4,
    domain=(0.2, 3),
    doc="``√(x1² + x2²)``, elementwise; does not overflow half way.",
)
@in_float32
def hypot(x1: Tensor, x2: Tensor) -> Tensor:
    a, b = x1.abs(), x2.abs()
    top = a.maximum(b)
    ratio = (top == 0).where(0.0, a.minimum(b) / top)
    length = top * (ratio * ratio + 1).sqrt()
    return ((a == inf) | (b == inf)).where(inf, length)


less = elementwise(
    "less", _COMPARE, numpy=np.less, compares=True, doc="Whether ``x1 < x2``, elementwise."
)
less_equal = elementwise(
    "less_equal",
    _COMPARE,
    expand=of_tensors(lambda x1, x2: (x1 < x2) | (x1 == x2)),
    numpy=np.less_equal,
    compares=True,
    doc="Whether ``x1 <= x2``, elementwise.",
)


@elementwise.formula(
    _FLOAT,
    numpy=through_float32(np.logaddexp),
    ulp=6,
    atol=4,
    doc="``ln(eˣ¹ + eˣ²)``, elementwise; does not overflow half way.",
)
@of_tensors
def logaddexp(x1: Tensor, x2: Tensor) -> Tensor:
    top = x1.maximum(x2)
    # Two equal infinities have no difference; there the larger one is the answer.
    gap = (x1 == x2).where(0.0, -(x1 - x2).abs())
    return top + gap.exp().log1p()


logical_and = elementwise(
    "logical_and",
    _TRUTH,
    expand=of_tensors(lambda x1, x2: x1 & x2),
    numpy=np.logical_and,
    doc="Whether both are True, elementwise.",
)
logical_or = elementwise(
    "logical_or",
    _TRUTH,
    expand=of_tensors(lambda x1, x2: x1 | x2),
    numpy=np.logical_or,
    doc="Whether either is True, elementwise.",
)
logical_xor = elementwise(
    "logical_xor",
    _TRUTH,
    expand=of_tensors(lambda x1, x2: x1 != x2),
    numpy=np.logical_xor,
    doc="Whether one alone is True, elementwise.",
)


@elementwise.formula(
    "keep: Bool, x: Float; scale: float = 1.0 -> Float",
    numpy=ref.masked_scale,
    ulp=1,
    cases=(case((2, 3), (2, 3), scale=1.25), case((2, 1), (2, 3))),
    internal=True,
    doc="``x·scale`` where ``keep`` is True, 0 elsewhere: what dropout does.",
)
def masked_scale(keep: Tensor[Any], x: Tensor, scale: float) -> Tensor:
    return keep.where(x * scale, 0.0)


maximum = elementwise(
    "maximum",
    _NUM,
    numpy=np.maximum,
    signed_zeros=False,
    doc="The larger one, elementwise; nan wins.",
)


@elementwise.formula(
    _NUM,
    numpy=np.minimum,
    signed_zeros=False,
    doc="The smaller one, elementwise; nan wins.",
)
@of_tensors
def minimum(x1: Tensor[Any], x2: Tensor[Any]) -> Tensor[Any]:
    if x1.dtype.kind == "Int":  # the complement turns the order around, without overflow
        return ~(~x1).maximum(~x2)
    return -(-x1).maximum(-x2)


multiply = elementwise(
    "multiply", _NUM, numpy=np.multiply, ulp=1, doc="Product, elementwise: ``x1 · x2``."
)
not_equal = elementwise(
    "not_equal",
    "x1: Any, x2: Any -> Bool",
    expand=of_tensors(lambda x1, x2: ~(x1 == x2)),
    numpy=np.not_equal,
    compares=True,
    doc="Whether ``x1 != x2``, elementwise; True for nan.",
)
pow_ = elementwise(
    "pow",
    _NUM,
    numpy=ref.power,
    domain={"x1": (0.2, 3), "x2": (0, 3)},
    ulp=4,
    doc="Power, elementwise, as IEEE 754 has it: ``x⁰ = 1``; nan for a negative base with a "
    "fractional exponent. Integers take exponents from 0 up.",
)
remainder = elementwise(
    "remainder",
    _NUM,
    numpy=ref.remainder,
    domain={"x1": (-9, 9), "x2": (0.3, 3)},
    doc="Remainder with the sign of ``x2``, elementwise; for integers 0 where ``x2`` is 0.",
)
subtract = elementwise(
    "subtract",
    _NUM,
    expand=of_tensors(lambda x1, x2: x1 + -x2),
    numpy=np.subtract,
    ulp=1,
    doc="Difference, elementwise: ``x1 - x2``.",
)
where = elementwise(
    "where",
    "condition: Bool, x1: Any, x2: Any -> Any",
    numpy=np.where,
    refuses=(refusal(ShapeError, (2,), (3,), (3,)),),
    doc="``x1`` where the condition is True, ``x2`` elsewhere, elementwise. Both are computed "
    "everywhere, and so are their gradients: ``where(x > 0, x.log(), 0)`` has gradient nan at 0, "
    "from ``0 · ∞``. Choose before the function, not only after it: "
    "``where(x > 0, where(x > 0, x, 1).log(), 0)``.",
)
