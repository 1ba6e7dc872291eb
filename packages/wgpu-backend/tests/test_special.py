"""Casts, and special values where the hardware would give others."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import phlox_tensor as pt
from phlox_wgpu import Wgpu
from phlox_wgpu._array import GpuArray

Up = Callable[[Any], GpuArray]
NAN, INF = np.nan, np.inf


@pytest.mark.parametrize(
    ("dtype", "values", "expected"),
    [
        (pt.int32, [NAN, INF, -INF, 1.9, -1.9, 3e9], [0, 2**31 - 1, -(2**31), 1, -1, 2**31 - 1]),
        (pt.uint32, [NAN, INF, -INF, 1.9, -1.9, 5e9], [0, 2**32 - 1, 0, 1, 0, 2**32 - 1]),
        (pt.bool_, [NAN, 0.0, -0.0, 0.5, -INF], [True, False, False, True, True]),
        (pt.float16, [NAN, 65504.0, 65519.0, 65520.0, 2049.0], [NAN, 65504, 65504, INF, 2048]),
    ],
)
def test_cast_from_float(
    gpu: Wgpu, up: Up, dtype: pt.DType, values: list[float], expected: list[float]
) -> None:
    got = gpu.read(gpu.ops.cast(up(np.array(values, np.float32)), dtype))
    np.testing.assert_array_equal(got, np.array(expected, dtype.numpy))


def test_integers_wrap_between_each_other(gpu: Wgpu, up: Up) -> None:
    signed = np.array([-1, 2**31 - 1], np.int32)
    np.testing.assert_array_equal(
        gpu.read(gpu.ops.cast(up(signed), pt.uint32)), signed.astype(np.uint32)
    )


def test_clip_keeps_nan_and_takes_one_bound(gpu: Wgpu, up: Up) -> None:
    x = up(np.array([NAN, -5, 5, INF], np.float32))
    np.testing.assert_array_equal(gpu.read(gpu.ops.clip(x, -1, 1)), [NAN, -1, 1, 1])
    np.testing.assert_array_equal(gpu.read(gpu.ops.clip(x, None, 1)), [NAN, -5, 1, 1])
    np.testing.assert_array_equal(gpu.read(gpu.ops.clip(x, -1, None)), [NAN, -1, 5, INF])
    wide = up(np.array([-7, 7], np.int32))
    assert gpu.read(gpu.ops.clip(wide, -(2**40), 3)).tolist() == [-7, 3]


def test_sin_of_huge_angles(gpu: Wgpu, up: Up) -> None:
    x = np.array([1e4, -1e6, 1e15, 3.4e38, 355.0, 2**20 * np.pi], np.float32)
    wide = x.astype(np.float64)
    np.testing.assert_allclose(gpu.read(gpu.ops.sin(up(x))), np.sin(wide), rtol=1e-5, atol=1e-7)
    np.testing.assert_allclose(gpu.read(gpu.ops.cos(up(x))), np.cos(wide), rtol=1e-5, atol=1e-7)


def test_float_remainders_are_exact(gpu: Wgpu, up: Up, rng: np.random.Generator) -> None:
    bits = rng.integers(0, 2**32, (2, 4000), dtype=np.uint64).astype(np.uint32)
    a, b = bits.view(np.float32)
    with np.errstate(all="ignore"):
        expected = np.fmod(a, b)
    got = gpu.read(gpu.ops.fmod(up(a), up(b)))
    normal = np.abs(expected) >= np.finfo(np.float32).tiny
    np.testing.assert_array_equal(got[normal], expected[normal])
    np.testing.assert_array_equal(np.isnan(got), np.isnan(expected))


@pytest.mark.parametrize("op", ["floor_divide", "fmod", "remainder"])
def test_integer_division_at_its_corners(gpu: Wgpu, up: Up, op: str) -> None:
    edge = np.array([-(2**31), -(2**31) + 1, -7, -1, 0, 1, 3, 7, 2**31 - 1], np.int32)
    a, b = np.meshgrid(edge, edge)
    with np.errstate(all="ignore"):
        expected = getattr(np, op)(a, b)
    np.testing.assert_array_equal(gpu.read(gpu.ops[op](up(a), up(b))), expected)


# The largest error in ulp seen on 2 million points, rounded up; a driver with exact division.
ULP = {
    "acos": 1.5,
    "acosh": 2.5,
    "asin": 2.5,
    "asinh": 3.0,
    "atan": 1.0,
    "atanh": 1.5,
    "cos": 2.5,
    "cosh": 2.0,
    "exp": 1.5,
    "expm1": 2.5,
    "log": 1.0,
    "log10": 3.0,
    "log1p": 3.0,
    "log2": 3.0,
    "sin": 2.5,
    "sinh": 2.0,
    "tan": 4.5,
    "tanh": 1.5,
}


@pytest.mark.parametrize("op", sorted(ULP))
def test_accuracy_over_the_whole_range(
    gpu: Wgpu, up: Up, rng: np.random.Generator, op: str
) -> None:
    anything = rng.integers(0, 2**32, 50_000, dtype=np.uint64).astype(np.uint32).view(np.float32)
    near = rng.normal(size=50_000).astype(np.float32)
    x = np.concatenate([anything, near])
    with np.errstate(all="ignore"):
        exact = getattr(np, op)(x.astype(np.float64))
        expected = exact.astype(np.float32)
        got = gpu.read(gpu.ops[op](up(x)))
        error = np.abs(got - exact) / np.spacing(np.abs(expected))
    normal = np.isfinite(expected) & (np.abs(expected) >= np.finfo(np.float32).tiny)
    assert error[normal].max() <= ULP[op] * gpu.slack
    special = ~np.isfinite(expected)
    np.testing.assert_array_equal(got[special], expected[special])


def test_rounding_to_float16_inside_a_chain(gpu: Wgpu, up: Up, rng: np.random.Generator) -> None:
    from phlox_wgpu._elementwise import Chained, run_program
    from phlox_wgpu.wgsl.chain import Chain, Node

    halves = rng.integers(0, 2**16, (2, 20_000), dtype=np.uint32).astype(np.uint16)
    a, b = halves.view(np.float16)
    nodes = (Node("multiply", (0, 1), "float16"), Node("add", (2, 1), "float16"))
    program = Chained(Chain(("float16", "float16"), nodes, (3,)), (pt.float16,))
    (out,) = run_program(gpu.device, program, (up(a), up(b)))
    with np.errstate(all="ignore"):
        expected = a * b + b
    np.testing.assert_array_equal(gpu.read(out), expected)


def test_floats_of_numpy_are_numbers(gpu: Wgpu) -> None:
    x = pt.ones((2,), device=gpu)
    numbers: list[Any] = [np.float64(2), np.float32(2)]
    for two in numbers:
        assert (x * two).tolist() == (two * x).tolist() == [2.0, 2.0]
        assert pt.where(x > two, x, two).tolist() == [2.0, 2.0]
