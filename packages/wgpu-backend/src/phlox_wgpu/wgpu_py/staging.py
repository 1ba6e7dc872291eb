"""Buffers that the host reads, kept between reads."""

from __future__ import annotations

from typing import Any

import wgpu

from .._sizes import PART_BYTES, size_class

_KEPT_BYTES = 1 << 26
_USAGE = wgpu.BufferUsage.MAP_READ | wgpu.BufferUsage.COPY_DST


class Staging:
    """Staging buffers by size. The caller holds the device lock."""

    def __init__(self, device: Any) -> None:
        self._device = device
        self._free: list[tuple[int, Any]] = []  # oldest first
        self.kept_bytes = 0

    def take(self, nbytes: int) -> tuple[int, Any]:
        """A buffer of at least `nbytes`, with its size."""
        size = size_class(nbytes, 2 * PART_BYTES)
        for position, (own, buffer) in enumerate(self._free):
            if own == size:
                del self._free[position]
                self.kept_bytes -= own
                return own, buffer
        return size, self._device.create_buffer(size=size, usage=_USAGE)

    def give(self, size: int, buffer: Any) -> None:
        """Take a buffer back; the oldest go where too much is kept."""
        self._free.append((size, buffer))
        self.kept_bytes += size
        while self.kept_bytes > _KEPT_BYTES:
            self._drop_oldest()

    def trim(self) -> None:
        """Keep none."""
        while self._free:
            self._drop_oldest()

    def _drop_oldest(self) -> None:
        size, buffer = self._free.pop(0)
        self.kept_bytes -= size
        buffer.destroy()
