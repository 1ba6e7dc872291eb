"""Data beside the file: views of mapped files that lie in the model's folder and nowhere else."""

from __future__ import annotations

import mmap
import os
import stat
from collections.abc import Mapping
from pathlib import Path, PurePosixPath
from typing import Final

from .._errors import OnnxError

Opened = dict[Path, bytes | mmap.mmap]
_LINKS: Final = getattr(os, "O_NOFOLLOW", 0)
_WAITS: Final = getattr(os, "O_NONBLOCK", 0)


def mapped(
    folder: Path | None, entries: Mapping[str, str], wanted: int, opened: Opened
) -> memoryview:
    """Return the ``wanted`` bytes that the entries of a tensor point at.

    Keys other than location, offset and length are ignored.

    Args:
        folder: where the model lies.
        entries: of the tensor.
        wanted: bytes.
        opened: takes the files that were opened, each of which is mapped once.

    Raises:
        OnnxError: when there is no folder, or the place is not a plain file inside of it that
            holds so many bytes there.
    """
    location = entries.get("location", "")
    if folder is None:
        raise _refused("the data of a tensor is in another file", location, "a path to load from")
    offset = _number(entries.get("offset", "0"))
    length = _number(entries["length"]) if entries.get("length") else wanted
    if length != wanted:
        expected = f"{wanted} bytes"
        raise _refused(
            "external data has another size than its tensor", f"{length} bytes", expected
        )
    file = _checked(folder, location)
    if file not in opened:
        opened[file] = _opened(file, location)
    whole = opened[file]
    if offset + wanted > len(whole):
        got = f"{wanted} bytes at {offset} of {len(whole)}"
        raise _refused("external data ends too early", got, None)
    return memoryview(whole)[offset : offset + wanted]


def _opened(file: Path, location: str) -> bytes | mmap.mmap:
    """The bytes of a plain file."""
    try:  # without waiting for what never opens, such as a pipe
        handle = os.open(file, os.O_RDONLY | _LINKS | _WAITS)
    except OSError as error:
        raise _refused("external data cannot be opened", repr(location), error.strerror) from None
    try:
        found = os.fstat(handle)
        if not stat.S_ISREG(found.st_mode) or found.st_nlink != 1:
            raise _refused("external data is no plain file", repr(location), "one with one name")
        return mmap.mmap(handle, 0, access=mmap.ACCESS_READ) if found.st_size else b""
    finally:
        os.close(handle)


def _checked(folder: Path, location: str) -> Path:
    """The path of a location that stays inside of the folder, by names and by links."""
    pure = PurePosixPath(location)
    strange = "\0" in location or "\\" in location or ":" in location
    if not location or strange or pure.is_absolute() or ".." in pure.parts:
        raise _refused("external data is outside of the model's folder", repr(location), None)
    base = folder.resolve()
    path = base
    for part in pure.parts:
        path = path / part
        if path.is_symlink():
            raise _refused("external data is a link", repr(location), "a plain file")
    if not path.resolve().is_relative_to(base):
        raise _refused("external data is outside of the model's folder", repr(location), None)
    return path


def _number(text: str) -> int:
    if not text.isascii() or not text.isdigit() or len(text) > 18:
        raise _refused("a place in external data is malformed", repr(text[:40]), "a number")
    return int(text)


def _refused(what: str, got: str, expected: str | None) -> OnnxError:
    return OnnxError("onnx", what, got=got, expected=expected)
