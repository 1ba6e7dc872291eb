"""Lanes of marks; the other ops of the family follow their class or their expansion."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from .._lanes import NoLanes

if TYPE_CHECKING:
    from .._lanes import LanesRule

SELECTION: Final[dict[str, LanesRule | NoLanes]] = {
    "argwhere": NoLanes("how many places there are depends on the values"),
}
