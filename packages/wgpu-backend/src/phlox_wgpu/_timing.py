"""GPU time of recorded work: by the clock of the GPU, or the wall clock around a wait."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np
import wgpu
from wgpu.backends.wgpu_native import _api

from ._pool import Buffer
from ._runtime import GpuDevice

_ffi: Any = _api.ffi
_lib: Any = _api.lib
_NEVER = 1 << 30


def gpu_seconds(device: GpuDevice, call: Callable[[], object], turns: int) -> float:
    """Return the time of one call, as the mean over `turns` calls recorded after one another.

    `call` records work and does not read. The first call, which compiles, is not counted.
    """
    call()
    device.sync()
    seconds = 0.0
    if "timestamp-query" in device.features:
        seconds = _stamped(device, call, turns)
    if not seconds:  # some drivers leave the stamps at zero
        start = time.perf_counter()
        for _ in range(turns):
            call()
        device.sync()
        seconds = time.perf_counter() - start
    return seconds / turns


def _stamped(device: GpuDevice, call: Callable[[], object], turns: int) -> float:
    """Record all turns into one pass, between two timestamps."""
    queries = device.gpu.create_query_set(type="timestamp", count=2)
    usage = wgpu.BufferUsage.QUERY_RESOLVE | wgpu.BufferUsage.COPY_SRC
    stamps = device.gpu.create_buffer(size=16, usage=usage)
    writes = _ffi.new("WGPUPassTimestampWrites *")
    writes.querySet = queries._internal
    writes.beginningOfPassWriteIndex, writes.endOfPassWriteIndex = 0, 1
    native = device.native
    with device.lock:
        device.flush()
        device._flush_at = _NEVER
        for _ in range(turns):
            call()
        native._pass_desc.timestampWrites = writes
        try:
            device.flush()
        finally:
            native._pass_desc.timestampWrites = _ffi.NULL
    encoder = device.gpu.create_command_encoder()
    encoder.resolve_query_set(queries, 0, 2, stamps, 0)
    device.gpu.queue.submit([encoder.finish()])
    ticks = np.frombuffer(device._read_bytes(Buffer(stamps, 16, 0), 0, 16), np.uint64)
    period = float(_lib.wgpuQueueGetTimestampPeriod(native.queue))
    return max(0, int(ticks[1]) - int(ticks[0])) * period * 1e-9
