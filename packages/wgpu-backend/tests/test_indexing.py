"""Reading and writing at indices: every update and way, repeats, errors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import phlox_tensor as pt
from phlox_tensor.reference import indexing as reference
from phlox_wgpu import Wgpu, _indexing
from phlox_wgpu._array import GpuArray

ref: Any = reference
Array = np.ndarray[Any, Any]
Up = Callable[[Any], GpuArray]

DTYPES = ["bool", "float16", "float32", "int32", "uint32"]


def draw(rng: np.random.Generator, shape: tuple[int, ...], dtype: str) -> Array:
    if dtype == "bool":
        return rng.random(shape) < 0.5
    return (rng.uniform(0.5, 1.5, shape) * 3).astype(dtype)


def near(got: Array, want: Array, dtype: str) -> None:
    if not dtype.startswith("float"):
        np.testing.assert_array_equal(got, want)
        return
    tolerance = 1e-5 if dtype == "float32" else 2e-2
    np.testing.assert_allclose(got.astype(np.float64), want.astype(np.float64), rtol=tolerance)


@pytest.fixture(params=["scan", "sort"])
def way(request: Any, monkeypatch: pytest.MonkeyPatch) -> str:
    """How float sums find their updates."""
    if request.param == "sort":
        monkeypatch.setattr(_indexing, "_SCAN_WORK", 0)
    return str(request.param)


SCATTERS = [((7, 5), 9, 0), ((6, 8), 3, 1), ((40,), 100, 0), ((3, 300, 4), 6, 1), ((2, 3), 700, 1)]


@pytest.mark.parametrize("sizes", SCATTERS, ids=str)
@pytest.mark.parametrize("update", ["set", "add", "mul", "min", "max"])
@pytest.mark.parametrize("dtype", DTYPES)
def test_scatter(
    gpu: Wgpu, up: Up, rng: np.random.Generator, sizes: Any, update: str, dtype: str, way: str
) -> None:
    del way
    shape, count, axis = sizes
    if update == "mul" and count > 50:
        count = 5  # a long product overflows
    places = tuple(count if i == axis else n for i, n in enumerate(shape))
    x, values = draw(rng, shape, dtype), draw(rng, places, dtype)
    if dtype.startswith("float") and update in ("min", "max"):
        values.flat[:4] = [np.nan, -np.inf, np.inf, -1.0]
    indices = rng.integers(-shape[axis], shape[axis], places).astype(np.int32)
    with np.errstate(invalid="ignore"):
        want = ref.scatter(x, indices, values, axis, update)
        if dtype == "float16" and update == "add":
            wide = [a.astype(np.float64) for a in (x, values)]
            want = ref.scatter(wide[0], indices, wide[1], axis, update).astype(np.float16)
    near(gpu.read(gpu.ops.scatter(up(x), up(indices), up(values), axis, update)), want, dtype)


@pytest.mark.parametrize(
    "sizes", [((9, 8), 30, 0), ((9, 8), 30, 1), ((5,), 7, 0), ((4, 6, 3), 9, 1), ((3, 4), 900, 0)]
)
@pytest.mark.parametrize("dtype", DTYPES[1:])
def test_index_add(
    gpu: Wgpu, up: Up, rng: np.random.Generator, sizes: Any, dtype: str, way: str
) -> None:
    del way
    shape, count, axis = sizes
    places = tuple(count if i == axis else n for i, n in enumerate(shape))
    x, values = draw(rng, shape, dtype), draw(rng, places, dtype)
    indices = rng.integers(-shape[axis], shape[axis], count).astype(np.int32)
    wide = (x, values)
    if dtype.startswith("float"):
        wide = (x.astype(np.float64), values.astype(np.float64))
    want = ref.index_add(wide[0], indices, wide[1], axis).astype(dtype)
    near(gpu.read(gpu.ops.index_add(up(x), up(indices), up(values), axis)), want, dtype)


def test_float_sums_have_the_same_bits_again(
    gpu: Wgpu, up: Up, rng: np.random.Generator, way: str
) -> None:
    del way
    x, values = up(np.zeros(10, np.float32)), up(rng.normal(size=5000).astype(np.float32))
    indices = up(rng.integers(0, 10, 5000).astype(np.int32))
    runs = [gpu.read(gpu.ops.index_add(x, indices, values, 0)) for _ in range(4)]
    for other in runs[1:]:
        np.testing.assert_array_equal(other, runs[0])


def test_both_ways_give_the_same_bits(
    gpu: Wgpu, up: Up, rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch
) -> None:
    x, values = up(np.zeros((9, 4), np.float32)), up(rng.normal(size=(99, 4)).astype(np.float32))
    indices = up(rng.integers(0, 9, 99).astype(np.int32))
    scanned = gpu.read(gpu.ops.index_add(x, indices, values, 0))
    monkeypatch.setattr(_indexing, "_SCAN_WORK", 0)
    np.testing.assert_array_equal(gpu.read(gpu.ops.index_add(x, indices, values, 0)), scanned)


def test_the_last_of_repeated_values_stays(gpu: Wgpu, up: Up) -> None:
    indices = up(np.array([3, 1, -1, 3, 1], np.int32))
    got = gpu.ops.scatter(
        up(np.zeros(4, np.float32)), indices, up(np.arange(5.0, dtype="f4")), 0, "set"
    )
    np.testing.assert_array_equal(gpu.read(got), [0, 4, 0, 3])


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("inner", [1, 3, 8])
def test_take(gpu: Wgpu, up: Up, rng: np.random.Generator, dtype: str, inner: int) -> None:
    x = draw(rng, (6, 5, inner), dtype)
    for axis, shape in [(0, (4,)), (1, (2, 3)), (2, ()), (0, (0,)), (1, (2, 0))]:
        size = x.shape[axis]
        indices = np.asarray(rng.integers(-size, size, shape)).astype(np.int32)
        got = gpu.read(gpu.ops.take(up(x), up(indices), axis))
        np.testing.assert_array_equal(got, np.take(x, indices, axis))
    unsigned = rng.integers(0, 6, 9).astype(np.uint32)
    np.testing.assert_array_equal(gpu.read(gpu.ops.take(up(x), up(unsigned), 0)), x[unsigned])


def test_take_reads_views(gpu: Wgpu, up: Up, rng: np.random.Generator) -> None:
    x = rng.normal(size=(6, 8)).astype(np.float32)
    indices = np.array([5, 0, -1, 2], np.int32)
    backwards = up(x).view((6, 8), (-8, -1), 47)
    reverse = up(indices).view((4,), (-1,), 3)
    for axis in (0, 1):
        got = gpu.read(gpu.ops.take(backwards, reverse, axis))
        np.testing.assert_array_equal(got, np.take(x[::-1, ::-1], indices[::-1], axis))
    tail = up(x).view((6, 7), (8, 1), 1)
    np.testing.assert_array_equal(gpu.read(gpu.ops.take(tail, up(indices), 0)), x[indices, 1:])


def test_take_along_axis(gpu: Wgpu, up: Up, rng: np.random.Generator) -> None:
    x = rng.normal(size=(6, 8, 3)).astype(np.float32)
    for axis in range(3):
        size = x.shape[axis]
        shape = tuple(11 if i == axis else n for i, n in enumerate(x.shape))
        indices = rng.integers(-size, size, shape).astype(np.int32)
        got = gpu.read(gpu.ops.take_along_axis(up(x), up(indices), axis))
        np.testing.assert_array_equal(got, np.take_along_axis(x, indices % size, axis))


@pytest.mark.parametrize("size", [0, 1, 1023, 1024, 1025, 5000])
def test_nonzero(gpu: Wgpu, up: Up, rng: np.random.Generator, size: int) -> None:
    for share in (0.0, 0.3, 1.0):
        mask = rng.random(size) < share
        np.testing.assert_array_equal(gpu.read(gpu.ops.nonzero(up(mask))), np.flatnonzero(mask))
    mask = rng.random(size) < 0.5
    backwards = up(mask).view((size,), (-1,), max(size - 1, 0))
    np.testing.assert_array_equal(gpu.read(gpu.ops.nonzero(backwards)), np.flatnonzero(mask[::-1]))


FLOATS = np.ones((3, 4), np.float32)
WRONG: dict[str, tuple[str, tuple[Any, ...]]] = {
    "index_add": ("got -5", (FLOATS, np.array([0, -5], np.int32), np.ones((3, 2), np.float32), 1)),
    "scatter": (
        "got 3, expected -3 <= index < 3",
        (FLOATS, np.full((1, 4), 3, np.int32), np.ones((1, 4), np.float32), 0, "add"),
    ),
    "take": ("got 7, expected -4 <= index < 4", (FLOATS, np.array([1, 7], np.int32), 1)),
    "take_along_axis": ("got -4", (FLOATS, np.full((1, 4), -4, np.int32), 0)),
}


@pytest.mark.parametrize("op", sorted(WRONG))
def test_an_index_out_of_range_is_raised_by_the_next_read(
    gpu: Wgpu, up: Up, op: str, way: str
) -> None:
    del way
    text, args = WRONG[op]
    out = gpu.ops[op](*(up(a) if isinstance(a, np.ndarray) else a for a in args))
    with pytest.raises(pt.IndexOutOfRangeError) as caught:
        gpu.read(out)
    assert text in str(caught.value)
    assert str(caught.value).startswith(f"[{op}]")
    np.testing.assert_array_equal(gpu.read(up(FLOATS)), FLOATS)  # reported once


def test_an_op_that_is_built_on_another_says_where_the_call_itself_raises(gpu: Wgpu) -> None:
    indices = np.array([9], np.int32)
    late = pt.asarray(FLOATS, device=gpu)[pt.asarray(indices, device=gpu)]
    with pytest.raises(pt.IndexOutOfRangeError, match="as a part of one that you called") as caught:
        late.numpy()
    assert "device=px.Numpy()" in str(caught.value)
    there = pt.Numpy()
    with pytest.raises(pt.IndexOutOfRangeError, match=r"^\[getitem\]"):
        pt.asarray(FLOATS, device=there)[pt.asarray(indices, device=there)]


@pytest.mark.parametrize("update", ["set", "add", "max"])
def test_an_index_into_nothing_is_out_of_range(gpu: Wgpu, up: Up, update: str) -> None:
    one = np.ones(1, np.float32)
    gpu.ops.scatter(up(np.ones(0, np.float32)), up(np.zeros(1, np.int32)), up(one), 0, update)
    with pytest.raises(pt.IndexOutOfRangeError):
        gpu.sync()


def test_an_unsigned_index_does_not_wrap(gpu: Wgpu, up: Up) -> None:
    gpu.ops.take(up(FLOATS), up(np.array([2**32 - 1], np.uint32)), 0)
    with pytest.raises(pt.IndexOutOfRangeError):
        gpu.sync()


@pytest.mark.parametrize("update", ["add", "mul"])
@pytest.mark.parametrize("sizes", [(4, 70_000), (1000, 270_000)], ids=str)
def test_more_updates_of_one_place_than_loops_of_software_turn(
    gpu: Wgpu, up: Up, sizes: tuple[int, int], update: str
) -> None:
    length, count = sizes
    values = np.ones(count, np.float32)
    if update == "mul":
        values[-1] = 5
    given = up(np.ones(length, np.float32)), up(np.full(count, 2, np.int32)), up(values)
    if gpu.is_software:
        with pytest.raises(pt.DeviceError, match=r"scatter.*cut loops short"):
            gpu.ops.scatter(*given, 0, update)
        return
    out = gpu.ops.scatter(*given, 0, update)
    want = np.ones(length)
    want[2] = 5 if update == "mul" else 1 + count
    np.testing.assert_array_equal(gpu.read(out), want)
