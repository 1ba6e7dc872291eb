"""Derivatives of signs and neighbors of numbers."""

from __future__ import annotations

from typing import Final

from .._rule import Rule, none

NEIGHBOR: Final[dict[str, Rule]] = {
    "nextafter": none("the step to the next number is no slope"),
    "signbit": none("the result is Bool"),
}
