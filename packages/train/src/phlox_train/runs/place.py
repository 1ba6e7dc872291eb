"""How far a run is."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any


@dataclass
class Place:
    """Counts of a run.

    Attributes:
        step: steps that were made, of all epochs.
        epoch: the epoch that is under way.
        number: how many of its batches are done.
        over: whether these are all; what comes after them, such as validation, is not done.
        seconds: how long the run took before this start.
    """

    step: int = 0
    epoch: int = 0
    number: int = 0
    over: bool = False
    seconds: float = 0.0

    def into_record(self) -> dict[str, Any]:
        """Return the counts as plain values."""
        return asdict(self)
