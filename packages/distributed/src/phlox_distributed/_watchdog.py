"""A watchdog: a process that stands still says so to who started it, and where it is."""

from __future__ import annotations

import faulthandler
import mmap
import signal
from pathlib import Path
from time import monotonic
from typing import Final, final

# The signal by which the launcher asks for stacks; no such thing is on Windows.
ASKS: Final = getattr(signal, "SIGUSR2", None)
_PAUSE: Final = 1.0  # seconds between two times that it is wound up, which takes 50 µs


@final
class Watchdog:
    """Writes stacks where nothing was noted for so many seconds, for who started the process.

    It is a thread of the interpreter's own in C, so it also sees one that waits inside of MPI.
    ``ASKS`` makes it write at once. Around an exchange it is entered: a number in a file is odd
    while the process is inside of one.
    """

    def __init__(self, seconds: float, folder: Path, rank: int) -> None:
        """Begin to watch.

        Args:
            seconds: without a note, after which the process stands still.
            folder: of files of all ranks; that of stacks is empty until then.
            rank: of this process.
        """
        self._seconds = seconds
        self._file = (folder / f"rank-{rank}.stacks").open("w")
        if ASKS is not None:
            chain = callable(signal.getsignal(ASKS))  # else it would end the process
            faulthandler.register(ASKS, self._file, chain=chain)
        path = folder / f"rank-{rank}.calls"
        path.write_bytes(bytes(8))
        with path.open("r+b") as file:
            self._calls = memoryview(mmap.mmap(file.fileno(), 8)).cast("q")
        self._last = float("-inf")
        self.note()

    def note(self) -> None:
        """Take note that the process goes on."""
        now = monotonic()
        if now - self._last > min(_PAUSE, self._seconds / 4):
            self._last = now
            faulthandler.dump_traceback_later(self._seconds, file=self._file)

    def __enter__(self) -> None:
        self.note()
        self._calls[0] += 1

    def __exit__(self, *error: object) -> None:
        self._calls[0] += 1
