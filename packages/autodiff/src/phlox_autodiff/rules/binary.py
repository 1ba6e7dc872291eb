"""Derivatives of elementwise ops of two operands, and of the choice between them.

An operand may be a plain number where it has no gradient of its own; the rules hold for both.
"""

from __future__ import annotations

from collections.abc import Callable
from math import log, nan
from typing import Any, Final

from phlox_tensor import Tensor, hypot
from phlox_tensor.ops import binary as ops

from .._rule import Rule, none
from .._unchecked import unchecked

Operand = Any  # a Tensor or a number

_FLAT = none("constant between jumps")
_TRUTH = none("the result is Bool")
_WHOLE = none("the operands are not Float")


def _atan2(g: Tensor, other: Operand, x1: Operand, x2: Operand) -> Tensor:
    """``g·other / (x1² + x2²)``, whose squares float16 does not hold; 0 at the origin."""
    length = hypot(x1, x2)
    origin = length == 0
    length = origin.where(1.0, length)
    return g * origin.where(0.0, other / length / length)


def _hypot(g: Tensor, x: Tensor, y: Tensor) -> Tensor:
    """0 at the origin, where there is no derivative, of any order."""
    return g * (y == 0).where(0.0, x / (y == 0).where(1.0, y))


def _logaddexp(g: Tensor, x: Operand, other: Operand) -> Tensor:
    """The share of x in the sum; one half for two equal infinities, which have no difference."""
    gap = x - other
    return g * (gap.isnan() & (x == other)).where(0.0, gap).sigmoid()


def _larger(g: Tensor, x: Tensor, other: Operand) -> Tensor:
    """Half of g where the two are equal; all of it at nan, as in PyTorch."""
    return (x == other).where(g * 0.5, (x < other).where(0.0, g))


def _smaller(g: Tensor, x: Tensor, other: Operand) -> Tensor:
    """Half of g where the two are equal; all of it at nan, as in PyTorch."""
    return (x == other).where(g * 0.5, (x > other).where(0.0, g))


def _pow_base(g: Tensor, x1: Tensor, x2: Operand) -> Tensor | None:
    """``x2 · x1^(x2 - 1)``, which is 0 for the exponent 0 even at the base 0."""
    if isinstance(x2, Tensor):
        origin = (x1 == 0) & (x2 == 0)
        return g * origin.where(0.0, x2 * x1 ** (origin.where(1.0, x2) - 1))
    if x2 == 0:
        return None
    if x2 == 1:
        return g
    return g * (x1 * 2.0 if x2 == 2 else x1 ** (x2 - 1) * float(x2))


def _pow_exponent(g: Tensor, x1: Operand, x2: Tensor, y: Tensor) -> Tensor:
    """``y · ln x1``, which is 0 for the base 0 where y is finite."""
    if isinstance(x1, Tensor):
        flat = (x1 == 0) & (x2 >= 0)
        return g * y * flat.where(1.0, x1).log()
    if x1 > 0:
        return g * y * log(x1)
    if x1 == 0:
        return g * (x2 < 0).where(-y, 0.0)
    return g * y * nan


def _where(place: int) -> Callable[..., Tensor]:
    if place == 1:
        return lambda g, condition: condition.where(g, 0.0)
    return lambda g, condition: condition.where(0.0, g)


RULES: Final[dict[str, Rule]] = {
    "add": (lambda g: g, lambda g: g),
    "atan2": (lambda g, x1, x2: _atan2(g, x2, x1, x2), lambda g, x1, x2: _atan2(-g, x1, x1, x2)),
    "bitwise_and": _WHOLE,
    "bitwise_left_shift": _WHOLE,
    "bitwise_or": _WHOLE,
    "bitwise_right_shift": _WHOLE,
    "bitwise_xor": _WHOLE,
    "divide": (lambda g, x2: g / x2, lambda g, x2, y: -(g / x2) * y),
    "equal": _TRUTH,
    "floor_divide": _FLAT,
    "fmod": (lambda g: g, lambda g, x1, x2: -g * (x1 / x2).trunc()),
    "greater": _TRUTH,
    "greater_equal": _TRUTH,
    "hypot": (lambda g, x1, y: _hypot(g, x1, y), lambda g, x2, y: _hypot(g, x2, y)),
    "less": _TRUTH,
    "less_equal": _TRUTH,
    "logaddexp": (
        lambda g, x1, x2: _logaddexp(g, x1, x2),
        lambda g, x1, x2: _logaddexp(g, x2, x1),
    ),
    "logical_and": _TRUTH,
    "logical_or": _TRUTH,
    "logical_xor": _TRUTH,
    "masked_scale": (None, lambda g, keep, scale: unchecked(ops.masked_scale, (keep, g), scale)),
    "maximum": (lambda g, x1, x2: _larger(g, x1, x2), lambda g, x1, x2: _larger(g, x2, x1)),
    "minimum": (lambda g, x1, x2: _smaller(g, x1, x2), lambda g, x1, x2: _smaller(g, x2, x1)),
    "multiply": (lambda g, x2: g * x2, lambda g, x1: g * x1),
    "not_equal": _TRUTH,
    "pow": (_pow_base, _pow_exponent),
    "remainder": (lambda g: g, lambda g, x1, x2: -g * (x1 // x2)),
    "subtract": (lambda g: g, lambda g: -g),
    "where": (None, _where(1), _where(2)),
}
