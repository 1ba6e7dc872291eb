"""Files: whole or not at all when written, mapped when read."""

from __future__ import annotations

import contextlib
import fnmatch
import io
import mmap
import os
import stat
import sys
from collections.abc import Iterable, Iterator
from difflib import get_close_matches
from pathlib import Path
from typing import Any, BinaryIO, Final, final

from ._errors import Malformed

try:
    import fcntl
except ImportError:  # neither Windows nor Python in a browser has it
    fcntl = None  # type: ignore[assignment]

TEMPORARY: Final = ".phlox-*.tmp"  # what a killed process may leave behind
_PORTION: Final = 1 << 22


@contextlib.contextmanager
def atomic_file(path: Path) -> Iterator[BinaryIO]:
    """Give a file to write to; it takes the place of `path` only when the body succeeds.

    The bytes reach the disk before the name does, so a crash leaves the old file or the new one.
    A pipe or a device is written to as it is.
    """
    if path.is_symlink():  # the link stays, and the file that it names is replaced
        path = path.resolve()
    if path.exists() and not (path.is_file() or path.is_dir()):
        with path.open("wb") as file:  # a new file in its place would end it for all programs
            yield file
        return
    try:
        temporary, handle = _temporary(path)
    except OSError as error:
        raise _of_path(error, path) from None
    try:
        with io.BufferedWriter(_Flowing(handle, "wb")) as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
            if os.name == "posix":  # as long as it is marked: else who tidies up may take it away
                _replace(temporary, path)
        if os.name != "posix":  # where an open file keeps its name
            _replace(temporary, path)
    except BaseException as error:
        with contextlib.suppress(OSError):
            temporary.unlink()
        if isinstance(error, OSError) and error.filename is None:  # such as a full disk
            raise _of_path(error, path) from None
        raise
    _sync_folder(path.parent)


def _replace(temporary: Path, path: Path) -> None:
    try:
        os.replace(temporary, path)
    except OSError as error:
        raise _of_path(error, path) from None


def _temporary(path: Path) -> tuple[Path, int]:
    """A new file beside another one, open and marked as being written."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)
    # Where a file system has no locks, the last one will do. Ranks that write to one folder at once
    # also tidy it up at once, so that two or three may come in between.
    attempts = 0
    while True:
        attempts += 1
        place = path.with_name(TEMPORARY.replace("*", os.urandom(8).hex()))
        handle = os.open(place, flags, 0o666)
        # Somebody who tidies up may have come between making it and marking it.
        if (_lock(handle) and os.fstat(handle).st_nlink) or attempts > 8:
            return place, handle
        os.close(handle)
        place.unlink(missing_ok=True)


@contextlib.contextmanager
def held(path: Path) -> Iterator[None]:
    """Keep an empty file beside a path, marked as being written until the body ends."""
    try:
        handle = os.open(path, os.O_WRONLY | os.O_CREAT, 0o666)
    except OSError as error:
        raise _of_path(error, path) from None
    try:
        _lock(handle)
        yield
    finally:
        os.close(handle)
        path.unlink(missing_ok=True)


def let_go(path: Path) -> bool:
    """Whether a file is held by nobody; what a killed process left of it is removed."""
    with contextlib.suppress(FileNotFoundError):
        return _remove_unlocked(path)
    return True


@final
class _Flowing(io.FileIO):
    """A file whose bytes are on their way to the disk while more come, not only at the end."""

    _here = 0  # bytes that the system holds
    _sent = 0  # those of them that it was told to write

    def write(self, data: Any) -> int:
        count = super().write(data)
        self._here += count
        if self._here - self._sent >= _PORTION and hasattr(os, "posix_fadvise"):
            # Advice that begins writing: pages that are not on the disk yet are kept.
            portion = self._sent, self._here - self._sent
            os.posix_fadvise(self.fileno(), *portion, os.POSIX_FADV_DONTNEED)
            self._sent = self._here
        return count


def remove_left(folder: Path, names: list[str]) -> None:
    """Remove what killed processes left of files in a folder, but none that is being written."""
    for name in fnmatch.filter(names, TEMPORARY):
        with contextlib.suppress(FileNotFoundError):
            _remove_unlocked(folder / name)


def _remove_unlocked(path: Path) -> bool:
    """Remove a file that nobody writes; False where somebody does."""
    try:
        handle = os.open(path, os.O_RDONLY)
        try:
            if not _lock(handle):
                return False
            path.unlink()
        finally:
            os.close(handle)
    except FileNotFoundError:
        raise
    except OSError:  # such as on Windows, which keeps a file while it is open
        return False
    return True


def _lock(handle: int) -> bool:
    """Mark a file as being written until it is closed; False when somebody else did."""
    if sys.platform != "win32" and fcntl is not None:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:  # also where a network file system has no locks: then nothing is removed
            return False
    return True


def _of_path(error: OSError, path: Path) -> OSError:
    """The error by the name that the caller gave, not by that of the temporary file."""
    text = error.strerror or str(error)
    if isinstance(error, FileNotFoundError) and not path.parent.exists():
        text += f"; there is no folder {str(path.parent)!r}, which os.makedirs makes"
    return OSError(error.errno, text, str(path))


def not_found(error: FileNotFoundError, path: Path, like: Iterable[str] = ()) -> FileNotFoundError:
    """The error of a file that is missing, with those of its folder that may have been meant.

    Args:
        error: what the system says.
        path: the file.
        like: names to look for; none are those that the missing one begins or resembles.
    """
    there = [other.name for other in path.parent.iterdir()] if path.parent.is_dir() else []
    near = [name for name in there if name.startswith(path.name)]
    found = sorted(set(like) & set(there)) or near or get_close_matches(path.name, there)
    hint = f"; there is {', '.join(found)}" if found else ""
    return FileNotFoundError(error.errno, f"{error.strerror}{hint}", str(path))


def _sync_folder(folder: Path) -> None:
    """Make the new name durable, where folders can be opened (not on Windows)."""
    if os.name != "posix":
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        # Some network file systems refuse to sync a folder; the file itself is safe by then.
        with contextlib.suppress(OSError):
            os.fsync(handle)
    finally:
        os.close(handle)


def map_file(path: Path) -> memoryview:
    """Return the bytes of a file, mapped read-only; the map lives as long as what is read from it.

    Raises:
        FileNotFoundError: there is none.
        Malformed: a folder, pipe or device, which could block or have no end; no path at all.
    """
    if "\0" in str(path):
        raise Malformed("the path has a NUL character", got=repr(str(path)))
    mode = path.stat().st_mode
    if not stat.S_ISREG(mode):
        raise Malformed("not a regular file", got=stat.filemode(mode))
    with path.open("rb") as file:
        if os.fstat(file.fileno()).st_size == 0:
            return memoryview(b"")
        return memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))
