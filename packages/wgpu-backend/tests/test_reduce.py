"""Reductions and scans: every way the work is dealt out."""

from __future__ import annotations

from collections.abc import Callable
from itertools import combinations
from typing import Any

import numpy as np
import pytest

import phlox_tensor as pt
from phlox_wgpu import Wgpu
from phlox_wgpu._array import GpuArray
from phlox_wgpu._errors import DeviceMemoryError
from phlox_wgpu._kernel import source
from phlox_wgpu.wgsl.reduce import REDUCTIONS, Reduction, reduction_source

Up = Callable[[Any], GpuArray]

# Rows, columns, both sides, two passes along rows, two passes along columns.
SHAPES = [(5,), (300, 70), (3, 1000, 40), (100_000,), (33, 20_000), (20_000, 33), (2, 3, 4, 5)]


def axes_of(shape: tuple[int, ...]) -> list[tuple[int, ...]]:
    rank = len(shape)
    return [c for k in range(rank + 1) for c in combinations(range(rank), k)]


def test_rows_are_sorted() -> None:
    assert list(REDUCTIONS) == sorted(REDUCTIONS)


def test_text_is_the_golden_one(golden: Callable[[str, str], None]) -> None:
    rows = Reduction(
        "sum", "f32", "f", "f32", 1, 1, 64, reduces_last_axis=True, vector=True, partial=False
    )
    golden("sum_rows", source(reduction_source(rows)))
    columns = Reduction(
        "argmax", "f16", "f", "", 1, 2, 8, reduces_last_axis=False, vector=False, partial=False
    )
    golden("argmax_columns", source(reduction_source(columns)))


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("op", ["sum", "mean", "max", "min"])
def test_over_any_axes(
    gpu: Wgpu, up: Up, rng: np.random.Generator, op: str, shape: tuple[int, ...]
) -> None:
    values = rng.normal(size=shape).astype(np.float32)
    x = up(values)
    for axis in axes_of(shape):
        rest = (pt.float32,) if op == "sum" else ()
        got = gpu.read(gpu.ops[op](x, axis, False, *rest))
        expected = getattr(np, op)(values.astype(np.float64), axis=axis)
        scale = np.sqrt(np.prod([values.shape[i] for i in axis]))
        atol = 0 if op in ("max", "min") else 1e-6 * (scale if op == "sum" else 1)
        np.testing.assert_allclose(got, expected.astype(np.float32), rtol=1e-6, atol=atol)
        kept = gpu.read(gpu.ops[op](x, axis, True, *rest))
        np.testing.assert_array_equal(kept.reshape(got.shape), got)


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_integers_and_bools_are_exact(
    gpu: Wgpu, up: Up, rng: np.random.Generator, shape: tuple[int, ...]
) -> None:
    numbers = rng.integers(-(2**31), 2**31, shape).astype(np.int32)
    truth = rng.random(shape) > 0.4
    x, t = up(numbers), up(truth)
    for axis in axes_of(shape):
        args = (axis, False)
        total = np.sum(numbers, axis=axis, dtype=np.int32)
        np.testing.assert_array_equal(gpu.read(gpu.ops.sum(x, *args, pt.int32)), total)
        np.testing.assert_array_equal(gpu.read(gpu.ops.max(x, *args)), numbers.max(axis))
        np.testing.assert_array_equal(gpu.read(gpu.ops.any(t, *args)), truth.any(axis))
        np.testing.assert_array_equal(gpu.read(gpu.ops.all(t, *args)), truth.all(axis))
        count = np.sum(truth, axis=axis, dtype=np.int32)
        np.testing.assert_array_equal(gpu.read(gpu.ops.sum(t, *args, pt.int32)), count)


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("op", ["argmax", "argmin"])
@pytest.mark.parametrize("kind", ["ties", "nan", "random"])
def test_the_first_of_equals_wins(
    gpu: Wgpu, up: Up, rng: np.random.Generator, op: str, shape: tuple[int, ...], kind: str
) -> None:
    values = rng.normal(size=shape).astype(np.float32)
    if kind == "ties":
        values = np.round(values)
    if kind == "nan":
        values[rng.random(shape) < 0.01] = np.nan
        values[rng.random(shape) < 0.01] = -np.inf
        values[values > 1] = -np.float32(np.nan)
    x = up(values)
    for axis in (None, *range(len(shape))):
        got = gpu.read(gpu.ops[op](x, axis, False))
        np.testing.assert_array_equal(got, getattr(np, op)(values, axis=axis))


