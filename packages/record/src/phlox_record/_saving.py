"""Saving while the program goes on."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable
from pathlib import Path
from threading import Event, Lock, Thread
from typing import Final, final
from weakref import WeakValueDictionary

_NEWEST: Final = WeakValueDictionary[str, Thread]()  # by the path that each writes to
_ORDER: Final = Lock()


@final
class Saving:
    """A file that is being written by another thread.

    Tensors never change, so it holds what the record was when saving began. The program ends only
    when the file is complete. A failure of which nobody asked is a RuntimeWarning.
    """

    def __init__(self, write: Callable[[], Path], place: Path) -> None:
        """Start writing, or begin when what is written to the place already is there."""
        self._outcome: list[Path | BaseException] = []
        self._left = Event()
        self._told = False
        # The thread does not hold the object, which ends when the program lets go of it.
        with _ORDER:
            key = os.path.realpath(place)
            work = (write, _NEWEST.get(key), self._outcome, self._left)
            self._thread = Thread(target=_run, args=work, name="phlox-saving", daemon=False)
            try:
                self._thread.start()
            except RuntimeError:  # no thread can be had, as in a browser: it is written now
                _run(*work)
            else:
                _NEWEST[key] = self._thread

    @property
    def done(self) -> bool:
        """Whether writing has ended, well or not."""
        return not self._thread.is_alive()

    def wait(self) -> Path:
        """Wait until the file is there, and return its path.

        Raises:
            RecordError: as ``Recorder.record``.
            OSError: the file cannot be written.
        """
        if not self._outcome:
            self._thread.join()
        outcome = self._outcome[0]
        self._told = True
        if isinstance(outcome, BaseException):
            raise outcome
        return outcome

    def __del__(self) -> None:
        """Let a failure be said that ``wait`` did not say, now or when it comes."""
        if not hasattr(self, "_thread"):  # its making failed
            return
        self._left.set()
        if self._outcome and not self._told:
            _warn(self._outcome[0])

    def __repr__(self) -> str:
        return f"Saving({'done' if self.done else 'going on'})"


def _run(
    write: Callable[[], Path],
    before: Thread | None,
    outcome: list[Path | BaseException],
    left: Event,
) -> None:
    if before is not None:
        before.join()
    try:
        outcome.append(write())
    except BaseException as error:
        outcome.append(error)
        if left.is_set():
            _warn(error)


def _warn(outcome: Path | BaseException) -> None:
    if isinstance(outcome, BaseException):
        text = f"[record_async] nothing was saved: {outcome}\nhint: saving.wait()"
        warnings.warn(text, RuntimeWarning, stacklevel=3)
