"""Device memory: buffers in size classes, reused in stream order."""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Callable
from heapq import heappop, heappush

from ._cache import Recent
from ._engine import Buffer, Engine
from ._sizes import size_class

_KEPT_SIZES = 1 << 14


class Pool:
    """Free buffers by size class, of which the oldest goes first.

    So a loop that swaps what it holds, as training does, comes by the same buffers after a few
    turns, and by the bind groups that the engine keeps for them. Last in first out shuffles them.

    One queue runs everything in order, so a freed buffer may be handed out at once. The caller
    holds the device lock, but for `returned`, which finalizers append to from any thread.
    """

    def __init__(self, engine: Engine, limit: int, flush: Callable[[], None]) -> None:
        self._engine = engine
        self._limit = limit
        self._flush = flush
        # Free bytes above which the pool is trimmed when it must grow, if it would then hold more
        # than twice the most that was in use at once since the last trim. Training that repeats
        # its steps takes that again; what is trimmed at the wrong moment is missing in each step.
        self.keep_bytes = 1 << 30
        self._most = 0
        self._free: defaultdict[int, list[int]] = defaultdict(list)
        self._classes: Recent[int, tuple[int, list[int]]] = Recent(_KEPT_SIZES)
        # Every buffer is held here as well. Held only by its array, a buffer in a reference cycle
        # would be finalized, and released, in the same collection that hands it back to the pool.
        self._all: dict[int, Buffer] = {}
        self.returned: deque[Buffer] = deque()
        self.current_bytes = 0
        self.peak_bytes = 0
        self.reserved_bytes = 0

    def collect(self) -> None:
        """Take in what finalizers gave back."""
        self._note_most()
        returned, free, current = self.returned, self._free, self.current_bytes
        while returned:
            buffer = returned.popleft()
            nbytes = buffer.nbytes
            current -= nbytes
            heappush(free[nbytes], buffer.serial)
        self.current_bytes = current

    def _note_most(self) -> None:
        """Note what is in use, which has only grown since buffers were taken in."""
        if self.current_bytes > self._most:
            self._most = self.current_bytes
            self.peak_bytes = max(self.peak_bytes, self._most)

    def take(self, nbytes: int) -> Buffer:
        """A buffer of at least `nbytes`; its content is whatever was there."""
        if self.returned:
            self.collect()
        known = self._classes
        bucket, free = known.get(nbytes) or known.find(nbytes, lambda: self._class_of(nbytes))
        buffer = self._all[heappop(free)] if free else self._create(bucket)
        self.current_bytes += bucket
        return buffer

    def _class_of(self, nbytes: int) -> tuple[int, list[int]]:
        bucket = size_class(nbytes, self._limit)
        return bucket, self._free[bucket]

    def _create(self, nbytes: int) -> Buffer:
        self._note_most()
        if self.free_bytes > self.keep_bytes and self.reserved_bytes + nbytes > 2 * self._most:
            self.trim()
        buffer = self._engine.buffer(nbytes)
        self.reserved_bytes += nbytes
        self._all[buffer.serial] = buffer
        return buffer

    @property
    def free_bytes(self) -> int:
        """Bytes of buffers that no array uses."""
        return self.reserved_bytes - self.current_bytes

    def trim(self) -> int:
        """Give free buffers back to the driver; returns the bytes."""
        self._flush()  # recorded commands may still use them
        self.collect()
        freed = 0
        for bucket, free in self._free.items():
            for serial in free:
                self._engine.destroy(self._all.pop(serial))
                freed += bucket
            free.clear()
        self.reserved_bytes -= freed
        self._most = self.current_bytes
        return freed