def test_all_infinite_rows(gpu: Wgpu, up: Up) -> None:
    low = up(np.full((3, 400), -np.inf, np.float32))
    assert gpu.read(gpu.ops.argmax(low, 1, False)).tolist() == [0, 0, 0]
    assert gpu.read(gpu.ops.max(low, (1,), False)).tolist() == [-np.inf] * 3


def test_nan_wins_maximum_and_minimum(gpu: Wgpu, up: Up) -> None:
    values = np.zeros(70_000, np.float32)
    values[69_999] = np.nan
    x = up(values)
    assert np.isnan(gpu.read(gpu.ops.max(x, (0,), False)))
    assert np.isnan(gpu.read(gpu.ops.min(x, (0,), False)))


def test_nothing_to_reduce(gpu: Wgpu, up: Up) -> None:
    x = up(np.zeros((3, 0), np.float32))
    assert gpu.read(gpu.ops.sum(x, (1,), False, pt.float32)).tolist() == [0, 0, 0]
    assert gpu.read(gpu.ops.prod(x, (1,), False, pt.float32)).tolist() == [1, 1, 1]
    assert np.isnan(gpu.read(gpu.ops.mean(x, (1,), False))).all()
    assert gpu.read(gpu.ops.sum(x, (0,), False, pt.float32)).shape == (0,)


def test_float16_sums_in_float32(gpu: Wgpu, up: Up) -> None:
    x = up(np.full((2, 60_000), 0.1, np.float16))
    total = gpu.read(gpu.ops.mean(x, (1,), False))
    np.testing.assert_array_equal(total, np.array([0.1, 0.1], np.float16))


def test_a_long_sum_loses_little(gpu: Wgpu, up: Up, rng: np.random.Generator) -> None:
    values = rng.random(3_000_000).astype(np.float32)
    got = gpu.read(gpu.ops.sum(up(values), (0,), False, pt.float32))
    exact = values.astype(np.float64).sum()
    assert abs(got - exact) / exact < 2e-7


def test_sums_are_the_same_bits_every_time(gpu: Wgpu, up: Up, rng: np.random.Generator) -> None:
    x = up(rng.normal(size=500_000).astype(np.float32))
    sums = {gpu.read(gpu.ops.sum(x, (0,), False, pt.float32)).tobytes() for _ in range(5)}
    assert len(sums) == 1


@pytest.mark.parametrize("shape", [(7,), (3, 1030), (1030, 3), (2, 5, 6), (40_000,), (20_000, 33)])
def test_cumsum(gpu: Wgpu, up: Up, rng: np.random.Generator, shape: tuple[int, ...]) -> None:
    numbers = rng.integers(-1000, 1000, shape).astype(np.int32)
    floats = rng.normal(size=shape).astype(np.float32)
    x, y = up(numbers), up(floats)
    for axis in range(len(shape)):
        np.testing.assert_array_equal(
            gpu.read(gpu.ops.cumsum(x, axis, pt.int32)), np.cumsum(numbers, axis, dtype=np.int32)
        )
        np.testing.assert_allclose(
            gpu.read(gpu.ops.cumsum(y, axis, pt.float32)),
            np.cumsum(floats.astype(np.float64), axis),
            atol=2e-3,
        )


