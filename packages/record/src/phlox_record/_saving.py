"""Saving while the program goes on."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from threading import Thread
from typing import final


@final
class Saving:
    """A file that is being written by another thread.

    Tensors never change, so it holds what the record was when saving began. The program ends only
    when the file is complete.
    """

    def __init__(self, write: Callable[[], Path]) -> None:
        """Start writing."""
        self._write = write
        self._path: Path | None = None
        self._error: BaseException | None = None
        self._thread = Thread(target=self._run, name="phlox-saving", daemon=False)
        self._thread.start()

    def _run(self) -> None:
        try:
            self._path = self._write()
        except BaseException as error:
            self._error = error

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
        self._thread.join()
        if self._error is not None:
            raise self._error
        assert self._path is not None
        return self._path

    def __repr__(self) -> str:
        return f"Saving({'done' if self.done else 'going on'})"
