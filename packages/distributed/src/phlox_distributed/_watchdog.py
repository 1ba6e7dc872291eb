"""A watchdog: a process that stands still writes the stacks of its threads down."""

from __future__ import annotations

import faulthandler
from pathlib import Path
from time import monotonic
from typing import Final, final

_PAUSE: Final = 1.0  # seconds between two times that it is wound up, which takes 50 µs


@final
class Watchdog:
    """Writes stacks where nothing was noted for so many seconds, for who started the process.

    It is a thread of the interpreter's own in C, so it also sees one that waits inside of MPI.
    """

    def __init__(self, seconds: float, path: Path) -> None:
        """Begin to watch.

        Args:
            seconds: without a note, after which the process stands still.
            path: of a file, which is empty until then.
        """
        self._seconds = seconds
        self._file = path.open("w")
        self._last = float("-inf")
        self.note()

    def note(self) -> None:
        """Take note that the process goes on."""
        now = monotonic()
        if now - self._last > min(_PAUSE, self._seconds / 4):
            self._last = now
            faulthandler.dump_traceback_later(self._seconds, file=self._file)