@pytest.mark.parametrize("dtype", ["float16", "float32", "int32", "uint32"])
@pytest.mark.parametrize("shape", [(7,), (300, 40), (2, 50_000), (20_000, 17)])
def test_the_best_so_far(
    gpu: Wgpu, up: Up, rng: np.random.Generator, dtype: str, shape: tuple[int, ...]
) -> None:
    if pt.as_dtype(dtype) not in gpu.dtypes:
        pytest.skip("the adapter lacks float16")
    x = (rng.normal(size=shape) * 20 + 100).astype(dtype)  # with many equals
    if np.issubdtype(x.dtype, np.floating):
        x.flat[[0, -1]], x.flat[x.size * 2 // 3] = -np.inf, np.nan
    for axis in range(x.ndim):
        line = np.arange(x.shape[axis]).reshape(-1, *(1,) * (x.ndim - 1 - axis))
        for name, best in (("cummax", np.maximum), ("cummin", np.minimum)):
            want = best.accumulate(x, axis=axis)
            places = np.where((x == want) | np.isnan(x), line, -1)
            values, indices = gpu.ops[name](up(x), axis)
            np.testing.assert_array_equal(gpu.read(values), want)
            np.testing.assert_array_equal(
                gpu.read(indices), np.maximum.accumulate(places, axis=axis)
            )


@pytest.mark.parametrize(("length", "most"), [(100, 1), (50_000, 3)])
def test_the_best_so_far_is_few_kernels(
    gpu: Wgpu, up: Up, dispatches: list[int], length: int, most: int
) -> None:
    gpu.ops.cummax(up(np.ones(length, np.float32)), 0)
    assert len(dispatches) == most


@pytest.mark.parametrize("dtype", ["float16", "float32"])
def test_integers_are_summed_before_they_are_rounded(gpu: Wgpu, up: Up, dtype: str) -> None:
    wanted = pt.as_dtype(dtype)
    if wanted not in gpu.dtypes:
        pytest.skip("the adapter lacks float16")
    far = 2**31 - 1
    lines = np.array(
        [
            [70000, -69999, 3, -5],
            [16777217, 1, 1, -16777217],
            [far, far, far, 7],
            [-far, -far, -far, -far],
            [far, far, -far, -far],
        ],
        np.int32,
    )
    for given in (lines, lines.astype(np.uint32)):
        with np.errstate(over="ignore"):
            want = np.cumsum(given, 1, dtype=np.float64).astype(np.float32).astype(wanted.numpy)
        np.testing.assert_array_equal(gpu.read(gpu.ops.cumsum(up(given), 1, wanted)), want)
    many = np.resize(lines, 100_003)
    got = gpu.read(gpu.ops.cumsum(up(many), 0, pt.float32))
    np.testing.assert_array_equal(got, np.cumsum(many, dtype=np.float64).astype(np.float32))


HUGE = (1 << 17, (1 << 16) + 1, 3)  # 25,769,803,776 + 393,216 elements, and 12 bytes


def test_more_elements_than_32_bits_count(gpu: Wgpu, up: Up) -> None:
    x = gpu.ops.broadcast_to(up(np.array([1.0, -1.0, 3.0], np.float32)), HUGE)
    times = float(HUGE[0] * HUGE[1])
    expected = {"sum": 3 * times, "mean": 1.0, "max": 3.0, "min": -1.0, "prod": -np.inf}
    # An even number of factors -1 is 1, and 3 to a large power is infinite.
    expected["prod"] = np.inf
    for op, value in expected.items():
        extra = (pt.float32,) if op in ("sum", "prod") else ()
        got = gpu.read(gpu.ops[op](x, (0, 1, 2), True, *extra))
        assert got.shape == (1, 1, 1)
        np.testing.assert_allclose(got.item(), value, rtol=1e-6, err_msg=op)
    got = gpu.read(gpu.ops.sum(x, (0, 1), False, pt.float32))
    np.testing.assert_allclose(got, np.array([1, -1, 3]) * times, rtol=1e-6)


def test_many_equal_factors_keep_their_sign_and_wrap(gpu: Wgpu, up: Up) -> None:
    shape = (3, 65_537, 65_539)  # an odd number of elements
    count = shape[1] * shape[2]
    floats = gpu.ops.broadcast_to(up(np.array([-1, 1, 0], np.float32)[:, None, None]), shape)
    assert gpu.read(gpu.ops.prod(floats, (1, 2), False, pt.float32)).tolist() == [-1, 1, 0]
    expected = [-np.float32(count), np.float32(count), 0]
    assert gpu.read(gpu.ops.sum(floats, (1, 2), False, pt.float32)).tolist() == expected
    values = [-1, 3, 2]
    integers = gpu.ops.broadcast_to(up(np.array(values, np.int32)[:, None, None]), shape)
    for got, exact in (
        (gpu.ops.sum(integers, (1, 2), False, pt.int32), [v * count for v in values]),
        (gpu.ops.prod(integers, (1, 2), False, pt.int32), [pow(v, count, 2**32) for v in values]),
    ):
        assert gpu.read(got).tolist() == [(v + 2**31) % 2**32 - 2**31 for v in exact]


def test_a_position_over_32_bits_is_refused(gpu: Wgpu, up: Up) -> None:
    x = gpu.ops.broadcast_to(up(np.ones(3, np.float32)), HUGE)
    with pytest.raises(DeviceMemoryError, match="does not fit int32"):
        gpu.ops.argmax(x, None, False)


def test_a_size_over_32_bits_is_refused_by_any_kernel(gpu: Wgpu, up: Up) -> None:
    x = gpu.ops.broadcast_to(up(np.ones(1, np.float32)), (2**33,))
    with pytest.raises(DeviceMemoryError, match="does not fit 32 bits"):
        gpu.ops.take(x, up(np.array([5], np.int32)), 0)
