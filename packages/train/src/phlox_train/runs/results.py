"""The results of a run: curves, and the best value of each."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from phlox_tensor import ArgumentError

from .better import Direction, improves
from .log import Row
from .rows import PLACE


@dataclass(frozen=True)
class Series:
    """A curve: one value for each row that has it.

    Attributes:
        steps: how many steps were made before each.
        epochs: the epoch of each.
        values: the values.
        seconds: how long the run had taken, all its starts together.
    """

    steps: NDArray[np.int64]
    epochs: NDArray[np.int64]
    values: NDArray[np.float64]
    seconds: NDArray[np.float64]

    def __len__(self) -> int:
        return len(self.values)


@dataclass(frozen=True)
class Best:
    """The best value of a curve, of equal ones the first.

    Attributes:
        step: how many steps were made before it.
        path: the checkpoint of that step, where it was kept.
    """

    value: float
    step: int
    epoch: int
    path: Path | None


def series(rows: Iterable[Row], name: str) -> Series:
    """Return the curve of a name, ``"valid/loss"``.

    Raises:
        ArgumentError: where no row has it.
    """
    split, _, key = name.rpartition("/")
    names: dict[str, None] = {}
    found: list[tuple[int, int, float, float]] = []
    for row in rows:
        names.update((f"{row['split']}/{k}", None) for k in row)
        if row["split"] == split and key in row:
            if isinstance(row[key], list):
                what, hint = f"{name} is no curve", "the rows of log.jsonl hold its arrays"
                raise ArgumentError("history", what, got="arrays", expected="numbers", hint=hint)
            found.append((row["step"], row["epoch"], float(row[key]), row["time"]))
    if not found:
        known = [n for n in names if n.rpartition("/")[2] not in PLACE]
        raise ArgumentError(
            "history",
            "no value of this name was logged",
            got=name,
            expected=", ".join(known) or "values that run.log wrote",
        )
    columns: Any = [np.array(column) for column in zip(*found, strict=True)]
    return Series(columns[0], columns[1], *(c.astype(np.float64) for c in columns[2:]))


def best_of(curve: Series, better: Direction) -> int:
    """Return the place of the best value."""
    best = 0
    for place, value in enumerate(curve.values.tolist()):
        if improves(value, float(curve.values[best]), better):
            best = place
    return best
