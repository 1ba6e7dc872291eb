"""Rows of the ops of interpolation."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from .._lanes import Call, LanesRule, NoLanes


def _resize(call: Call) -> Any:
    """Sizes are of the last axes, so lanes stay in front."""
    return call.run(call.full(0))


INTERPOLATION: Final[dict[str, LanesRule | NoLanes]] = {
    "resize": _resize,
}
