"""Lanes of images whose pixels are rearranged: one more leading axis."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ._classes import leading

if TYPE_CHECKING:
    from .._lanes import LanesRule, NoLanes

REARRANGEMENT: Final[dict[str, LanesRule | NoLanes]] = {
    "pixel_shuffle": leading,
    "pixel_unshuffle": leading,
}
