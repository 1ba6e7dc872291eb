"""Derivatives of boxes; the other ops of the family follow their expansions."""

from __future__ import annotations

from typing import Final

from .._rule import Rule, none

SAMPLING: Final[dict[str, Rule]] = {
    "nms": none("the result is an index"),
}
