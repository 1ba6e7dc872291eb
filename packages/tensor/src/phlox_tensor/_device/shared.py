"""Memory that a device and other processes have in common."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol

from numpy.typing import NDArray

from .._values.dtype import DType


class SharedMemory(Protocol):
    """Memory of the host that a device reads and writes in place.

    What it holds is seen by others once the device is done: they meet there.
    """

    def array(self, count: int, dtype: DType, at: int, /) -> Any:
        """Return so many elements from a byte on as a primitive: what is there when it is read."""
        ...

    def put(self, primitive: Any, at: int, /) -> None:
        """Write a primitive of one axis from a byte on, after the ops before."""
        ...

    def meet(self, words: Sequence[NDArray[Any]], own: int, turn: int, /) -> Callable[[], None]:
        """Keep back what is called on the device until all processes have called this as often.

        The caller goes on.

        Args:
            words: a uint32 of each process in memory that all see, 0 before the first turn.
            own: which of them is of this process.
            turn: how often it was called, counted from 1.

        Returns:
            What blocks until all that was called before is done.
        """
        ...
