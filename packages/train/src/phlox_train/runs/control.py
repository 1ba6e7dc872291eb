"""A file by which other processes ask a run to save or end; it is read at most once a second."""

from __future__ import annotations

from pathlib import Path
from time import monotonic
from typing import Final, Literal, TypeAlias, final

Wish: TypeAlias = Literal["save", "end", "stop"]
WISHES: Final[tuple[Wish, ...]] = ("save", "end", "stop")
NAME: Final = "control"
_EVERY: Final = 1.0  # seconds


def ask(folder: Path, wish: Wish) -> None:
    """Ask a run to save, to end after its epoch, or to stop after its step.

    Raises:
        OSError: where the folder cannot be written to.
    """
    temporary = folder / f".{NAME}.tmp"
    temporary.write_text(wish, encoding="utf-8")
    temporary.replace(folder / NAME)


@final
class Control:
    """Reads the requests."""

    def __init__(self, folder: Path | None) -> None:
        """Forget requests to an earlier start."""
        self._path = None if folder is None else folder / NAME
        self._next = monotonic() + _EVERY
        if self._path is not None:
            self._path.unlink(missing_ok=True)

    def asked(self) -> Wish | None:
        """Return what was requested since the last call."""
        if self._path is None or monotonic() < self._next:
            return None
        self._next = monotonic() + _EVERY
        try:
            text = self._path.read_text(encoding="utf-8", errors="replace").strip()
            self._path.unlink()
        except OSError:  # no request, or no file can be read
            return None
        return next((wish for wish in WISHES if wish == text), None)
