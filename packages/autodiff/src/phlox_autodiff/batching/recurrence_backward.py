"""Lanes of the way back through recurrences: more sequences, where all share the weights."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ._classes import sequences

if TYPE_CHECKING:
    from .._lanes import LanesRule, NoLanes

RECURRENCE_BACKWARD: Final[dict[str, LanesRule | NoLanes]] = {
    "gru_steps_backward": sequences,
    "lstm_steps_backward": sequences,
    "rnn_steps_backward": sequences,
}
