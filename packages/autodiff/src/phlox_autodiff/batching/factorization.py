"""Lanes of factorizations; most follow their class."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from ._classes import each_as_its_lane

if TYPE_CHECKING:
    from .._lanes import Call, LanesRule, NoLanes


def _bounded(call: Call) -> Any:
    """The last operand is a number for each matrix: it has the axes of the batch alone."""
    *matrices, bound = range(len(call.operands))
    rank = max(len(call.shape(i)) for i in matrices)
    given = [call.full(i, rank) for i in matrices]
    return each_as_its_lane(call, [*given, call.full(bound, rank - 2)])


FACTORIZATION: Final[dict[str, LanesRule | NoLanes]] = {
    "lstsq": _bounded,
    "pinv": _bounded,
}
