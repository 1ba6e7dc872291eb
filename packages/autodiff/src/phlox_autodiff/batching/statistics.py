"""Lanes of counts; the other ops of the family follow their class or their expansion."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from .._lanes import NoLanes

if TYPE_CHECKING:
    from .._lanes import LanesRule

STATISTICS: Final[dict[str, LanesRule | NoLanes]] = {
    "bincount": NoLanes("how many counts there are depends on the values"),
}
