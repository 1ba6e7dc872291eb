"""Derivatives of elementwise ops of one operand."""

from __future__ import annotations

from math import log as ln
from math import pi, sqrt
from typing import Any, Final

from phlox_tensor import Tensor, hypot

from .._rule import Rule, none

_FLAT = none("constant between jumps")
_TRUTH = none("the result is Bool")


def _atan(g: Tensor, x: Tensor) -> Tensor:
    """``g / (x² + 1)``, whose square float16 does not hold."""
    length = hypot(x, 1.0)
    return g / length / length


def _clip(g: Tensor, x: Tensor, min: Any, max: Any) -> Tensor:
    """The bounds are flat, as in PyTorch 2.15; nan is no flat place."""
    if min is not None:
        g = (x <= min).where(0.0, g)
    return g if max is None else (x >= max).where(0.0, g)


RULES: Final[dict[str, Rule]] = {
    "abs": lambda g, x: g * x.sign(),
    "acos": lambda g, x: -g * ((1 - x) * (1 + x)).rsqrt(),
    "acosh": lambda g, x: g * ((x - 1).rsqrt() * (x + 1).rsqrt()),
    "asin": lambda g, x: g * ((1 - x) * (1 + x)).rsqrt(),
    "asinh": lambda g, x: g / hypot(x, 1.0),
    "atan": _atan,
    "atanh": lambda g, x: g / ((1 - x) * (1 + x)),
    "bitwise_invert": none("the result is not Float"),
    "cast": lambda g, x_dtype: g.astype(x_dtype),
    "ceil": _FLAT,
    "clip": _clip,
    "cos": lambda g, x: -g * x.sin(),
    "cosh": lambda g, x: g * x.sinh(),
    "erf": lambda g, x: g * (2 / sqrt(pi)) * (-x * x).exp(),
    "exp": lambda g, y: g * y,
    "expm1": lambda g, y: g * (y + 1),
    "floor": _FLAT,
    "isfinite": _TRUTH,
    "isinf": _TRUTH,
    "isnan": _TRUTH,
    "log": lambda g, x: g / x,
    "log10": lambda g, x: g / (x * ln(10)),
    "log1p": lambda g, x: g / (x + 1),
    "log2": lambda g, x: g / (x * ln(2)),
    "logical_not": _TRUTH,
    "negative": lambda g: -g,
    "positive": lambda g: g,
    "reciprocal": lambda g, y: -g * y * y,
    "round": _FLAT,
    "rsqrt": lambda g, y: g * -0.5 * y * y * y,
    "sign": _FLAT,
    "sin": lambda g, x: g * x.cos(),
    "sinh": lambda g, x: g * x.cosh(),
    "sqrt": lambda g, y: g / (y * 2),
    "square": lambda g, x: g * x * 2,
    "tan": lambda g, y: g * (y * y + 1),
    "tanh": lambda g, y: g * (1 - y * y),
    "trunc": _FLAT,
}
