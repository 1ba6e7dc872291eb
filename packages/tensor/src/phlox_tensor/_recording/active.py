"""Which recordings run, in all threads, and what watches between devices and callers."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import RLock, local
from typing import Any, Final, final

import numpy as np

from .._device import backend as _backend
from .._device.backend import Backend
from .._device.table import Entry
from .._op.declaration import Op
from .._values.cell import RECORDINGS, recording_here
from .._values.dtype import DType
from .record import Recording


@final
class _Open(local):
    """The recordings under way in this thread: for each whether all devices are watched."""

    def __init__(self) -> None:
        self.on_all: list[bool] = []


_OPEN: Final = _Open()
_COUNTING: Final = RLock()  # for a moment only: no code of the user's runs meanwhile


def _count(step: int, *, watching: bool) -> None:
    """Count a recording that begins (1) or ends (-1)."""
    with _COUNTING:
        RECORDINGS.count += step
        RECORDINGS.watching += step * watching
        _backend.watch(_WATCHER, on=RECORDINGS.watching > 0)


@contextmanager
def recorded(made: Recording, *, watching: bool = True) -> Iterator[None]:
    """Note what the block does on base devices, in this thread or task; others go on meanwhile.

    Args:
        made: what notes it.
        watching: on all devices; else only on those that note their ops themselves.
    """
    _count(1, watching=watching)
    _OPEN.on_all.append(watching)
    token = recording_here.set(made)
    try:
        yield
    finally:
        recording_here.reset(token)
        made.close()
        _OPEN.on_all.remove(watching)
        _count(-1, watching=watching)


def _forked() -> None:
    """Forget the recordings of other threads, which a forked process does not have."""
    RECORDINGS.count = len(_OPEN.on_all)
    RECORDINGS.watching = sum(_OPEN.on_all)
    _COUNTING.release()
    _count(0, watching=False)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=_COUNTING.acquire, after_in_parent=_COUNTING.release, after_in_child=_forked
    )


@contextmanager
def unrecorded() -> Iterator[None]:
    """Let the block compute constants, which a recording around it takes for given."""
    token = recording_here.set(None)
    try:
        yield
    finally:
        recording_here.reset(token)


@final
class _Watcher:
    """Stands between the base devices and their callers while there are recordings."""

    def entry(self, device: Backend, op: Op, entry: Entry) -> Entry:
        """Return the entry, noted where this thread or task records."""

        def run(*args: Any) -> Any:
            made = recording_here.get()
            return entry(*args) if made is None else made.run(device, op, entry, args)

        return run

    def methods(self, device: Backend) -> dict[str, Callable[..., Any]]:
        """Return the ways from and to the host, noted in the same manner."""
        cls = type(device)

        def read(primitive: Any, /) -> Any:
            made = recording_here.get()
            if made is not None:
                made.read(device, primitive)
            return cls.read(device, primitive)

        async def read_async(primitive: Any, /) -> Any:
            made = recording_here.get()
            if made is not None:
                made.read(device, primitive)
            return await cls.read_async(device, primitive)

        def upload(array: np.ndarray[Any, Any], dtype: DType, /) -> Any:
            made = recording_here.get()
            out = cls.upload(device, array, dtype)
            if made is not None:
                made.uploaded(device, array, out)
            return out

        return {"read": read, "read_async": read_async, "upload": upload}


_WATCHER: Final = _Watcher()
