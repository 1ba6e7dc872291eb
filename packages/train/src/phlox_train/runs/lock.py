"""The lock of a folder: two runs in one would mix their rows and remove each other's files."""

from __future__ import annotations

import os
import platform
import sys
from pathlib import Path
from time import sleep
from typing import Final, final

from .errors import RunError

if sys.platform == "win32":
    import msvcrt
elif sys.platform != "emscripten":  # a browser has one process, and no locks
    import fcntl

NAME: Final = "lock"


@final
class FolderLock:
    """Holds a folder until it is closed, or the process ends in any way."""

    def __init__(self, folder: Path) -> None:
        """Take the folder.

        Raises:
            OSError: where the file cannot be made.
        """
        path = folder / NAME
        self._file = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
        if not _locked(self._file):
            holder = os.read(self._file, 200).decode(errors="replace").strip()
            os.close(self._file)
            many = "PHLOX_RANKS" in os.environ
            raise RunError(
                "run",
                f"another run is in {folder}",
                got=holder or "a locked file",
                expected="one run in a folder",
                hint="train.Learner(..., group=distributed.init())  # all ranks are in one run"
                if many
                else 'train.Run("another folder", ...), or wait for its end',
            )
        os.ftruncate(self._file, 0)
        os.write(self._file, f"process {os.getpid()} on {platform.node()}\n".encode())

    def close(self) -> None:
        """Give the folder back."""
        os.close(self._file)


def is_held(folder: Path) -> bool:
    """Whether a run holds a folder now."""
    try:
        file = os.open(folder / NAME, os.O_RDWR)
    except OSError:  # no run was there, or it is read-only
        return False
    try:
        _lock(file, shared=True)
    except OSError:
        return True
    finally:
        os.close(file)
    return False


def _locked(file: int) -> bool:
    """Take a lock, and say whether nobody has it; who only looks has it for a moment."""
    for _ in range(5):
        try:
            _lock(file, shared=False)
        except OSError:
            sleep(0.02)
        else:
            return True
    return False


def _lock(file: int, *, shared: bool) -> None:
    if sys.platform == "win32":
        os.lseek(file, 1 << 20, os.SEEK_SET)  # far after the text, which others may read
        msvcrt.locking(file, msvcrt.LK_NBLCK, 1)
        os.lseek(file, 0, os.SEEK_SET)
    elif sys.platform != "emscripten":
        fcntl.flock(file, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | fcntl.LOCK_NB)
