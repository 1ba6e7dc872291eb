"""Pools and their cotangents over random geometry, ties and special values."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import phlox_tensor as pt
from phlox_tensor.reference import pooling
from phlox_wgpu import Wgpu
from phlox_wgpu._array import GpuArray

ref: Any = pooling
Up = Callable[[Any], GpuArray]
Window = Any  # shape, kernel, stride, padding, dilation, ceil_mode


def windows(count: int, seed: int) -> list[Window]:
    rng = np.random.default_rng(seed)
    found: list[Window] = []
    while len(found) < count:
        shape = (*rng.integers(1, 4, 2).tolist(), *rng.integers(3, 15, 2).tolist())
        kernel, stride, dilation = (tuple(rng.integers(1, 4, 2).tolist()) for _ in range(3))
        padding = tuple(tuple(rng.integers(0, k // 2 + 1, 2).tolist()) for k in kernel)
        room = [
            n + sum(p) - d * (k - 1)
            for n, p, d, k in zip(shape[2:], padding, dilation, kernel, strict=True)
        ]
        if min(room) > 0:
            found.append((shape, kernel, stride, padding, dilation, bool(rng.integers(2))))
    return found


MAX = windows(24, 3)
AVERAGE = [w for w in windows(60, 4) if w[4] == (1, 1)] + [
    ((2, 3, 9, 7), (3, 2), (2, 2), ((1, 0), (1, 1)), (1, 1), True),
    ((1, 2, 12, 12), (5, 5), (2, 2), ((2, 2), (2, 2)), (1, 1), False),
]


@pytest.mark.parametrize("window", MAX, ids=str)
@pytest.mark.parametrize("dtype", ["float32", "float16", "int32", "uint32"])
def test_max(gpu: Wgpu, up: Up, rng: Any, window: Window, dtype: str) -> None:
    shape, *rest = window
    # Few distinct values, so that the first of equals has to win.
    x = rng.integers(0, 5, shape).astype(dtype)
    if dtype == "float32":
        x[rng.random(shape) < 0.05] = np.nan
        x[rng.random(shape) < 0.1] = -np.inf
    values, indices = ref.max_pool2d_with_indices(x, *rest)
    got, places = gpu.ops.max_pool2d_with_indices(up(x), *rest)
    np.testing.assert_array_equal(gpu.read(got), values)
    np.testing.assert_array_equal(gpu.read(places), indices)
    np.testing.assert_array_equal(gpu.read(gpu.ops.max_pool2d(up(x), *rest)), values)


@pytest.mark.parametrize("window", MAX, ids=str)
def test_max_backward(gpu: Wgpu, up: Up, rng: Any, window: Window) -> None:
    shape, *rest = window
    x = rng.integers(0, 5, shape).astype(np.float32)
    _, indices = ref.max_pool2d_with_indices(x, *rest)
    g = rng.normal(size=indices.shape).astype(np.float32)
    want = ref.max_pool2d_backward(g, indices, shape)
    got = gpu.read(gpu.ops.max_pool2d_backward(up(g), up(indices.astype(np.int32)), shape))
    np.testing.assert_allclose(got, want, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("width", [10, 300], ids=["a plane at a time", "in three kernels"])
def test_max_backward_takes_any_indices(gpu: Wgpu, up: Up, rng: Any, width: int) -> None:
    g = rng.normal(size=(2, 3, 7, 5)).astype(np.float32)
    indices = rng.integers(0, 9 * width, g.shape).astype(np.int32)
    want = ref.max_pool2d_backward(g.astype(np.float64), indices, (2, 3, 9, width))
    got = gpu.read(gpu.ops.max_pool2d_backward(up(g), up(indices), (2, 3, 9, width)))
    np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("window", AVERAGE, ids=str)
@pytest.mark.parametrize("include", [False, True], ids=["inside", "padded"])
def test_average(gpu: Wgpu, up: Up, rng: Any, window: Window, include: bool) -> None:
    shape, kernel, stride, padding, _, ceil_mode = window
    rest = (kernel, stride, padding, ceil_mode, include)
    x = rng.normal(size=shape).astype(np.float32)
    want = ref.avg_pool2d(x.astype(np.float64), *rest)
    np.testing.assert_allclose(
        gpu.read(gpu.ops.avg_pool2d(up(x), *rest)), want, rtol=1e-5, atol=1e-6
    )
    g = rng.normal(size=want.shape).astype(np.float32)
    got = gpu.read(gpu.ops.avg_pool2d_backward(up(g), shape, *rest))
    want = ref.avg_pool2d_backward(g.astype(np.float64), shape, *rest)
    np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-6)


def test_views_are_read_in_place(gpu: Wgpu, up: Up, rng: Any) -> None:
    x = rng.normal(size=(2, 3, 8, 9)).astype(np.float32)
    turned = up(np.ascontiguousarray(x.transpose(2, 0, 3, 1)))
    seen = gpu.ops.permute_dims(turned, (1, 3, 0, 2))
    rest: Any = ((2, 3), (2, 2), ((1, 0), (1, 1)), (1, 1), False)
    np.testing.assert_array_equal(
        gpu.read(gpu.ops.max_pool2d(seen, *rest)), gpu.read(gpu.ops.max_pool2d(up(x), *rest))
    )
    rest = ((2, 3), (2, 2), ((1, 0), (1, 1)), False, True)
    np.testing.assert_array_equal(
        gpu.read(gpu.ops.avg_pool2d(seen, *rest)), gpu.read(gpu.ops.avg_pool2d(up(x), *rest))
    )


def test_a_window_outside_of_the_image_gives_the_lowest_value(gpu: Wgpu, up: Up) -> None:
    x = np.zeros((1, 1, 1, 3), np.float32)
    rest = ((2, 1), (1, 1), ((1, 1), (0, 0)), (2, 1), False)
    values, indices = gpu.ops.max_pool2d_with_indices(up(x), *rest)
    np.testing.assert_array_equal(gpu.read(values), np.full((1, 1, 1, 3), -np.inf))
    np.testing.assert_array_equal(gpu.read(indices), np.full((1, 1, 1, 3), -1))


def test_a_window_that_software_would_cut_short_is_refused(gpu: Wgpu, up: Up) -> None:
    x = np.ones((1, 1, 300, 300), np.float32)
    x[0, 0, -1, -1] = 90_001
    size, sides = (300, 300), ((0, 0), (0, 0))
    if gpu.is_software:
        with pytest.raises(pt.DeviceError, match=r"avg_pool2d.*cut loops short"):
            gpu.ops.avg_pool2d(up(x), size, size, sides, False, True)
        with pytest.raises(pt.DeviceError, match=r"max_pool2d.*cut loops short"):
            gpu.ops.max_pool2d(up(x), size, size, sides, (1, 1), False)
    else:
        average = gpu.ops.avg_pool2d(up(x), size, size, sides, False, True)
        np.testing.assert_allclose(gpu.read(average), 2.0, rtol=1e-4)
