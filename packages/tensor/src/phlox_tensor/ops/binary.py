"""Elementwise ops of two operands, and the choice between them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ..reference import binary as ref
from ..reference._precision import through_float32
from ._families import elementwise

if TYPE_CHECKING:
    from .._tensor import Tensor

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
bitwise_left_shift = elementwise(
    "bitwise_left_shift",
    _SHIFT,
    numpy=np.left_shift,
    domain={"x1": (-9, 9), "x2": (0, 7)},
    doc="``x1`` with its bits moved left by ``x2``, elementwise; 0 for a shift by the "
    "width or more.",
)
bitwise_or = elementwise(
    "bitwise_or", _BITS, numpy=np.bitwise_or, doc="Bits set in either, elementwise."
)
bitwise_right_shift = elementwise(
    "bitwise_right_shift",
    _SHIFT,
    numpy=np.right_shift,
    domain={"x1": (-99, 99), "x2": (0, 7)},
    doc="``x1`` with its bits moved right by ``x2``, elementwise; the sign is kept.",
)
bitwise_xor = elementwise(
    "bitwise_xor", _BITS, numpy=np.bitwise_xor, doc="Bits set in one alone, elementwise."
)
divide = elementwise(
    "divide",
    "x1: Num, x2: Num -> Float",
    numpy=np.divide,
    floats=True,
    domain={"x1": (-3, 3), "x2": (0.3, 3)},
    ulp=1,
    doc="Quotient, elementwise: ``x1 / x2``. Integers are divided in the default float type.",
)
equal = elementwise(
    "equal",
    "x1: Any, x2: Any -> Bool",
    numpy=np.equal,
    doc="Whether ``x1 == x2``, elementwise; False for nan.",
)
floor_divide = elementwise(
    "floor_divide",
    _NUM,
    numpy=ref.floor_divide,
    domain={"x1": (-9, 9), "x2": (0.3, 3)},
    doc="Quotient rounded down, elementwise; for integers 0 where ``x2`` is 0.",
)
fmod = elementwise(
    "fmod",
    _NUM,
    numpy=through_float32(np.fmod),
    domain={"x1": (-9, 9), "x2": (0.3, 3)},
    doc="Remainder with the sign of ``x1``, elementwise; for integers 0 where ``x2`` is 0.",
)
greater = elementwise(
    "greater", _COMPARE, numpy=np.greater, doc="Whether ``x1 > x2``, elementwise."
)
greater_equal = elementwise(
    "greater_equal", _COMPARE, numpy=np.greater_equal, doc="Whether ``x1 >= x2``, elementwise."
)
hypot = elementwise(
    "hypot",
    _FLOAT,
    numpy=through_float32(np.hypot),
    ulp=4,
    domain=(0.2, 3),
    doc="``√(x1² + x2²)``, elementwise; does not overflow half way.",
)
less = elementwise("less", _COMPARE, numpy=np.less, doc="Whether ``x1 < x2``, elementwise.")
less_equal = elementwise(
    "less_equal", _COMPARE, numpy=np.less_equal, doc="Whether ``x1 <= x2``, elementwise."
)


def _logaddexp(x1: Tensor, x2: Tensor) -> Tensor:
    top = x1.maximum(x2)
    # Two equal infinities have no difference; there the larger one is the answer.
    gap = (x1 == x2).where(0.0, -(x1 - x2).abs())
    return top + gap.exp().log1p()


logaddexp = elementwise(
    "logaddexp",
    _FLOAT,
    expand=_logaddexp,
    numpy=through_float32(np.logaddexp),
    ulp=6,
    atol=4,
    doc="``ln(eˣ¹ + eˣ²)``, elementwise; does not overflow half way.",
)
logical_and = elementwise(
    "logical_and", _TRUTH, numpy=np.logical_and, doc="Whether both are True, elementwise."
)
logical_or = elementwise(
    "logical_or", _TRUTH, numpy=np.logical_or, doc="Whether either is True, elementwise."
)
logical_xor = elementwise(
    "logical_xor", _TRUTH, numpy=np.logical_xor, doc="Whether one alone is True, elementwise."
)
maximum = elementwise(
    "maximum",
    _NUM,
    numpy=np.maximum,
    signed_zeros=False,
    doc="The larger one, elementwise; nan wins.",
)
minimum = elementwise(
    "minimum",
    _NUM,
    numpy=np.minimum,
    signed_zeros=False,
    doc="The smaller one, elementwise; nan wins.",
)
multiply = elementwise(
    "multiply", _NUM, numpy=np.multiply, ulp=1, doc="Product, elementwise: ``x1 · x2``."
)
not_equal = elementwise(
    "not_equal",
    "x1: Any, x2: Any -> Bool",
    numpy=np.not_equal,
    doc="Whether ``x1 != x2``, elementwise; True for nan.",
)
pow_ = elementwise(
    "pow",
    _NUM,
    numpy=ref.power,
    domain={"x1": (0.2, 3), "x2": (0, 3)},
    special_ints=False,  # negative exponents are an error
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
    "subtract", _NUM, numpy=np.subtract, ulp=1, doc="Difference, elementwise: ``x1 - x2``."
)
where = elementwise(
    "where",
    "condition: Bool, x1: Any, x2: Any -> Any",
    numpy=np.where,
    doc="``x1`` where the condition is True, ``x2`` elsewhere, elementwise.",
)
