"""Lanes of normalization: more rows, where all share weight and bias."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ._classes import first_only

if TYPE_CHECKING:
    from .._lanes import LanesRule, NoLanes

ROWS: Final[dict[str, LanesRule | NoLanes]] = {
    "layer_norm": first_only,
    "rms_norm": first_only,
}
