"""Rows of the ops of interpolation: sizes are of the last axes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ._classes import leading

if TYPE_CHECKING:
    from .._lanes import LanesRule, NoLanes

INTERPOLATION: Final[dict[str, LanesRule | NoLanes]] = {
    "resize": leading,
}
