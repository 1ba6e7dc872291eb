"""Which items a batch has, as a function of epoch and number."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, NamedTuple

import numpy as np

from ._items import Indices
from ._sampler import Sampler

# Seconds that closing waits for a batch which is still under way.
PATIENCE: Final = 5.0


class Plan(NamedTuple):
    """One batch: which items it has, and which of its rows are wanted."""

    epoch: int
    number: int
    indices: Indices
    empty: bool  # one item is made for its structure, and no row of it is kept


@dataclass(frozen=True)
class Plans:
    """The batches of any epoch, of which each has parts first to last of so many."""

    sampler: Sampler
    seed: int
    items: int
    batch: int
    parts: tuple[int, int, int] = (0, 1, 1)

    def of(self, epoch: int, number: int) -> Plan:
        """Return one batch."""
        start = number * self.batch
        rows = min(start + self.batch, self.sampler.count(self.items)) - start
        first, last, parts = self.parts
        low, high = start + first * rows // parts, start + last * rows // parts
        empty = low == high
        places = np.arange(low, low + 1 if empty else high)
        if empty:
            places[:] = start
        found = self.sampler.indices(self.seed, epoch, self.items, places)
        return Plan(epoch, number, found, empty)
