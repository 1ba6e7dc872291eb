"""Reads: by several tasks and threads, begun ahead, and never taken."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import phlox_tensor as pt
from phlox_wgpu import Wgpu
from phlox_wgpu._array import GpuArray

Run = Callable[[str], str]
Up = Callable[[Any], GpuArray]


def test_threads_take_what_they_asked_for_a_step_ahead(gpu: Wgpu) -> None:
    failures: list[BaseException] = []

    def work(value: int) -> None:
        try:
            x = gpu.upload(np.full(64, value, np.float32), pt.float32)
            gpu.begin_read(x)
            for step in range(120):
                ops = 1 + (step + value) % 40  # fewer and more than are handed over at once
                after = x
                for _ in range(ops):
                    after = gpu.ops.add(after, 1.0)
                gpu.begin_read(after)
                if step % 7:  # the others are dropped unread
                    assert (gpu.read(x) == value).all(), step
                x, value = after, value + ops
            assert (gpu.read(x) == value).all()
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures, failures


def test_a_process_ends_with_reads_that_nobody_takes(run: Run) -> None:
    program = """
    import numpy as np, phlox_tensor as pt
    from phlox_wgpu import Wgpu
    gpu = Wgpu()
    x = gpu.upload(np.ones(64, np.float32), pt.float32)
    kept = []
    for _ in range(50):
        x = gpu.ops.add(x, 1.0)
        gpu.begin_read(x)
        kept.append(x)
    print("ends")
    """
    assert "ends" in run(program)


def test_read_async(gpu: Wgpu, up: Up) -> None:
    x = up(np.arange(5, dtype=np.float32))

    async def main() -> list[Any]:
        return await asyncio.gather(*(gpu.read_async(gpu.ops.add(x, i)) for i in range(8)))

    for i, got in enumerate(asyncio.run(main())):
        assert got.tolist() == [i, 1 + i, 2 + i, 3 + i, 4 + i]


def test_a_read_that_was_begun_gives_what_was_there_then(gpu: Wgpu, up: Up) -> None:
    x = up(np.arange(5, dtype=np.float32))
    for i in range(3):
        y = gpu.ops.add(x, i)
        assert gpu.begin_read(y)
        gpu.ops.add(y, 1)
        before = len(gpu.device._begun)
        assert gpu.read(y).tolist() == [i, 1 + i, 2 + i, 3 + i, 4 + i]
        assert len(gpu.device._begun) == before - 1
        assert gpu.read(y).tolist() == [i, 1 + i, 2 + i, 3 + i, 4 + i]
    assert gpu.begin_read(gpu.ops.add(x, 1))  # and is never read
    assert not gpu.device._begun
    beyond = gpu.ops.take(x, up(np.asarray([7], np.int32)), 0)
    gpu.begin_read(beyond)
    with pytest.raises(pt.IndexOutOfRangeError, match="take"):
        gpu.read(beyond)
    assert gpu.read(x).tolist() == [0, 1, 2, 3, 4]
