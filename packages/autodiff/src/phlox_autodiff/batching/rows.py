"""Lanes of normalization: more rows, where all share weight and bias."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from .._lanes import NoLanes

if TYPE_CHECKING:
    from .._lanes import Call, LanesRule


def _more_rows(call: Call) -> Any:
    return call.run(*call.operands) if call.only(0) else None


ROWS: Final[dict[str, LanesRule | NoLanes]] = {
    "layer_norm": _more_rows,
    "rms_norm": _more_rows,
}
