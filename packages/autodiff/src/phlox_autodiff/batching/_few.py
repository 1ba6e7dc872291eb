"""Lanes of the families that have few rows: most of their ops follow class or expansion."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from .._lanes import NoLanes
from ._classes import first_only, leading, sequences

if TYPE_CHECKING:
    from .._lanes import LanesRule

FEW: Final[dict[str, LanesRule | NoLanes]] = {
    "argwhere": NoLanes("how many places there are depends on the values"),
    "bincount": NoLanes("how many counts there are depends on the values"),
    "gru_steps": sequences,
    "gru_steps_backward": sequences,
    "layer_norm": first_only,
    "lstm_steps": sequences,
    "lstm_steps_backward": sequences,
    "nms": NoLanes("how many boxes stay depends on the values"),
    "pixel_shuffle": leading,
    "pixel_unshuffle": leading,
    "resize": leading,
    "rms_norm": first_only,
    "rnn_steps": sequences,
    "rnn_steps_backward": sequences,
}
