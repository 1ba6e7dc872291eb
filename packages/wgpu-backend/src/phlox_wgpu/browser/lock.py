"""A lock between calls of Python that wait for the GPU, all in one thread."""

from __future__ import annotations

from functools import cache
from importlib import import_module
from typing import Any, final

from phlox_tensor import DeviceError


@cache
def ffi() -> Any:
    """Pyodide's bridge to JavaScript."""
    return import_module("pyodide.ffi")


@final
class Lock:
    """What one call holds while it waits for a promise holds off the others, as they begin.

    Python changes from one call to another only in a wait, so a lock that is held by a call that
    does not wait is held by the one that asks.
    """

    def __init__(self) -> None:
        """Free."""
        self._depth = 0
        self._wait: Any = None  # the promise that the holder waits for

    def __enter__(self) -> None:
        while self._wait is not None:
            if not ffi().can_run_sync():
                what = "another call of Python waits for the GPU, and this one cannot wait for it"
                raise DeviceError("wgpu", what, hint="await pyodide.runPythonAsync(code)")
            ffi().run_sync(self._wait.catch(lambda _: None))
        self._depth += 1

    def __exit__(self, *_: object) -> None:
        self._depth -= 1

    def wait(self, promise: Any) -> Any:
        """What a promise gives; others are held off meanwhile if this call holds the lock."""
        if not self._depth or self._wait is not None:  # what waits already is another call
            return ffi().run_sync(promise)
        self._wait = promise
        try:
            return ffi().run_sync(promise)
        finally:
            self._wait = None


LOCK = Lock()  # of the page, which has one GPU
