"""Derivatives of the families that have few: most of their ops follow their expansions."""

from __future__ import annotations

from math import pi, sqrt
from typing import TYPE_CHECKING, Final

from phlox_tensor import Tensor

from .._rule import Rule, none

if TYPE_CHECKING:
    from phlox_tensor import DType

_INDEX = none("the result is an index")
_SOURCE = none("no operands")
_TRUTH = none("the result is Bool")


def _cumsum(g: Tensor, x_dtype: DType, axis: int) -> Tensor:
    return g.astype(x_dtype).flip(axis=axis).cumsum(axis=axis).flip(axis=axis)


FEW: Final[dict[str, Rule]] = {
    "arange": _SOURCE,
    "argwhere": _INDEX,
    "bincount": none("the result counts"),
    "cumsum": _cumsum,
    "erfc": lambda g, x: g * (x.square().negative().exp() * (-2 / sqrt(pi))),
    "erfinv": lambda g, y: g * (y.square().exp() * (sqrt(pi) / 2)),
    "full": _SOURCE,
    "histogram": none("the counts are constant between jumps"),
    "isclose": _TRUTH,
    "lgamma": lambda g, x: g * x.digamma(),
    "nextafter": none("the step to the next number is no slope"),
    "nms": _INDEX,
    "one_hot": none("the result is constant between indices"),
    "random_bits": _SOURCE,
    "random_normal": _SOURCE,
    "random_uniform": _SOURCE,
    "signbit": _TRUTH,
}
