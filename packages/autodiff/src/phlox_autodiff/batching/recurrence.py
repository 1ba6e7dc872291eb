"""Lanes of recurrences: more sequences, where all share the weights."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ._classes import sequences

if TYPE_CHECKING:
    from .._lanes import LanesRule, NoLanes

RECURRENCE: Final[dict[str, LanesRule | NoLanes]] = {
    "gru_steps": sequences,
    "lstm_steps": sequences,
    "rnn_steps": sequences,
}
