"""What a run uses of its machine, measured now and then."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from time import monotonic
from typing import Any, final

from phlox_tensor import ArgumentError, DeviceError

_MB = 1e6


@final
class System:
    """Measures processor and memory at an interval; between two steps, so in no thread."""

    def __init__(self, every: float | None, devices: Iterable[Any]) -> None:
        """Begin an interval.

        Args:
            every: so many seconds; None measures nothing.
            devices: the devices of the learners.
        """
        self._every, self._devices = every, list(dict.fromkeys(devices))
        self._process: Any = None
        if every is not None:
            import psutil  # noqa: PLC0415 - 20 ms, and only for runs in folders

            self._psutil = psutil
            self._process = psutil.Process()
            psutil.cpu_percent()  # from here on
            self._next = monotonic() + every

    def measured(self) -> dict[str, float]:
        """Return values where an interval is over: percent of all processors, and megabytes.

        ``memory`` is that of the process and of those it started, such as workers of a loader;
        ``tensors`` are on the devices of learners, those of a GPU among them.
        """
        if self._every is None or monotonic() < self._next:
            return {}
        self._next = monotonic() + self._every
        resident = self._process.memory_info().rss
        for child in self._process.children(recursive=True):
            with suppress(self._psutil.Error):  # it ended meanwhile
                resident += child.memory_info().rss
        held = []
        for device in self._devices:
            with suppress(DeviceError):  # one that does not count
                held.append(device.memory().current)
        values = {"cpu": float(self._psutil.cpu_percent()), "memory": resident / _MB}
        return {**values, "tensors": sum(held) / _MB} if held else values


def interval_of(every: Any) -> float | None:
    """Return seconds between two measures, where they are some."""
    if every is None or (type(every) in (float, int) and every > 0):
        return every
    what, hint = "no interval", "train.Run(..., system=10.0)"
    expected = "seconds above 0, or None"
    raise ArgumentError("run", what, got=repr(every), expected=expected, hint=hint)
