"""Views, copies of them, concat, pad, slices, creation."""

from __future__ import annotations

from collections.abc import Callable
from itertools import permutations
from typing import Any

import numpy as np
import pytest

import phlox_tensor as pt
from phlox_wgpu import Wgpu
from phlox_wgpu._array import GpuArray
from phlox_wgpu._copy import contiguous
from phlox_wgpu._layout import reshaped_strides

Up = Callable[[Any], GpuArray]


def dense(gpu: Wgpu, x: GpuArray) -> np.ndarray:
    """The values after a copy on the GPU, which a read of a view need not make."""
    copy = contiguous(gpu.device, x)
    assert copy.contiguous
    return gpu.read(copy)


@pytest.mark.parametrize("dtype", [np.float32, np.float16, np.int32, np.bool_])
@pytest.mark.parametrize("order", list(permutations(range(3))))
@pytest.mark.parametrize("shape", [(3, 4, 5), (2, 130, 70), (33, 1, 200), (8, 64, 64)])
def test_transposes(
    gpu: Wgpu,
    up: Up,
    rng: np.random.Generator,
    shape: tuple[int, ...],
    order: tuple[int, ...],
    dtype: Any,
) -> None:
    values = rng.integers(0, 2, shape).astype(dtype)
    view = gpu.ops.permute_dims(up(values), order)
    expected = values.transpose(order)
    np.testing.assert_array_equal(gpu.read(view), expected)
    np.testing.assert_array_equal(dense(gpu, view), expected)
    np.testing.assert_array_equal(gpu.read(gpu.ops.reshape(view, (values.size,))), expected.ravel())


def test_a_copy_keeps_every_bit(gpu: Wgpu, up: Up) -> None:
    bits = np.array([0x7FC01234, 0xFFC00001, 1, 0x80000000, 0x7F800001, 0], np.uint32)
    view = gpu.ops.flip(up(bits.view(np.float32)), (0,))
    np.testing.assert_array_equal(dense(gpu, view).view(np.uint32), bits[::-1])


def test_slices_of_slices(gpu: Wgpu, up: Up) -> None:
    values = np.arange(7 * 9, dtype=np.float32).reshape(7, 9)
    view = gpu.ops.slice(up(values), (6, 1), (3, 4), (-2, 2))
    np.testing.assert_array_equal(dense(gpu, view), values[6::-2, 1:9:2][:3])
    again = gpu.ops.slice(gpu.ops.flip(view, (0, 1)), (1, 0), (2, 2), (1, 3))
    expected = np.flip(values[6::-2, 1:9:2][:3])[1:3, ::3]
    np.testing.assert_array_equal(gpu.read(again), expected)
    assert gpu.read(gpu.ops.slice(view, (0, 0), (0, 4), (1, 1))).shape == (0, 4)


def test_a_broadcast_view_is_read_and_copied(gpu: Wgpu, up: Up) -> None:
    row = np.array([[1], [2], [3]], np.float32)
    view = gpu.ops.broadcast_to(up(row), (2, 3, 4))
    expected = np.broadcast_to(row, (2, 3, 4))
    np.testing.assert_array_equal(gpu.read(view), expected)
    np.testing.assert_array_equal(dense(gpu, view), expected)


@pytest.mark.parametrize(
    ("shape", "strides", "new", "expected"),
    [
        ((4, 6), (1, 4), (4, 2, 3), (1, 12, 4)),
        ((4, 6), (12, 2), (24,), (2,)),
        ((4, 6), (1, 4), (24,), None),
        ((2, 3, 4), (12, 4, 1), (6, 4), (4, 1)),
        ((2, 1, 4), (8, 99, 2), (8,), (2,)),
        ((3, 1), (5, 7), (1, 3, 1), (0, 5, 0)),
    ],
)
def test_reshape_is_a_view_where_strides_allow(
    shape: tuple[int, ...],
    strides: tuple[int, ...],
    new: tuple[int, ...],
    expected: tuple[int, ...] | None,
) -> None:
    assert reshaped_strides(shape, strides, new) == expected


def test_views_share_the_buffer(gpu: Wgpu, up: Up) -> None:
    x = up(np.zeros((4, 6), np.float32))
    views = [
        gpu.ops.reshape(x, (3, 8)),
        gpu.ops.permute_dims(x, (1, 0)),
        gpu.ops.slice(x, (1, 1), (2, 2), (1, 1)),
        gpu.ops.broadcast_to(x, (5, 4, 6)),
        gpu.ops.flip(x, (0,)),
    ]
    assert all(view.storage is x.storage for view in views)


@pytest.mark.parametrize("axis", [0, 1, 2])
def test_concat(gpu: Wgpu, up: Up, rng: np.random.Generator, axis: int) -> None:
    parts = []
    for n in (3, 0, 1, 5):
        shape = [2, 3, 4]
        shape[axis] = n
        parts.append(rng.normal(size=shape).astype(np.float16))
    got = gpu.read(gpu.ops.concat(tuple(up(p) for p in parts), axis))
    np.testing.assert_array_equal(got, np.concatenate(parts, axis))


def test_pad_and_slice_scatter_leave_the_rest_alone(gpu: Wgpu, up: Up) -> None:
    values = np.arange(12, dtype=np.int32).reshape(3, 4)
    x = up(values)
    got = gpu.read(gpu.ops.pad(gpu.ops.permute_dims(x, (1, 0)), ((1, 0), (0, 2)), -1))
    expected = np.pad(values.T, ((1, 0), (0, 2)), constant_values=-1)
    np.testing.assert_array_equal(got, expected)
    new = up(np.array([[70, 71]], np.int32))
    got = gpu.read(gpu.ops.slice_scatter(x, new, (1, 3), (1, 2), (1, -2)))
    expected = values.copy()
    expected[1, 3::-2] = [70, 71]
    np.testing.assert_array_equal(got, expected)
    np.testing.assert_array_equal(gpu.read(x), values)


@pytest.mark.parametrize(
    ("dtype", "value"),
    [(pt.float32, 2.5), (pt.float16, -0.1), (pt.int32, -3), (pt.uint32, 2**32 - 1), (pt.bool_, 1)],
)
@pytest.mark.parametrize("count", [0, 1, 5, 1000])
def test_full(gpu: Wgpu, dtype: pt.DType, value: float, count: int) -> None:
    got = gpu.read(gpu.ops.full((count,), value, dtype))
    np.testing.assert_array_equal(got, np.full((count,), value, dtype.numpy))


def test_arange_does_not_drift(gpu: Wgpu) -> None:
    got = gpu.read(gpu.ops.arange(-1000.0, 0.1, 10_001, pt.float32))
    np.testing.assert_array_equal(got, (-1000 + np.arange(10_001) * 0.1).astype(np.float32))


def test_float16_of_odd_length_is_uploaded_and_read(gpu: Wgpu, up: Up) -> None:
    values = np.arange(7, dtype=np.float16)
    x = up(values)
    for first in range(7):
        got = gpu.read(gpu.ops.slice(x, (first,), (7 - first,), (1,)))
        np.testing.assert_array_equal(got, values[first:])


def test_contiguous_brings_elements_into_the_order_of_rows(gpu: Wgpu, up: Up) -> None:
    values = np.arange(64 * 40, dtype=np.float32).reshape(64, 40)
    x = up(values)
    assert gpu.ops.contiguous(x) is x
    turned = gpu.ops.contiguous(gpu.ops.permute_dims(x, (1, 0)))
    assert turned.strides == (64, 1)
    np.testing.assert_array_equal(gpu.read(turned), values.T)
