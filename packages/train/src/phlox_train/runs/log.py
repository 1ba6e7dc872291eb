"""The log of a run: one row of JSON a line, only ever added to, cut where a run goes on."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final, final

import numpy as np

from phlox_tensor import Tensor

from .errors import RunError

Row = dict[str, Any]
_ENCODE: Final = json.JSONEncoder(allow_nan=False, separators=(",", ":")).encode


@final
class Log:
    """Rows in a file, or in memory where there is none. Each is on its way to the disk at once."""

    def __init__(self, path: Path | None, length: int) -> None:
        """Open the file, and cut off what came after a length: rows of steps made anew.

        Raises:
            OSError: for one that cannot be written.
        """
        self._path = path
        self._rows: list[Row] = []
        self._file: int | None = None
        self._failed: RunError | None = None
        if path is not None:
            self._file = os.open(path, os.O_RDWR | os.O_CREAT | getattr(os, "O_BINARY", 0), 0o666)
            size = os.fstat(self._file).st_size
            if size < length:
                os.close(self._file)
                raise RunError(
                    "run",
                    f"{path} is shorter than its checkpoint says",
                    got=f"{size} bytes",
                    expected=f"{length} or more",
                    hint="the log as it was, or another folder",
                )
            os.ftruncate(self._file, length)
            os.lseek(self._file, length, os.SEEK_SET)
        self.length = length

    def write(self, row: Row) -> None:
        """Add a row.

        Raises:
            RunError: where it cannot be written; rows before it stay whole.
        """
        if self._failed is not None:  # a later row would leave a gap
            raise self._failed
        if self._file is None:
            self._rows.append(row)
            return
        try:
            text = _ENCODE(row)
        except ValueError:  # JSON has no numbers that are not finite
            text = _ENCODE({key: _finite(value) for key, value in row.items()})
        data = f"{text}\n".encode()
        try:
            done = os.write(self._file, data)
            while done < len(data):
                done += os.write(self._file, data[done:])
        except OSError as error:
            os.ftruncate(self._file, self.length)
            os.lseek(self._file, self.length, os.SEEK_SET)
            self._failed = RunError(
                "run",
                f"the log {self._path} cannot be written",
                got=str(error),
                expected="room on the disk",
                hint="run it again when there is room: it goes on from its last checkpoint",
            )
            raise self._failed from error
        self.length += len(data)

    def rows(self) -> Iterator[Row]:
        """Yield all rows."""
        if self._path is None:
            yield from self._rows
        else:
            yield from read_rows(self._path)

    def sync(self) -> None:
        """Bring the rows to the disk, before a checkpoint that counts on them."""
        if self._file is not None:
            os.fsync(self._file)

    def close(self) -> None:
        """Close the file."""
        if self._file is not None:
            os.close(self._file)
            self._file = None


def read_rows(path: Path) -> Iterator[Row]:
    """Yield the rows of a log; a last one that a killed run did not end is left out."""
    with path.open("rb") as file:
        for line in file:
            if line.endswith(b"\n"):
                yield json.loads(line)


def whole_length(path: Path) -> int:
    """Return how long the whole lines of a log are; 0 where there is none."""
    return path.read_bytes().rfind(b"\n") + 1 if path.exists() else 0


def plain(value: Any) -> Any:
    """Return a value as JSON has it; a tensor is read here."""
    if isinstance(value, Tensor):
        return value.tolist()
    if isinstance(value, np.ndarray | np.generic):
        return value.tolist()
    return value


def numbers(values: Mapping[str, Any]) -> dict[str, float]:
    """Return those values that are numbers."""
    return {k: float(v) for k, v in values.items() if isinstance(v, int | float)}


def _finite(value: Any) -> Any:
    if isinstance(value, float) and not math.isfinite(value):
        return repr(value)  # "nan", which float() reads
    if isinstance(value, list):
        return [_finite(item) for item in value]
    return value
