"""A run as other processes see it: its files, read while it goes on."""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import groupby
from pathlib import Path
from time import time
from typing import Any, Final, NamedTuple, final

import numpy as np
from numpy.typing import NDArray

from phlox_tensor import ArgumentError

from ..runs.card import NAME
from ..runs.errors import RunError
from ..runs.folder import LOG, SYSTEM, read_json
from ..runs.lock import is_held
from ..runs.rows import PLACE

_NOT_FINITE: Final = frozenset(("nan", "inf", "-inf"))
_BLOCK: Final = 1 << 20  # bytes of rows that are in memory at once
POINTS: Final = 2_000  # of a curve that is drawn: more than a screen has columns


class Curve(NamedTuple):
    """Values of one name, with the step, the epoch and the second of the run of each."""

    steps: list[int]
    epochs: list[int]
    seconds: list[float]
    values: list[float]

    def thinned(self, points: int = POINTS) -> NDArray[np.float64]:
        """Return at most so many rows of step, epoch, second and value; no peak is lost.

        Of each stretch of steps the lowest and the highest value stay.
        """
        table = np.array([self.steps, self.epochs, self.seconds, self.values], np.float64).T
        if len(table) <= points:
            return table
        ends = np.linspace(0, len(table), points // 2 + 1).astype(np.int64)
        kept: list[int] = []
        for low, high in zip(ends[:-1].tolist(), ends[1:].tolist(), strict=True):
            part = table[low:high, 3]
            both = {low + int(np.nan_to_num(part, nan=np.inf).argmin())}
            both.add(low + int(np.nan_to_num(part, nan=-np.inf).argmax()))
            kept += sorted(both)
        return table[kept]


class Top(NamedTuple):
    """The best value of a curve, or the last one where nothing says which are better."""

    value: float
    step: int
    better: str


@final
class View:
    """What the folder of a run says; ``read`` takes in what came since.

    Attributes:
        curves: by split and name, ``"valid/loss"``.
        card: who makes the run and how it ended, as ``run.json`` has it.
        step, epoch, seconds: of the last row.
    """

    def __init__(self, folder: Path) -> None:
        """Look at a folder, and read nothing yet."""
        if not (folder / LOG).is_file():
            got, hint = str(folder), "phlox runs DIR lists the runs below a folder"
            raise ArgumentError("runs", "no run is there", got=got, hint=hint)
        self.folder: Final = folder
        self.name = folder.name or folder.resolve().name
        self._forget()

    def _forget(self) -> None:
        self.curves: dict[str, Curve] = {}
        self.card: dict[str, Any] = {}
        self.step = self.epoch = 0
        self.seconds = 0.0
        self._offsets = {LOG: 0, SYSTEM: 0}

    @property
    def config(self) -> dict[str, Any]:
        """What the run was made from."""
        return read_json(self.folder / "config.json")

    @property
    def state(self) -> str:
        """Running, done, stopped, failed; or killed, where it ended without a word."""
        held = is_held(self.folder)
        state = str(self.card.get("state", "killed"))
        return "running" if held else "killed" if state == "running" else state

    @property
    def age(self) -> float:
        """Seconds since the last row; 0 where the clock was set back."""
        return max(time() - (self.folder / LOG).stat().st_mtime, 0.0)

    def read(self) -> bool:
        """Take in what was written since the last call, and say whether there was anything.

        A run that goes on cuts its log, so all is read anew then.

        Raises:
            RunError: for a log that is damaged.
        """
        card = read_json(self.folder / NAME)
        sizes = {name: _size(self.folder / name) for name in self._offsets}
        again = self.card and card.get("starts") != self.card.get("starts")
        if again or any(sizes[name] < offset for name, offset in self._offsets.items()):
            self._forget()
        self.card = card
        found = False
        for name in self._offsets:
            for rows in self._new(name):
                found = True
                self._take(rows)
        return found

    def rows(self) -> Iterator[dict[str, Any]]:
        """Yield all rows as they were logged, those of the machine after the others."""
        self._forget()
        self.card = read_json(self.folder / NAME)
        for name in self._offsets:
            for rows in self._new(name):
                yield from rows

    def best(self, name: str) -> Top:
        """Return the best value of a curve."""
        curve = self.curves[name]
        loss = "lower" if name.endswith("/loss") else ""
        better: str = self.card.get("better", {}).get(name, loss)
        values = np.array(curve.values)
        at = len(values) - 1
        if better and not np.isnan(values).all():
            at = int(np.nanargmax(values) if better == "higher" else np.nanargmin(values))
        return Top(curve.values[at], curve.steps[at], better)

    def _new(self, name: str) -> Iterator[list[dict[str, Any]]]:
        """Yield the rows that came since, some at a time."""
        path = self.folder / name
        if not path.exists():
            return
        with path.open("rb") as file:
            file.seek(self._offsets[name])
            while lines := file.readlines(_BLOCK):
                if not lines[-1].endswith(b"\n"):
                    lines.pop()  # it is under way
                try:
                    rows = json.loads(b"[%b]" % b",".join(lines))
                except ValueError as error:
                    what, hint = f"{path} is damaged", "remove the line that is no JSON"
                    raise RunError("runs", what, got=str(error), hint=hint) from None
                self._offsets[name] += sum(map(len, lines))
                if rows:
                    yield rows

    def _take(self, rows: list[dict[str, Any]]) -> None:
        for (split, *names), group in groupby(rows, lambda row: (row["split"], *row)):
            part = list(group)  # rows alike, whose columns are taken whole
            place = [[row[name] for row in part] for name in ("step", "epoch", "time")]
            if split != "system":
                self.step, self.epoch, self.seconds = (column[-1] for column in place)
            for name in names:
                if name in PLACE:
                    continue
                columns, values = place, [row[name] for row in part]
                if {*map(type, values)} != {float}:  # text and arrays are no curve
                    chosen = [at for at, value in enumerate(values) if _is_number(value)]
                    columns = [[column[at] for at in chosen] for column in place]
                    values = [float(values[at]) for at in chosen]
                if values:
                    empty = Curve([], [], [], [])
                    curve: Any = self.curves.setdefault(f"{split}/{name}", empty)
                    for old, more in zip(curve, (*columns, values), strict=True):
                        old.extend(more)


def views(paths: list[Path]) -> list[View]:
    """Return the runs in these folders and below them, each once."""
    found: dict[Path, View] = {}
    for path in paths:
        for log in sorted(path.rglob(LOG)) if path.is_dir() else ():
            found.setdefault(log.parent.resolve(), View(log.parent))
    if not found:
        got = ", ".join(map(str, paths))
        hint = 'train.fit(..., run="runs/first") makes one'
        raise ArgumentError("runs", "no run is there", got=got, hint=hint)
    names = [view.name for view in found.values()]
    for view in found.values():
        if names.count(view.name) > 1:
            view.name = str(view.folder)
    return list(found.values())


def last_row(path: Path) -> dict[str, Any]:
    """Return the last whole row of a log; nothing where there is none."""
    with path.open("rb") as file:
        end = file.seek(0, 2)
        file.seek(max(end - 65_536, 0))
        lines = file.read().split(b"\n")[:-1]
    try:
        row = json.loads(lines[-1]) if lines else {}
    except ValueError:
        row = {}
    return row if isinstance(row, dict) else {}


def _is_number(value: Any) -> bool:
    return isinstance(value, float | int) or (isinstance(value, str) and value in _NOT_FINITE)


def _size(path: Path) -> int:
    return path.stat().st_size if path.exists() else 0
