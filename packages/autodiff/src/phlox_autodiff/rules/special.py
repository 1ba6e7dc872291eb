"""Derivatives of special functions; the ones that are not here follow their expansion."""

from __future__ import annotations

from math import pi, sqrt
from typing import Final

from .._rule import Rule, none

SPECIAL: Final[dict[str, Rule]] = {
    "erfc": lambda g, x: g * (x.square().negative().exp() * (-2 / sqrt(pi))),
    "erfinv": lambda g, y: g * (y.square().exp() * (sqrt(pi) / 2)),
    "isclose": none("the result is Bool"),
    "lgamma": lambda g, x: g * x.digamma(),
}
