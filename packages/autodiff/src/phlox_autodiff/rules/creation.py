"""Ops that make tensors, and conversion."""

from __future__ import annotations

from typing import Final

from .._rule import Rule, none

_SOURCE = none("no operands")

CREATION: Final[dict[str, Rule]] = {
    "arange": _SOURCE,
    "cast": lambda g, x_dtype: g.astype(x_dtype),
    "full": _SOURCE,
    "random_bits": _SOURCE,
    "random_normal": _SOURCE,
    "random_uniform": _SOURCE,
}
