"""The errors of files that do not hold what their reader takes, of paths and of processes."""

from __future__ import annotations

from os import PathLike, fspath

from phlox_tensor import ArgumentError, PhloxError


class DataError(PhloxError, ValueError):
    """A file of data is corrupt or truncated, or does not hold what its reader takes."""


class WorkerError(PhloxError, RuntimeError):
    """A process that makes batches is gone, or could not send what happened in it."""


def require_missing(op: str, missing: str) -> None:
    """Refuse a ``missing`` that is neither ``"error"`` nor ``"nan"``."""
    if missing not in ("error", "nan"):
        what, expected = "no such choice of missing", '"error", "nan"'
        raise ArgumentError(op, what, got=missing, expected=expected)


def checked_path(path: str | PathLike[str], op: str) -> str:
    """Return a path as text, where it can be one."""
    text = fspath(path)
    if "\0" in text:
        raise ArgumentError(op, "not a path", got=repr(text), expected="text without \\0")
    return text
