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
        # Free bytes that may stay in the pool when it must grow; more, where it would not hold
        # twice of what was in use at once since it was trimmed: training that repeats its steps
        # takes all of that again, and what is trimmed at the wrong moment is missing in each.
        self.keep_bytes = 1 << 30
        self._most = 0
        self._free: defaultdict[int, list[int]] = defaultdict(list)
        # Every buffer is held here as well. Held only by its array, a buffer in a reference cycle
        # would be finalized, and released, in the same collection that hands it back to the pool.
        self._all: dict[int, Buffer] = {}
        self._buckets: Recent[int, int] = Recent(_KEPT_SIZES)
        self.returned: deque[Buffer] = deque()
        self.current_bytes = 0
        self.peak_bytes = 0
        self.reserved_bytes = 0

    def collect(self) -> None:
        """Take in what finalizers gave back."""
        returned = self.returned
        while returned:
            buffer = returned.popleft()
            self.current_bytes -= buffer.nbytes
            heappush(self._free[buffer.nbytes], buffer.serial)

    def take(self, nbytes: int) -> Buffer:
        """A buffer of at least `nbytes`; its content is whatever was there."""
        if self.returned:
            self.collect()
        buckets = self._buckets
        bucket = buckets.get(nbytes) or buckets.find(
            nbytes, lambda: size_class(nbytes, self._limit)
        )
        free = self._free[bucket]
        buffer = self._all[heappop(free)] if free else self._create(bucket)
        current = self.current_bytes + bucket
        self.current_bytes = current
        if current > self._most:
            self._most = current
            self.peak_bytes = max(self.peak_bytes, current)
        return buffer

    def _create(self, nbytes: int) -> Buffer:
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
