"""Errors for files named to a command that do not exist or cannot be used."""

from __future__ import annotations

import os
from pathlib import Path

from ._errors.classes import ArgumentError, PhloxError


def told(command: str, error: PhloxError | OSError) -> PhloxError:
    """Return an error of the system in the form of ours, and one of ours as it is."""
    if isinstance(error, PhloxError):
        return error
    text = error.strerror or str(error)
    what = text[:1].lower() + text[1:]
    if not isinstance(error.filename, str | os.PathLike):
        return ArgumentError(command, what)
    file = Path(error.filename)
    return ArgumentError(command, what, got=str(file), hint=look(file))


def look(file: Path) -> str:
    """Return what to type to see what is there, in the place of a file or above it."""
    folder = next(each for each in (file, *file.parents) if each.is_dir())
    return f'ls "{folder}"'
