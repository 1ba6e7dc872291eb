"""Lanes of images whose pixels are rearranged: one more leading axis."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from .._lanes import Call, LanesRule


def _leading(call: Call) -> Any:
    return call.run(call.full(0))


REARRANGEMENT: Final[dict[str, LanesRule]] = {
    "pixel_shuffle": _leading,
    "pixel_unshuffle": _leading,
}
