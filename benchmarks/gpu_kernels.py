"""The kernels and their costs: ``python -m benchmarks.gpu_kernels [part of a name]``."""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

import phlox_tensor as pt
from phlox_wgpu import Wgpu
from phlox_wgpu._array import GpuArray
from phlox_wgpu._runtime import GpuDevice

Shape = tuple[int, ...]
Call = Callable[[], object]


@dataclass(frozen=True, slots=True)
class Cost:
    """One call of an op and what it costs.

    Attributes:
        name: op and sizes.
        op: the entry to call.
        operands: shapes of random floats, or arrays, or None.
        attributes: what follows the operands.
        flops: floating-point operations of a call, 0 where memory is the limit.
        bytes: bytes that a call has to read and write, 0 where arithmetic is the limit.
        dtype: element type of the random operands.
    """

    name: str
    op: str
    operands: tuple[Any, ...]
    attributes: tuple[Any, ...] = ()
    flops: float = 0.0
    bytes: float = 0.0
    dtype: str = "float32"

    def call(self, device: Wgpu) -> Call:
        """Upload the operands and return the call."""
        rng = np.random.default_rng(0)
        operands = [_operand(device, rng, given, self.dtype) for given in self.operands]
        entry = device.ops[self.op]
        return lambda: entry(*operands, *self.attributes)


def _operand(device: Wgpu, rng: np.random.Generator, given: Any, dtype: str) -> GpuArray | None:
    if given is None:
        return None
    array = given
    if isinstance(given, tuple):
        array = rng.standard_normal(given, np.float32).astype(dtype)
    return device.upload(array, pt.as_dtype(array.dtype))


def _matmul(m: int, n: int, k: int, *, batch: Shape = (), dtype: str = "float32") -> Cost:
    size = math.prod(batch)
    width = np.dtype(dtype).itemsize
    name = f"matmul {'x'.join(map(str, (*batch, '')))}{m}x{k}x{n} {dtype}"
    return Cost(
        name,
        "matmul",
        ((*batch, m, k), (*batch, k, n)),
        flops=2.0 * size * m * n * k,
        bytes=1.0 * width * size * (m * k + k * n + m * n),
        dtype=dtype,
    )


def _conv(n: int, channels: int, side: int, out: int, kernel: int, stride: int) -> list[Cost]:
    pad = kernel // 2
    image, weight = (n, channels, side, side), (out, channels, kernel, kernel)
    count = (side + 2 * pad - kernel) // stride + 1
    g = (n, out, count, count)
    rest = ((stride, stride), ((pad, pad), (pad, pad)), (1, 1), 1)
    flops = 2.0 * math.prod(g) * channels * kernel * kernel
    name = f"{n}x{channels}x{side}x{side} to {out}, {kernel}x{kernel} s{stride}"
    return [
        Cost(f"conv2d {name}", "conv2d", (image, weight, None), rest, flops),
        Cost(f"conv2d input {name}", "conv2d_input_grad", (g, weight), (image, *rest), flops),
        Cost(f"conv2d weight {name}", "conv2d_weight_grad", (g, image), (weight, *rest), flops),
    ]


