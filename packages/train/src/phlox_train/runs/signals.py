"""Signals: Ctrl-C and SIGTERM end a run after the current step."""

from __future__ import annotations

import os
import signal
import threading
from types import FrameType
from typing import Any, Final, final

# What each asks for: to stop, or to save and go on, as Slurm's warning does.
_STOPS: Final = {"SIGINT": "Ctrl-C", "SIGTERM": "SIGTERM"}
_SAVES: Final = {"SIGUSR1": "SIGUSR1"}


@final
class Signals:
    """Notes signals in the main thread; a second one that stops acts at once, as it did before."""

    def __init__(self, *, show: bool) -> None:
        """Note nothing yet.

        Args:
            show: whether to say what a signal does.
        """
        self._show = show
        self.stop: str | None = None
        self.save: str | None = None
        self._before: dict[int, Any] = {}

    def install(self) -> None:
        """Take the signals over, where this is the main thread."""
        if threading.current_thread() is not threading.main_thread():
            return
        for name in (*_STOPS, *_SAVES):
            number = getattr(signal, name, None)
            # One that Python does not know of belongs to somebody else; an ignored one stays so.
            if number is not None and signal.getsignal(number) not in (None, signal.SIG_IGN):
                self._before[number] = signal.signal(number, self._note)

    def restore(self) -> None:
        """Give the signals back."""
        while self._before:
            signal.signal(*self._before.popitem())

    def _note(self, number: int, frame: FrameType | None) -> None:
        del frame
        name = signal.Signals(number).name
        if name in _SAVES:
            self.save = _SAVES[name]
            return
        self.stop = _STOPS[name]
        signal.signal(number, self._before.pop(number))
        if self._show:  # by a call that may interrupt another one that writes
            os.write(2, f"\n[run] {self.stop}: ends after this step; again: at once\n".encode())
