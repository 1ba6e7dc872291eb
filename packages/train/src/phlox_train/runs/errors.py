"""Errors of folders that cannot serve a run and of wrong paths; exceptions that end loops."""

from __future__ import annotations

from os import PathLike, fspath
from pathlib import Path
from typing import Final, final

from phlox_tensor import ArgumentError, PhloxError


class RunError(PhloxError, RuntimeError):
    """A run cannot begin or go on: its folder is taken, full, or of another run."""


def path_of(folder: str | PathLike[str], op: str) -> Path:
    """Return a folder as a path, where it can be one."""
    text = fspath(folder)
    if "\0" in text or not text:  # an empty one would be the folder that the program is in
        what = "not the path of a folder"
        raise ArgumentError(
            op, what, got=repr(text), expected="text without \\0", hint='"runs/one"'
        )
    return Path(text)


@final
class Ended(BaseException):
    """Leaves the loop of a run that ends inside of an epoch; its ``with`` takes it."""

    def __init__(self, run: object) -> None:
        """Say which run it is."""
        super().__init__(run)
        self.run: Final = run
