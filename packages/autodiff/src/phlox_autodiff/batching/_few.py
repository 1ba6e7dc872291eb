"""Batching rules of families with few; most of their ops follow class or expansion."""

from __future__ import annotations

from typing import Any, Final

from .._lanes import Call, LanesRule, NoLanes
from ._classes import each_as_its_lane, first_only, leading, sequences


def _along(call: Call) -> Any:
    """The axis is one further; lanes stay in front."""
    return call.run(call.full(0), attributes=call.replaced(axis=call.attribute("axis") + 1))


def _bounded(call: Call) -> Any:
    """The last operand is a number for each matrix: it has only the axes of the batch."""
    *matrices, bound = range(len(call.operands))
    rank = max(len(call.shape(i)) for i in matrices)
    given = [call.full(i, rank) for i in matrices]
    return each_as_its_lane(call, [*given, call.full(bound, rank - 2)])


LANES: Final[dict[str, LanesRule | NoLanes]] = {
    "all_gather": _along,
    "all_reduce": leading,
    "argwhere": NoLanes("how many places there are depends on the values"),
    "bincount": NoLanes("how many counts there are depends on the values"),
    "broadcast": leading,
    "broadcast_backward": leading,
    "gru_steps": sequences,
    "gru_steps_backward": sequences,
    "layer_norm": first_only,
    "lstm_steps": sequences,
    "lstm_steps_backward": sequences,
    "lstsq": _bounded,
    "nms": NoLanes("how many boxes stay depends on the values"),
    "pinv": _bounded,
    "pixel_shuffle": leading,
    "pixel_unshuffle": leading,
    "reduce_scatter": _along,
    "resize": leading,
    "rms_norm": first_only,
    "rnn_steps": sequences,
    "rnn_steps_backward": sequences,
}
