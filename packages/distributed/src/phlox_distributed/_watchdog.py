"""A watchdog: a process that stands still prints the stacks of its threads, and ends."""

from __future__ import annotations

import faulthandler
from time import monotonic
from typing import Final, final

_PAUSE: Final = 1.0  # seconds between two times that it is wound up, which takes 50 µs


@final
class Watchdog:
    """Ends the process where nothing was noted for so many seconds; its launcher ends the others.

    It is a thread of the interpreter's own in C, so it also sees one that waits inside of MPI.
    """

    def __init__(self, seconds: float) -> None:
        """Begin to watch."""
        self._seconds = seconds
        self._last = 0.0
        self.note()

    def note(self) -> None:
        """Take note that the process goes on."""
        now = monotonic()
        if now - self._last > min(_PAUSE, self._seconds / 4):
            self._last = now
            faulthandler.dump_traceback_later(self._seconds, exit=True, file=2)

    def close(self) -> None:
        """Watch no more."""
        faulthandler.cancel_dump_traceback_later()
