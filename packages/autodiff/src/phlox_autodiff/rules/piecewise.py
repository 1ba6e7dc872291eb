"""Derivatives of piecewise activations; those that are not here follow their expansion."""

from __future__ import annotations

from typing import Final

from phlox_tensor import Tensor

from .._rule import Rule


def _between(g: Tensor, x: Tensor, min: float, max: float) -> Tensor:
    """The cotangent between two kinks, which are flat themselves; nan is no flat place."""
    return ((x <= min) | (x >= max)).where(0.0, g)


def _hard_swish(g: Tensor, x: Tensor) -> Tensor:
    """``x/3 + 1/2`` between the kinks, each of which belongs to the line outside."""
    return (x >= 3).where(g, _between(g * (x * (1 / 3) + 0.5), x, -3.0, 3.0))


RULES: Final[dict[str, Rule]] = {
    "hard_sigmoid": lambda g, y, alpha: _between(g * alpha, y, 0.0, 1.0),
    "hard_swish": _hard_swish,
    "hard_tanh": _between,
    "leaky_relu": lambda g, x, slope: (x > 0).where(g, g * slope),
    "relu": lambda g, y: (y <= 0).where(0.0, g),
    "relu6": lambda g, x: _between(g, x, 0.0, 6.0),
}