def _rows(rows: int, length: int) -> list[Cost]:
    shape, vector = (rows, length), (length,)
    size = 4.0 * rows * length
    name = f"{rows}x{length}"
    norm = (shape, vector, vector)
    return [
        Cost(f"layer_norm {name}", "layer_norm", norm, (1e-5,), bytes=2 * size),
        Cost(
            f"layer_norm_backward {name}",
            "layer_norm_backward",
            (shape, shape, vector),
            (1e-5,),
            bytes=3 * size,
        ),
        Cost(f"log_softmax {name}", "log_softmax", (shape,), (1,), bytes=2 * size),
        Cost(f"softmax {name}", "softmax", (shape,), (1,), bytes=2 * size),
        Cost(f"softmax_backward {name}", "softmax_backward", (shape, shape), (1,), bytes=3 * size),
        Cost(
            f"softmax, short {name}", "softmax", ((rows * length // 16, 16),), (1,), bytes=2 * size
        ),
        Cost(f"var {name}", "var", (shape,), ((1,), 0.0, False), bytes=size),
        Cost(f"var, all {name}", "var", (shape,), ((0, 1), 0.0, False), bytes=size),
    ]


def _batch_norm(n: int, channels: int, side: int) -> list[Cost]:
    shape, vector = (n, channels, side, side), (channels,)
    size = 4.0 * math.prod(shape)
    ones = np.ones(channels, np.float32)
    return [
        Cost(
            f"batch_norm_train {shape}",
            "batch_norm_train",
            (shape, vector, vector),
            (1e-5,),
            bytes=3 * size,
        ),
        Cost(
            f"batch_norm_backward {shape}",
            "batch_norm_backward",
            (shape, shape, vector, vector, ones),
            (1e-5,),
            bytes=5 * size,
        ),
    ]


def _pools(n: int, channels: int, side: int) -> list[Cost]:
    shape, half = (n, channels, side, side), (n, channels, side // 2, side // 2)
    size = 4.0 * math.prod(shape)
    window = ((5, 5), (2, 2), ((2, 2), (2, 2)))
    plane = np.arange(side * side).reshape(side, side)[::2, ::2]
    indices = np.ascontiguousarray(np.broadcast_to(plane, half)).astype(np.int32)
    return [
        Cost(
            f"avg_pool2d {shape} k5 s2",
            "avg_pool2d",
            (shape,),
            (*window, False, True),
            0,
            1.25 * size,
        ),
        Cost(
            f"max_pool2d {shape} k5 s2",
            "max_pool2d_with_indices",
            (shape,),
            (*window, (1, 1), False),
            bytes=1.5 * size,
        ),
        Cost(
            f"max_pool2d_backward {shape}",
            "max_pool2d_backward",
            (half, indices),
            (shape,),
            bytes=1.5 * size,
        ),
    ]


def _indexing(rows: int, width: int, count: int) -> list[Cost]:
    rng = np.random.default_rng(1)
    places = rng.integers(0, rows, count).astype(np.int32)
    table, values = (rows, width), (count, width)
    moved = 4.0 * count * width
    whole = 4.0 * rows * width
    name = f"{rows}x{width} at {count}"
    return [
        Cost(f"index_add {name}", "index_add", (table, places, values), (0,), 0, 2 * whole + moved),
        Cost(f"nonzero {count}", "nonzero", (places % 2 == 0,), (), 0, 4.0 * count),
        Cost(f"take {name}", "take", (table, places), (0,), 0, 2 * moved),
    ]


def _sorts(rows: int, length: int) -> list[Cost]:
    size = 4.0 * rows * length
    return [
        Cost(f"argsort {rows}x{length}", "argsort", ((rows, length),), (1, False), bytes=2 * size),
        Cost(f"sort {rows}x{length}", "sort", ((rows, length),), (1, False), bytes=2 * size),
    ]


def kernels(*, small: bool) -> list[Cost]:
    """Return the table, by op; `small` sizes are for software adapters."""
    if small:
        products = [_matmul(n, n, n) for n in (64, 256)] + [_matmul(1, 512, 512)]
        found = [*products, *_conv(1, 16, 28, 16, 3, 1), *_rows(256, 256), *_batch_norm(4, 8, 16)]
        found += [*_pools(1, 4, 64), *_indexing(1000, 64, 500), *_sorts(16, 1000)]
        return sorted(found, key=lambda cost: cost.op)
    sides = (512, 1024, 2048, 4096, 8192)
    products = [_matmul(n, n, n) for n in sides]
    products += [_matmul(n, n, n, dtype="float16") for n in (1024, 4096)]
    products += [_matmul(512, 512, 64, batch=(96,)), _matmul(512, 64, 512, batch=(96,))]
    products += [_matmul(1, 4096, 4096), _matmul(4096, 1, 4096), _matmul(64, 256, 784)]
    products += [_matmul(64, 10, 256), _matmul(784, 256, 64), _matmul(1000, 1000, 1000)]
    found = [*products, *_conv(32, 64, 56, 64, 3, 1), *_conv(32, 128, 28, 256, 3, 2)]
    found += [*_conv(64, 3, 224, 64, 7, 2), *_conv(32, 256, 14, 1024, 1, 1)]
    found += [*_rows(65536, 1024), *_rows(65536, 4096), *_batch_norm(32, 64, 56)]
    found += [*_pools(2, 128, 512), *_indexing(50_000, 1024, 65_536)]
    found += [*_sorts(4096, 4096), *_sorts(1, 1 << 22)]
    return sorted(found, key=lambda cost: cost.op)


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


def measure(device: Wgpu, cost: Cost, turns: int = 20) -> float:
    """Return the seconds of one call, by the clock of the GPU where it has one."""
    if cost.op == "nonzero":
        turns = 1  # it reads, which ends a recording
    return gpu_seconds(device.device, cost.call(device), turns)


def main() -> None:
    """Print the table for the first adapter."""
    wanted = sys.argv[1] if len(sys.argv) > 1 else ""
    device = Wgpu()
    for cost in kernels(small=device.is_software):
        if wanted not in cost.name:
            continue
        seconds = measure(device, cost)
        device.device.trim()
        rates = f"{cost.flops / seconds / 1e12:8.3f} TFLOP/s" if cost.flops else " " * 16
        rates += f"{cost.bytes / seconds / 1e9:10.1f} GB/s" if cost.bytes else ""
        print(f"{cost.name:58} {seconds * 1e6:12.1f} us {rates}", flush=True)


if __name__ == "__main__":
    main()
