"""Memory of batches that nobody has any more, for the next ones."""

from __future__ import annotations

from math import prod
from typing import Any, Final, final
from weakref import finalize

import numpy as np
from numpy.typing import NDArray

# Smaller arrays come from memory that the process has already; larger ones from the system, which
# clears each page of them. On two cores that took 5 % of the time for pictures of 224 pixels.
_LEAST: Final = 1 << 20
_KEPT: Final = 4


@final
class Buffers:
    """Hands out arrays, and takes their memory back when they and all views of them are gone."""

    def __init__(self) -> None:
        self._free: dict[int, list[bytearray]] = {}

    def empty(self, shape: tuple[int, ...], dtype: np.dtype[Any]) -> NDArray[Any]:
        """Return an array whose values are anything. Any thread may ask."""
        size = prod(shape) * dtype.itemsize
        if size < _LEAST or dtype.hasobject:
            return np.empty(shape, dtype)
        free = self._free.setdefault(size, [])
        try:
            memory = free.pop()
        except IndexError:
            memory = bytearray(size)
        whole = np.frombuffer(memory, np.uint8)  # views keep it: its own base is no array
        finalize(whole, _give, free, memory).atexit = False
        return whole.view(dtype).reshape(shape)

    def clear(self) -> None:
        """Let all memory go that is not in use."""
        self._free = {}


def _give(free: list[bytearray], memory: bytearray) -> None:
    if len(free) < _KEPT:
        free.append(memory)
