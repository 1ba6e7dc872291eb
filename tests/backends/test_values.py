"""Values that every device has to agree on with Python, NumPy and the array API standard."""

from __future__ import annotations

import operator
from collections.abc import Callable
from itertools import product
from typing import Any

import numpy as np
import pytest

import phlox as px
from phlox import Autodiff, Backend, Cpu, IndexOutOfRangeError, Numpy, ShapeError, Wgpu

DEVICES: list[Backend] = [Cpu(), Numpy(), Wgpu(), Autodiff(Cpu())]
each_device = pytest.mark.parametrize("device", DEVICES, ids=repr)
FLOATS = ("bfloat16", "float16", "float32", "float64")
INTS = tuple(f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64))


def typed(device: Backend, names: tuple[str, ...]) -> list[Any]:
    """The element types of these names that the device has."""
    found = [px.as_dtype(name) for name in names if px.as_dtype(name) in device.dtypes]
    assert found
    return found


# Comparisons

COMPARE: list[Callable[[Any, Any], Any]] = [
    operator.eq,
    operator.ge,
    operator.gt,
    operator.le,
    operator.lt,
    operator.ne,
]


@each_device
def test_integers_compare_by_value(device: Backend) -> None:
    for dtype in typed(device, INTS):
        info = np.iinfo(dtype.numpy)
        low, high = int(info.min), int(info.max)
        elements = [low, 0, high]
        x = px.asarray(np.array(elements, dtype.numpy), device=device)
        numbers = [low - 1, low, -1, 0, 1, high, high + 1, 2**70, -(2**70)]
        for compare, number in product(COMPARE, numbers):
            assert compare(x, number).tolist() == [compare(e, number) for e in elements]
            assert compare(number, x).tolist() == [compare(number, e) for e in elements]
        assert px.less(high + 1, x).tolist() == [False] * 3
        assert px.less(px.asarray(high, dtype=dtype, device=device), high + 1).shape == ()


# Indices


@each_device
def test_no_unsigned_index_is_negative(device: Backend) -> None:
    last = px.asarray(np.array([2**64 - 1], np.uint64), device=Numpy())
    if px.uint64 not in device.dtypes:
        last = px.asarray(np.array([2**32 - 1], np.uint32), device=Numpy())
    last = last.to_device(device)
    x = px.asarray([1.0, 2.0, 3.0], device=device)
    grid = px.ones((3, 3), device=device)
    calls: list[Callable[[], Any]] = [
        lambda: x.take(last),
        lambda: x.take_along_axis(last, axis=0),
        lambda: x.scatter(last, x[:1], axis=0),
        lambda: x.index_add(last, x[:1], axis=0),
        lambda: x[last],
        lambda: grid[last, last],
        lambda: x.at[last].set(5.0),
    ]
    for call in calls:
        with pytest.raises(IndexOutOfRangeError):
            call().numpy()


# Shapes


@each_device
def test_pools_take_batches_of_nothing(device: Backend) -> None:
    x = px.zeros((0, 2, 6, 6), device=device)
    assert px.max_pool2d(x, 2).shape == (0, 2, 3, 3)
    assert px.avg_pool2d(x, 2).shape == (0, 2, 3, 3)
    if device.records:
        x = x.require_grad()
        found = x.grad(px.max_pool2d(x, 2).sum().backward())
        assert found is not None
        assert found.shape == x.shape


@pytest.mark.parametrize("device", [Numpy(), Wgpu()], ids=repr)
def test_tensors_have_sixteen_axes_at_most(device: Backend) -> None:
    assert device.max_rank == 16
    x = px.asarray(np.arange(8.0, dtype=np.float32).reshape((2, 2, 2) + (1,) * 13), device=device)
    assert (x + x.flip()).sum(axis=(0, 15)).shape == (2, 2) + (1,) * 12
    assert px.tile(x, (1,) * 15 + (3,)).shape == (2, 2, 2) + (1,) * 12 + (3,)
    assert x.repeat(2, axis=15).shape[-1] == 2
    assert x.permute_dims(tuple(range(16))[::-1]).shape == x.shape[::-1]
    calls: list[Callable[[], Any]] = [
        lambda: x[None],
        lambda: px.expand_dims(x, 0),
        lambda: px.zeros((1,) * 17, device=device),
        lambda: px.asarray(np.zeros((1,) * 17, np.float32), device=device),
        lambda: px.random.uniform((1,) * 17, device=device),
        lambda: px.stack([x, x]),
    ]
    for call in calls:
        with pytest.raises(ShapeError, match="too many axes: got 17, expected at most 16"):
            call()


@each_device
@pytest.mark.parametrize("rank", [1, 5, 8, 16])
def test_tile_of_any_rank_is_that_of_numpy(device: Backend, rank: int) -> None:
    rank = min(rank, device.max_rank)
    shape = (2, 3, 2, *(1,) * 12, 2)[:rank]
    counts = (2, 1, 3, 1, 2, *(1,) * 10, 2)[:rank]
    array = np.arange(np.prod(shape), dtype=np.float32).reshape(shape)
    x = px.asarray(array, device=device)
    np.testing.assert_array_equal(px.tile(x, counts).numpy(), np.tile(array, counts))
    np.testing.assert_array_equal(px.tile(x, 2).numpy(), np.tile(array, 2))
    np.testing.assert_array_equal(px.tile(x[0], counts).numpy(), np.tile(array[0], counts))
    np.testing.assert_array_equal(x.repeat(3, axis=0).numpy(), np.repeat(array, 3, 0))


# Memory


@each_device
def test_what_was_read_cannot_be_made_writeable(device: Backend) -> None:
    for name in ("bfloat16", "bool", "float16", "float32", "int32"):
        if px.as_dtype(name) not in device.dtypes:
            continue
        source = np.ones((2, 3), px.as_dtype(name).numpy)
        x = px.from_numpy(source, device=device)
        for tensor in (x, x.T, x[0, 0], x[:, ::2], x[:0]):
            array = tensor.numpy()
            assert array.shape == tensor.shape
            with pytest.raises(ValueError, match="WRITEABLE"):
                array.flags.writeable = True
        source[...] = 0
        assert x.astype("int32").sum().item() == 6


@each_device
def test_asarray_shares_or_copies_as_it_is_told(device: Backend) -> None:
    x = px.asarray([1.0, 2.0], device=device)
    assert px.asarray(x, copy=False) is x
    assert px.asarray(x) is x
    copied = px.asarray(x, copy=True)
    assert copied is not x
    assert copied.tolist() == [1.0, 2.0]
    assert px.asarray(x > 1, copy=True).tolist() == [False, True]
    if isinstance(device, Cpu | Numpy):
        assert not np.shares_memory(copied.numpy(), x.numpy())
    for data, options in (
        ([1.0], {}),
        (1.0, {}),
        (np.ones(2, np.float32), {}),
        ([x[0], x[1]], {}),
        (x, {"dtype": "int32"}),
    ):
        with pytest.raises(ValueError, match="has to be copied"):
            px.asarray(data, device=device, copy=False, **options)
