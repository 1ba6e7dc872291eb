"""Functions whose dispatches are noted and handed over again."""

from __future__ import annotations

import gc
import threading
import weakref
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

import phlox_tensor as pt
from phlox_wgpu import Wgpu
from phlox_wgpu._array import GpuArray, Storage
from phlox_wgpu._runtime import Kernel
from phlox_wgpu._tape import Scratch

Up = Callable[[Any], GpuArray]


def pair(gpu: Wgpu, operands: Sequence[GpuArray]) -> tuple[GpuArray, ...]:
    """A sum by way of inner arrays, and a view of another inner one."""
    x, y = operands
    inner = gpu.ops.multiply(gpu.ops.add(x, y), 2.0)
    kept = gpu.ops.exp(x)
    total = gpu.ops.sum(gpu.ops.subtract(inner, y), (0,), False, pt.float32)
    return total, gpu.ops.permute_dims(kept, (1, 0))


def expected(x: np.ndarray, y: np.ndarray) -> list[np.ndarray]:
    return [((x + y) * 2 - y).sum(0), np.exp(x).T]


def close(gpu: Wgpu, found: Sequence[GpuArray], wanted: Sequence[np.ndarray]) -> None:
    for got, want in zip(found, wanted, strict=True):
        np.testing.assert_allclose(gpu.read(got), want, rtol=1e-5, atol=1e-6)


def counted(gpu: Wgpu, body: Callable[..., Any] = pair) -> tuple[Any, list[int]]:
    """A repeated function, and how often its ops were called."""
    calls: list[int] = []

    def run(operands: Sequence[GpuArray]) -> tuple[GpuArray, ...]:
        calls.append(1)
        found: tuple[GpuArray, ...] = body(gpu, operands)
        return found

    return gpu.repeated(lambda: run), calls


def floats(values: list[int]) -> np.ndarray:
    return np.asarray(values, np.float32)


def draw(rng: np.random.Generator, *shape: int) -> np.ndarray:
    return rng.normal(size=shape).astype(np.float32)


def test_ops_run_once_for_each_layout(gpu: Wgpu, up: Up, rng: np.random.Generator) -> None:
    run, calls = counted(gpu)
    for shape in ((3, 4), (5, 2), (3, 4)):
        for _ in range(4):
            x, y = draw(rng, *shape), draw(rng, *shape)
            close(gpu, run((up(x), up(y))), expected(x, y))
    assert len(calls) == 2
    x, y = draw(rng, 4, 3), draw(rng, 3, 4)
    for _ in range(3):
        close(gpu, run((gpu.ops.permute_dims(up(x), (1, 0)), up(y))), expected(x.T, y))
    assert len(calls) == 3


def test_results_of_many_calls_stay_apart(gpu: Wgpu, up: Up, rng: np.random.Generator) -> None:
    run, _ = counted(gpu)
    inputs = [(draw(rng, 3, 4), draw(rng, 3, 4)) for _ in range(20)]
    found = [run((up(x), up(y))) for x, y in inputs]
    for got, (x, y) in zip(found, inputs, strict=True):
        close(gpu, got, expected(x, y))


def test_one_array_as_two_operands_is_another_layout(
    gpu: Wgpu, up: Up, rng: np.random.Generator
) -> None:
    run, calls = counted(gpu)
    x, y = draw(rng, 3, 4), draw(rng, 3, 4)
    for _ in range(2):
        same = up(x)
        close(gpu, run((same, same)), expected(x, x))
        close(gpu, run((up(x), up(y))), expected(x, y))
    assert len(calls) == 2


def test_views_of_operands_and_constants_are_results(
    gpu: Wgpu, up: Up, rng: np.random.Generator
) -> None:
    def body(_: Wgpu, operands: Sequence[GpuArray]) -> tuple[GpuArray, ...]:
        constant = gpu.upload(np.arange(3, dtype=np.float32), pt.float32)
        (x,) = operands
        shifted = gpu.ops.add(x, constant)
        return gpu.ops.permute_dims(x, (1, 0)), constant, shifted, x

    run, calls = counted(gpu, body)
    for _ in range(3):
        x = draw(rng, 2, 3)
        close(gpu, run((up(x),)), [x.T, np.arange(3), x + np.arange(3), x])
    assert len(calls) == 1


def test_what_the_host_reads_is_never_repeated(gpu: Wgpu, up: Up) -> None:
    def body(_: Wgpu, operands: Sequence[GpuArray]) -> tuple[GpuArray, ...]:
        values = gpu.read(operands[0])
        return (gpu.upload(values + 1, pt.float32),)

    run, calls = counted(gpu, body)
    for n in range(3):
        close(gpu, run((up(floats([n])),)), [floats([n + 1])])
    assert len(calls) == 3


def test_an_index_out_of_range_is_reported(gpu: Wgpu, up: Up) -> None:
    def body(_: Wgpu, operands: Sequence[GpuArray]) -> tuple[GpuArray, ...]:
        return (gpu.ops.exp(gpu.ops.take(*operands, 0)),)

    run, _ = counted(gpu, body)
    x = up(floats([1, 2, 3]))
    for at in ([0, 2], [1, 1]):
        close(gpu, run((x, up(np.asarray(at, np.int32)))), [np.exp(floats([1, 2, 3]))[at]])
    out = run((x, up(np.asarray([0, 7], np.int32))))
    with pytest.raises(pt.IndexOutOfRangeError, match="take"):
        gpu.read(out[0])


