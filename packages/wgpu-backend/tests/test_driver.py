"""What the driver does not forgive: polls, no memory left, a device that is gone, large reads."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

import phlox_tensor as pt
from phlox_wgpu import Wgpu
from phlox_wgpu.wgpu_py import calls

Run = Callable[[str], str]


class SeenPolls:
    """The C functions, with every poll of the driver written down."""

    def __init__(self, real: Any) -> None:
        self.real = real
        self.waits: list[bool] = []
        self.running = 0
        self.most = 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self.real, name)

    def wgpuDevicePoll(self, device: Any, wait: Any, index: Any) -> Any:
        self.running += 1
        self.most = max(self.most, self.running)
        self.waits.append(bool(wait))
        time.sleep(0.001)  # room for another thread to get in
        try:
            return self.real.wgpuDevicePoll(device, wait, index)
        finally:
            self.running -= 1


def test_no_poll_waits_in_the_driver_and_no_two_poll_at_once(
    gpu: Wgpu, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not hasattr(gpu.device.engine, "native"):
        pytest.skip("the native engine has one lock for its polls")
    # A waiting poll keeps other threads from submitting; the driver does not stand two at once.
    seen = SeenPolls(calls._checked)
    monkeypatch.setattr(calls, "_checked", seen)

    def work(seed: int) -> None:
        for i in range(10):
            x = gpu.upload(np.full(100, i, np.float32), pt.float32)
            assert gpu.read(gpu.ops.add(x, seed))[0] == i + seed
            gpu.ops.add(x, 1.0)
            gpu.sync()

    with ThreadPoolExecutor(6) as threads:
        list(threads.map(work, range(6)))
    assert len(seen.waits) >= 10
    assert not any(seen.waits)
    assert seen.most == 1


@pytest.mark.skipif(sys.platform != "linux", reason="limits the memory of a process as Linux does")
def test_memory_of_dropped_tensors_serves_new_ones_of_other_sizes(gpu: Wgpu, run: Run) -> None:
    if not gpu.is_software:
        pytest.skip("only a software adapter takes its memory from the process")
    out = run(
        """
        import resource
        import phlox_tensor as pt
        from phlox_wgpu import Wgpu

        gpu = Wgpu()

        def filled(megabytes):
            return gpu.ops.full((megabytes * 250_000,), 1.0, pt.float32)

        def total(x):
            return gpu.ops.sum(x, (0,), False, pt.float32)

        gpu.read(total(filled(25)))
        gpu.trim()
        gpu.sync()
        with open("/proc/self/statm") as file:
            used = int(file.read().split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (used + (180 << 20),) * 2)
        first = [filled(25) for _ in range(5)]
        sums = [total(x) for x in first]
        del first  # while the sums are queued
        second = [filled(20) for _ in range(5)]
        print([float(gpu.read(s)) / 6.25e6 for s in sums])
        print([float(gpu.read(total(x))) / 5e6 for x in second])
        try:
            more = [filled(20) for _ in range(20)]
        except MemoryError as error:
            print(error)
        print(float(gpu.read(total(second[0]))) / 5e6)
        """
    )
    ones, more, reply = out.split("\n", 2)
    assert ones == more == str([1.0] * 5)
    assert reply.startswith("[wgpu] out of device memory: got a request for 20000000 bytes")
    assert reply.endswith("hint: use smaller batches\n1.0\n")


def test_a_lost_device_says_so_at_every_call(run: Run) -> None:
    out = run(
        """
        import threading
        import numpy as np
        import phlox_tensor as pt
        from phlox_wgpu import Wgpu

        if Wgpu.found():
            gpu = Wgpu()
            x = gpu.upload(np.ones((256, 256), np.float32), pt.float32)
            gpu.read(gpu.ops.add(x, x))
            y = gpu.ops.add(x, 1.0)
            gpu.device.engine.lose()
            calls = [
                lambda: gpu.read(y),
                gpu.sync,
                lambda: gpu.ops.exp(x),
                lambda: gpu.upload(np.ones(3000, np.float32), pt.float32),
                lambda: gpu.ops.full((1000, 1000), 1.0, pt.float32),
            ]
            for call in calls:
                try:
                    call()
                except pt.DeviceError as error:
                    print("the GPU was lost" in str(error))
        else:
            print("True\\n" * 5)
        """
    )
    assert out.split() == ["True"] * 5


def test_a_loss_ends_a_wait(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PHLOX_WGPU_ENGINE", "wgpu-py")
    out = run(
        """
        import phlox_tensor as pt
        from phlox_wgpu import Wgpu
        from wgpu import GPUError

        if Wgpu.found():
            gpu = Wgpu()
            gpu.sync()
            gpu.device.engine.lose()
            try:
                gpu.device.engine.native.wait_mapped(123456)  # what will never be mapped
            except GPUError as error:
                print("lost" in str(error))
        else:
            print(True)
        """
    )
    assert out.split() == ["True"]


def test_a_read_stages_what_it_reads_and_no_more(
    gpu: Wgpu, monkeypatch: pytest.MonkeyPatch
) -> None:
    sizes: list[int] = []
    staging: Any = getattr(gpu.device.engine, "_staging", None)
    if staging is None:
        pytest.skip("the native engine keeps its staging buffers to itself")
    take = staging.take

    def taken(nbytes: int) -> tuple[int, Any]:
        size, buffer = take(nbytes)
        sizes.append(size)
        return size, buffer

    monkeypatch.setattr(staging, "take", taken)
    count = (1 << 25) + 1000  # 128 MiB and some: over the part that a read brings over at a time
    count = min(count, gpu.device.max_binding_bytes // 4)
    values = np.arange(count, dtype=np.float32)
    got = gpu.read(gpu.ops.negative(gpu.upload(values, pt.float32)))
    np.testing.assert_array_equal(got, -values)
    assert sum(sizes) < 1.13 * values.nbytes
    assert max(sizes) <= 1 << 27
    gpu.read(gpu.upload(np.ones(1_100_000, np.float32), pt.float32))
    assert sizes[-1] < 1.13 * 4_400_000
    assert staging.kept_bytes <= 1 << 26
    gpu.trim()
    assert staging.kept_bytes == 0


def test_shaders_with_checks_give_the_same_bits(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    program = """
        import hashlib
        import numpy as np
        import phlox_tensor as pt
        from phlox_wgpu import Wgpu

        if Wgpu.found():
            gpu = Wgpu()
            x = gpu.upload(np.random.default_rng(3).normal(size=(130, 67)).astype("f"), pt.float32)
            found = [
                gpu.ops.matmul(x, gpu.ops.permute_dims(x, (1, 0))),
                gpu.ops.cumulative_sum(x, 0, pt.float32, False),
                gpu.ops.argsort(x, 1, False),
                gpu.ops.sum(x, (0, 1), False, pt.float32),
            ]
            print(hashlib.sha256(b"".join(gpu.read(y).tobytes() for y in found)).hexdigest())
        """
    without = run(program)
    monkeypatch.setenv("PHLOX_WGPU_CHECKS", "1")
    assert run(program) == without
