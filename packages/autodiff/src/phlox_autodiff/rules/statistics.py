"""Derivatives of statistics; the ones that are not here follow their expansion."""

from __future__ import annotations

from typing import Final

from .._rule import Rule, none

STATISTICS: Final[dict[str, Rule]] = {
    "bincount": none("the result counts"),
    "histogram": none("the counts are constant between jumps"),
}
