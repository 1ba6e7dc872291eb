"""GPU time of recorded work: by the clock of the GPU, or the wall clock around a wait."""

from __future__ import annotations

import time
from collections.abc import Callable

from ._runtime import GpuDevice


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

    def all_turns() -> None:
        for _ in range(turns):
            call()

    with device.lock:
        return device.engine.seconds(all_turns)
