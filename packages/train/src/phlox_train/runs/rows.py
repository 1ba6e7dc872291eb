"""Rows that wait for the log: values are read once they are computed, a few steps late."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from typing import Any, Final, final

import numpy as np

from phlox_tensor import ArgumentError, Tensor, WrongTypeError

from .log import Log, Row, numbers, plain

# What every row says besides its values.
PLACE: Final = ("step", "epoch", "time", "split")
_HELD: Final = (float, int, str, Tensor, np.ndarray, np.generic, list)
_LATE: Final = 2  # steps, after which a GPU has computed a requested value


def check_values(values: Mapping[str, Any]) -> None:
    """Refuse values that no row can hold, before their row is written some steps later."""
    for name, value in values.items():
        if name in PLACE:
            what, expected = "a name that rows have themselves", f"others than {', '.join(PLACE)}"
            raise ArgumentError("log", what, got=name, expected=expected)
        if not isinstance(value, _HELD):
            raise WrongTypeError(
                "log",
                f"{name} does not go into a row",
                got=type(value).__name__,
                expected="a number, a tensor, an array or text",
                hint=f"run.log({name}=0.5)",
            )


@final
class Rows:
    """Rows that were logged and those that were written.

    Attributes:
        mark: the length of the log where the last step or epoch ended that was written.
        values: the last number of the epoch under each name, ``"train/loss"``.
    """

    def __init__(self, log: Log) -> None:
        """Write to a log."""
        self.log = log
        self.mark = log.length
        self.values: dict[str, float] = {}
        self._waiting: deque[Row | None] = deque()  # None: a step or an epoch ended
        self._ends = 0

    def add(self, place: Mapping[str, Any], split: str, values: Mapping[str, Any]) -> None:
        """Take a row; its tensors are read later."""
        self._waiting.append({**place, "split": split, **values})

    def end(self) -> None:
        """Say that a step ended, and write the rows of earlier ones."""
        self._waiting.append(None)
        self._ends += 1
        while self._ends > _LATE:
            self._write()

    def flush(self) -> None:
        """Write all rows that wait."""
        while self._waiting:
            self._write()

    def _write(self) -> None:
        row = self._waiting.popleft()
        if row is None:
            self._ends -= 1
            self.mark = self.log.length
            return
        for name, value in row.items():
            if not isinstance(value, float | int | str):
                row[name] = plain(value)
        prefix = row["split"]
        for name, number in numbers(row).items():
            if name not in PLACE:
                self.values[f"{prefix}/{name}"] = number
        self.log.write(row)
