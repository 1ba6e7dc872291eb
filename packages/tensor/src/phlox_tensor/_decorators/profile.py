"""A device that counts: time, calls and bytes of every op, by op and by module."""

from __future__ import annotations

import json
from collections.abc import Iterable
from contextlib import ExitStack
from dataclasses import dataclass
from math import prod
from pathlib import Path
from threading import get_ident
from time import perf_counter_ns
from types import TracebackType
from typing import Any, NamedTuple, Self, final

from .._device.backend import Backend
from .._device.table import Entry
from .._errors.classes import ArgumentError
from .._op.declaration import Op
from .._values.primitives import each_primitive
from ..scope import current_path, watching
from .base import Decorator

_OUTSIDE = "(no module)"


class OpCall(NamedTuple):
    """One call of an op while a profile was open.

    Attributes:
        op: its name.
        module: the path of the module that called it, "" outside of any.
        start: in nanoseconds, on the clock of ``time.perf_counter_ns``.
        duration: in nanoseconds.
        nbytes: bytes of the operands and results.
        thread: the thread that called it.
    """

    op: str
    module: str
    start: int
    duration: int
    nbytes: int
    thread: int


@final
@dataclass(frozen=True, slots=True)
class ProfileRow:
    """What the calls of one op, or inside one module, cost together.

    Attributes:
        name: the op, or the path of the module.
        calls: how many there were.
        seconds: the time they took.
        nbytes: bytes of their operands and results.
    """

    name: str
    calls: int
    seconds: float
    nbytes: int


@final
@dataclass(frozen=True, slots=True)
class ProfileReport:
    """What a profile counted; printed as two tables, the dearest rows first.

    Attributes:
        by_op: a row for each op.
        by_module: a row for each module path that called ops, without the modules inside it.
    """

    by_op: tuple[ProfileRow, ...]
    by_module: tuple[ProfileRow, ...]

    def __str__(self) -> str:
        return "\n\n".join(
            _table(title, rows) for title, rows in (("op", self.by_op), ("module", self.by_module))
        )

    __repr__ = __str__  # notebooks show it


def _rows(pairs: Iterable[tuple[str, OpCall]]) -> tuple[ProfileRow, ...]:
    groups: dict[str, list[OpCall]] = {}
    for name, call in pairs:
        groups.setdefault(name, []).append(call)
    rows = [
        ProfileRow(
            name, len(calls), sum(c.duration for c in calls) / 1e9, sum(c.nbytes for c in calls)
        )
        for name, calls in groups.items()
    ]
    return tuple(sorted(rows, key=lambda row: (-row.seconds, row.name)))


def _table(title: str, rows: tuple[ProfileRow, ...]) -> str:
    width = max([len(title), *(len(row.name) for row in rows)])
    total = sum(row.seconds for row in rows) or 1.0
    lines = [f"{title:<{width}} {'calls':>9} {'ms':>12} {'share':>7} {'MiB':>12}"]
    lines += [
        f"{row.name:<{width}} {row.calls:>9,} {row.seconds * 1e3:>12,.3f} "
        f"{row.seconds / total:>6.1%} {row.nbytes / 2**20:>12,.2f}"
        for row in rows
    ]
    return "\n".join(lines)


@final
class Profile(Decorator):
    """Count time, calls and bytes of every op on another device, inside a ``with`` block.

    The device is waited for after each op, so that the time of a GPU counts where it is spent.
    Around ``Autodiff`` it sees what the program calls; inside, ``Autodiff(Profile(device))``, the
    backward pass too. Outside of the block it only passes ops on.

    Args:
        backend: the device to compute on, or its name.

    Example:
        >>> from phlox_tensor import Numpy, Profile, ones
        >>> with Profile(Numpy()) as device:
        ...     x = ones((2, 3), device=device).exp().sum()
        >>> [(row.name, row.calls) for row in sorted(device.report().by_op, key=lambda r: r.name)]
        [('exp', 1), ('full', 1), ('sum', 1)]
    """

    name = "profile"

    def __init__(self, backend: Backend | str) -> None:
        """Start with an empty, closed profile."""
        super().__init__(backend)
        self._calls: list[OpCall] = []
        self._open: ExitStack | None = None

    def __enter__(self) -> Self:
        """Forget what was counted, and count.

        Raises:
            ArgumentError: when a block of this device is open already.
        """
        if self._open is not None:
            raise ArgumentError("Profile", "the profile is open already", got=repr(self))
        self._calls = []
        self._open = ExitStack()
        self._open.enter_context(watching())
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        stack, self._open = self._open, None
        if stack is not None:
            stack.close()

    @property
    def calls(self) -> tuple[OpCall, ...]:
        """Every call that was counted, in the order in which they ended."""
        return tuple(self._calls)

    def report(self) -> ProfileReport:
        """Return what was counted, by op and by module.

        Raises:
            ArgumentError: when nothing was counted.
        """
        calls = self._counted("report")
        return ProfileReport(
            by_op=_rows((c.op, c) for c in calls),
            by_module=_rows((c.module or _OUTSIDE, c) for c in calls),
        )

    def save_trace(self, path: str | Path) -> None:
        """Write the calls as a trace that Chrome (chrome://tracing) and Perfetto show.

        Source: the Trace Event Format of Chromium, complete events ("X"), in microseconds.

        Raises:
            ArgumentError: when nothing was counted.
        """
        calls = self._counted("save_trace")
        first = min(c.start for c in calls)
        events = [
            {
                "name": c.op,
                "cat": "op",
                "ph": "X",
                "ts": (c.start - first) / 1e3,
                "dur": c.duration / 1e3,
                "pid": 0,
                "tid": c.thread,
                "args": {"module": c.module, "bytes": c.nbytes},
            }
            for c in calls
        ]
        Path(path).write_text(json.dumps({"traceEvents": events}), encoding="utf-8")

    def _counted(self, op: str) -> list[OpCall]:
        if not self._calls:
            raise ArgumentError(
                op,
                "no call of this device was counted",
                got=repr(self),
                expected="ops on it in a with block",
                hint="model = model.to_device(profile); x = x.to_device(profile); "
                "with profile: model(x)",
            )
        return self._calls

    def decorate(self, op: Op, inside: Entry) -> Entry:
        """Return the inner entry with a clock around it."""
        count, name, several = len(op.signature.operands), op.name, op.signature.several
        sync = self._inner.sync

        def run(*args: Any) -> Any:
            if self._open is None:
                return inside(*args)
            start = perf_counter_ns()
            out = inside(*args)
            sync()
            duration = perf_counter_ns() - start
            nbytes = sum(map(self._nbytes, (*args[:count], *(out if several else (out,)))))
            self._calls.append(OpCall(name, current_path(), start, duration, nbytes, get_ident()))
            return out

        return run

    def _nbytes(self, item: Any) -> int:
        """Bytes of an operand or result; 0 for a number or an absent one."""
        specs = map(self._inner.spec_of, each_primitive((item,)))
        return sum(prod(shape) * dtype.itemsize for shape, dtype in specs)