def test_buffers_given_back_are_made_again(gpu: Wgpu, up: Up, rng: np.random.Generator) -> None:
    run, calls = counted(gpu)
    x, y = draw(rng, 3, 4), draw(rng, 3, 4)
    for _ in range(2):
        close(gpu, run((up(x), up(y))), expected(x, y))
    gpu.trim()
    for _ in range(2):
        close(gpu, run((up(x), up(y))), expected(x, y))
    assert len(calls) == 2


def test_functions_share_the_buffers_of_what_is_inside(
    gpu: Wgpu, up: Up, rng: np.random.Generator
) -> None:
    x, y = draw(rng, 64, 64), draw(rng, 64, 64)
    gpu.trim()
    gc.collect()
    before = gpu.memory().current

    def use_another() -> None:
        run, _ = counted(gpu)
        for _ in range(2):
            run((up(x), up(y)))

    for _ in range(10):
        use_another()
    gc.collect()
    assert gpu.memory().current - before <= 4 * x.nbytes
    gpu.trim()
    assert gpu.memory().current == before


def test_a_function_dropped_while_its_run_waits_keeps_its_constants(gpu: Wgpu, up: Up) -> None:
    x = up(np.eye(32, dtype=np.float32))

    def made(fill: float) -> Callable[..., tuple[GpuArray, ...]]:
        weight = up(np.full((32, 32), fill, np.float32))

        def body(_: Wgpu, operands: Sequence[GpuArray]) -> tuple[GpuArray, ...]:
            inner = gpu.ops.multiply(*operands, weight)  # binds an operand and the weight
            shared = gpu.ops.add(weight, weight)  # binds the weight and inner buffers alone
            return gpu.ops.add(inner, shared), weight

        return counted(gpu, body)[0]

    def filled(fill: float) -> np.ndarray:
        return np.full((32, 32), fill, np.float32)

    run = made(7)
    run((x,))
    gpu.sync()
    result, _ = run((x,))
    del run, _
    gc.collect()
    others = [up(filled(100)) for _ in range(8)]
    close(gpu, [result], [2 * filled(7) + 7 * np.eye(32, dtype=np.float32)])
    close(gpu, others, [filled(100)] * 8)


def test_a_function_may_run_inside_of_another(gpu: Wgpu, up: Up) -> None:
    inside, _ = counted(gpu, lambda _, operands: (gpu.ops.add(operands[0], 1.0),))
    x = floats([1, 2])
    inside((up(x),))

    def body(_: Wgpu, operands: Sequence[GpuArray]) -> tuple[GpuArray, ...]:
        return (gpu.ops.multiply(inside(operands)[0], 2.0),)

    run, _ = counted(gpu, body)
    for n in range(3):
        close(gpu, run((up(x + n),)), [(x + n + 1) * 2])


def test_a_pipeline_lives_as_long_as_what_runs_it(gpu: Wgpu, up: Up) -> None:
    device, x = gpu.device, up(floats([1, 2, 3, 4]))
    if not hasattr(device.engine, "native"):
        pytest.skip("what the native engine submits holds its pipelines by itself")

    def doubled() -> Kernel:
        body = "@compute @workgroup_size(4) fn main(@builtin(local_invocation_index) i: u32) "
        return Kernel(body + "{ out0[i] = 2.0 * in0[i]; }", ("f32",), ("f32",))

    def body(_: Wgpu, operands: Sequence[GpuArray]) -> tuple[GpuArray, ...]:
        out = device.empty((4,), pt.float32)
        device.launch((doubled,), operands, [out], (), 1)
        return (out,)

    run, _ = counted(gpu, body)
    run((x,))
    held = weakref.ref(device.pipeline(doubled))
    gpu.sync()
    device.pipelines._known.clear()  # as many other kernels would
    result = run((x,))
    del run
    gc.collect()
    assert held() is not None
    close(gpu, result, [floats([2, 4, 6, 8])])
    gc.collect()
    assert held() is None


def test_buffers_found_before_memory_is_short_stay(gpu: Wgpu) -> None:
    scratch, turns = Scratch(), iter([False, True, False])

    def make(size: int) -> Storage:
        if next(turns):
            scratch.clear()
        return gpu.device.storage(size)

    first = scratch.take([256, 512, 256], make)
    assert len({buffer.serial for buffer in first}) == 3
    assert not {buffer.serial for buffer in first} & {b.serial for b in gpu.device.pool.returned}
    assert scratch.take([256, 512, 256], make) == first


def test_threads_share_a_function(gpu: Wgpu, up: Up, rng: np.random.Generator) -> None:
    run, _ = counted(gpu)
    inputs = [(draw(rng, 3, 4), draw(rng, 3, 4)) for _ in range(4)]
    failed: list[BaseException] = []

    def work(x: np.ndarray, y: np.ndarray) -> None:
        try:
            for _ in range(20):
                close(gpu, run((up(x), up(y))), expected(x, y))
        except BaseException as error:
            failed.append(error)

    threads = [threading.Thread(target=work, args=given) for given in inputs]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failed
