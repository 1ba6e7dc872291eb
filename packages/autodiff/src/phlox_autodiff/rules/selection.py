"""Derivatives of marks; the ops of the family that are not here follow their expansion."""

from __future__ import annotations

from typing import Final

from .._rule import Rule, none

SELECTION: Final[dict[str, Rule]] = {
    "argwhere": none("the result is an index"),
    "one_hot": none("the result is constant between indices"),
}
