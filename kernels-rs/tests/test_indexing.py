"""Indexing and data movement of the CPU backend against NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from phlox_kernels import Cpu, _native
from phlox_tensor import IndexOutOfRangeError, as_dtype

Array = np.ndarray[Any, Any]
CPU = Cpu()
SHAPES = st.lists(st.integers(1, 12), min_size=1, max_size=4)
UPDATES: dict[str, Any] = {
    "add": np.add,
    "max": np.maximum,
    "min": np.minimum,
    "mul": np.multiply,
}


def up(array: Any) -> Any:
    array = np.asarray(array)
    return CPU.upload(array, as_dtype(array.dtype.name))


def run(name: str, *args: Any) -> Array:
    """Apply an entry; NumPy arrays become primitives."""
    entry = CPU.entry(name)
    assert entry is not None, name
    return CPU.read(entry(*(up(a) if isinstance(a, np.ndarray) else a for a in args)))


def array_of(shape: list[int]) -> Array:
    return np.arange(np.prod(shape), dtype=np.float32).reshape(shape)


@given(SHAPES, st.data())
@settings(max_examples=100, deadline=None)
def test_take(shape: list[int], data: st.DataObject) -> None:
    axis = data.draw(st.integers(0, len(shape) - 1))
    size = shape[axis]
    indices = data.draw(st.lists(st.integers(-size, size - 1), max_size=9))
    dtype = data.draw(st.sampled_from(["int8", "int32", "int64"]))
    x, places = array_of(shape), np.array(indices, dtype)
    np.testing.assert_array_equal(run("take", x, places, axis), np.take(x, places, axis))
    turned = _native.permute_dims(up(x), tuple(reversed(range(len(shape)))))
    place = len(shape) - 1 - axis
    got = CPU.read(_native.take(turned, up(places), place))
    np.testing.assert_array_equal(got, np.take(x.T, places, place))


@given(SHAPES, st.data())
@settings(max_examples=100, deadline=None)
def test_along_an_axis(shape: list[int], data: st.DataObject) -> None:
    axis = data.draw(st.integers(0, len(shape) - 1))
    rng = np.random.default_rng(data.draw(st.integers(0, 1000)))
    lines = [*shape]
    lines[axis] = data.draw(st.integers(0, 15))
    indices = rng.integers(-shape[axis], shape[axis], lines)
    x, values = array_of(shape), rng.integers(-3, 3, lines).astype(np.float32)
    got = run("take_along_axis", x, indices, axis)
    np.testing.assert_array_equal(got, np.take_along_axis(x, indices, axis))
    where = list(np.indices(lines, sparse=True))
    where[axis] = indices
    for update, function in UPDATES.items():
        expected = x.copy()
        function.at(expected, tuple(where), values)
        got = run("scatter", x, indices, values, axis, update)
        np.testing.assert_allclose(got, expected, rtol=1e-6)
    expected = x.copy()
    expected[tuple(where)] = values
    np.testing.assert_array_equal(run("scatter", x, indices, values, axis, "set"), expected)


@pytest.mark.parametrize("dtype", ["bfloat16", "float16", "float32", "int32", "uint8"])
@pytest.mark.parametrize("axis", [0, 1])
def test_index_add(dtype: str, axis: int) -> None:
    rng = np.random.default_rng(5)
    kind = as_dtype(dtype).numpy
    x = rng.integers(0, 4, (300, 200)).astype(kind)
    indices = rng.integers(0, x.shape[axis], 1000)
    shape = (1000, 200) if axis == 0 else (300, 1000)
    values = rng.integers(0, 3, shape).astype(kind)
    wide = x.astype(np.float64)
    where: Any = (slice(None),) * axis + (indices,)
    np.add.at(wide, where, values.astype(np.float64))
    expected = wide.astype(kind) if dtype != "uint8" else wide.astype(np.int64).astype(kind)
    np.testing.assert_array_equal(run("index_add", x, indices, values, axis), expected)


def test_threads_do_not_change_repeated_updates() -> None:
    rng = np.random.default_rng(6)
    x, values = np.zeros((50, 300), np.float32), rng.standard_normal((5000, 300), np.float32)
    indices = rng.integers(0, 50, 5000)
    before = _native._num_threads()
    try:
        results = []
        for threads in (1, 2, 4):
            _native._set_num_threads(threads)
            results.append(run("index_add", x, indices, values, 0).tobytes())
    finally:
        _native._set_num_threads(before)
    assert results[0] == results[1] == results[2]


@pytest.mark.parametrize("size", [0, 1, 70, 300_000])
def test_nonzero(size: int) -> None:
    mask = np.random.default_rng(7).random(size) < 0.3
    np.testing.assert_array_equal(run("nonzero", mask), np.flatnonzero(mask))


def test_out_of_range_is_named() -> None:
    x, one = array_of([2, 3]), np.ones((1, 3), np.float32)
    cases = [
        ("take", (x, np.array([0, 3]), 1), "got 3"),
        ("take_along_axis", (x, np.array([[0], [-4]]), 1), "got -4"),
        ("scatter", (x, np.array([[2, 0, 0]]), one, 0, "set"), "got 2"),
        ("index_add", (x, np.array([7], np.uint8), one, 0), "got 7"),
    ]
    for name, args, text in cases:
        with pytest.raises(IndexOutOfRangeError, match=text):
            run(name, *args)
    with pytest.raises(IndexOutOfRangeError):
        run("take", x, np.array([2**64 - 1], np.uint64), 1)


@given(SHAPES, st.data())
@settings(max_examples=60, deadline=None)
def test_movement(shape: list[int], data: st.DataObject) -> None:
    x = array_of(shape)
    axis = data.draw(st.integers(0, len(shape) - 1))
    parts = [x, np.flip(x), x[(slice(None),) * axis + (slice(0, 1),)]]
    got = run("concat", tuple(up(p) for p in parts), axis)
    np.testing.assert_array_equal(got, np.concatenate(parts, axis))
    sides = st.tuples(st.integers(0, 3), st.integers(0, 3))
    padding = tuple(data.draw(st.tuples(*[sides] * len(shape))))
    np.testing.assert_array_equal(
        run("pad", x, padding, -1.5), np.pad(x, padding, constant_values=-1.5)
    )
    start = tuple(n - 1 for n in shape)
    size = tuple((n + 1) // 2 for n in shape)
    values = -np.arange(np.prod(size), dtype=np.float32).reshape(size)
    expected = x.copy()
    expected[tuple(slice(n - 1, None, -2) for n in shape)] = values
    got = run("slice_scatter", x, values, start, size, (-2,) * len(shape))
    np.testing.assert_array_equal(got, expected)
