"""Ops that make tensors have no operands to differentiate by."""

from __future__ import annotations

from typing import Final

from .._rule import Rule, none

_SOURCE = none("no operands")
CREATION: Final[dict[str, Rule]] = {
    "arange": _SOURCE,
    "full": _SOURCE,
}
