"""Lanes of boxes; the other ops of the family follow their class or their expansion."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from .._lanes import NoLanes

if TYPE_CHECKING:
    from .._lanes import LanesRule

SAMPLING: Final[dict[str, LanesRule | NoLanes]] = {
    "nms": NoLanes("how many boxes stay depends on the values"),
}
