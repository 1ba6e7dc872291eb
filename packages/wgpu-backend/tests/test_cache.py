"""Caches forget what is not used, never everything at once, and stay bounded."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from phlox_wgpu import Wgpu
from phlox_wgpu._array import GpuArray
from phlox_wgpu._cache import Recent

Up = Callable[[Any], GpuArray]


def test_a_cache_forgets_what_is_not_used_and_nothing_else() -> None:
    cache: Recent[int, str] = Recent(100)
    made: list[int] = []

    def find(key: int) -> str:
        def make() -> str:
            made.append(key)
            return str(key)

        return cache.get(key) or cache.find(key, make)

    for i in range(1000):
        assert find(-1) == "-1"
        assert find(i) == str(i)
        assert len(cache) <= 100
    assert made.count(-1) == 1, "what is used again and again is kept"
    assert find(999 - 40) == "959"
    assert made.count(959) == 1, "and what was used lately"
    find(0)
    assert made.count(0) == 2
    cache.clear()
    assert len(cache) == 0
    assert cache.get(-1) is None


def test_a_loop_over_many_shapes_keeps_caches_bounded(
    gpu: Wgpu, up: Up, monkeypatch: pytest.MonkeyPatch
) -> None:
    device = gpu.device
    monkeypatch.setattr(device, "plans", Recent(40))
    if hasattr(device.engine, "_groups"):  # the native engine has tests of its own
        monkeypatch.setattr(device.engine, "_groups", Recent(40))
    kept = up(np.ones(7, np.float32))
    gpu.ops.add(kept, 1.0)
    plan = next(iter(device.plans._young.values()))
    for n in range(1, 200):
        x = up(np.ones((2, n), np.float32))
        assert gpu.read(gpu.ops.matmul(x, gpu.ops.permute_dims(x, (1, 0))))[0, 0] == n
        gpu.ops.add(kept, 1.0)
        assert len(device.plans) <= 40
        assert device.engine.counts[1] <= 40 or not hasattr(device.engine, "_groups")
    assert plan in [*device.plans._young.values(), *device.plans._old.values()]
