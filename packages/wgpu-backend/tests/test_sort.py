"""Sorting: rows of any length, ties, nan, both directions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

import numpy as np
import pytest

from phlox_tensor.reference import sort
from phlox_wgpu import Wgpu, _sort
from phlox_wgpu._array import GpuArray

ref: Any = sort
Array = np.ndarray[Any, Any]
Up = Callable[[Any], GpuArray]
Side = Literal["left", "right"]

# Inside a block, around its length (256 on software, 2048 or 4096 on a GPU), over several passes.
LENGTHS = [1, 2, 3, 31, 64, 255, 256, 257, 1000, 2049, 4097, 9000]


def values(rng: np.random.Generator, shape: tuple[int, ...], dtype: str) -> Array:
    x = rng.integers(0, 40, shape).astype(dtype)
    if dtype.startswith("float"):
        x -= 20
        for special in (np.nan, -np.nan, np.inf, -np.inf, -0.0, 0.0):
            x[rng.random(shape) < 0.05] = special
    return x


@pytest.mark.parametrize("length", LENGTHS)
@pytest.mark.parametrize("descending", [False, True], ids=["up", "down"])
@pytest.mark.parametrize("dtype", ["float32", "float16", "int32", "uint32"])
def test_stable_and_nan_last(
    gpu: Wgpu, up: Up, rng: np.random.Generator, length: int, descending: bool, dtype: str
) -> None:
    x = values(rng, (3, length), dtype)
    want = ref.argsort(x, 1, descending)
    array = up(x)
    np.testing.assert_array_equal(gpu.read(gpu.ops.argsort(array, 1, descending)), want)
    got = gpu.read(gpu.ops.sort(array, 1, descending))
    bits = f"u{x.itemsize}"
    np.testing.assert_array_equal(got.view(bits), np.take_along_axis(x, want, 1).view(bits))


@pytest.mark.parametrize("largest", [False, True], ids=["smallest", "largest"])
@pytest.mark.parametrize("dtype", ["float32", "float16", "int32", "uint32"])
@pytest.mark.parametrize(
    ("length", "k", "kernels"),
    [(1, 1, 1), (100, 10, 1), (256, 256, 1), (300, 7, 2), (9000, 3, 2), (9000, 40, 3)],
)
def test_the_first_k_are_found_by_chunks(
    gpu: Wgpu,
    up: Up,
    rng: np.random.Generator,
    dispatches: list[int],
    length: int,
    k: int,
    kernels: int,
    dtype: str,
    largest: bool,
) -> None:
    x = values(rng, (3, length), dtype)
    array = up(x)
    got, places = gpu.ops.topk(array, k, 1, largest)
    if gpu.is_software:
        assert len(dispatches) == kernels
    want, order = ref.topk(x, k, 1, largest)
    np.testing.assert_array_equal(gpu.read(places), order)
    bits = f"u{x.itemsize}"
    np.testing.assert_array_equal(gpu.read(got).view(bits), want.view(bits))


def test_more_than_chunks_would_shorten_are_found_by_a_sort(
    gpu: Wgpu, up: Up, rng: np.random.Generator
) -> None:
    x = values(rng, (2, 700), "float32")
    for k in (0, 100, 700):
        got, places = gpu.ops.topk(up(x), k, 1, True)
        want, order = ref.topk(x, k, 1, True)
        np.testing.assert_array_equal(gpu.read(places), order)
        np.testing.assert_array_equal(gpu.read(got), want)


@pytest.mark.parametrize("axis", [0, 1, 2])
def test_along_any_axis(gpu: Wgpu, up: Up, rng: np.random.Generator, axis: int) -> None:
    x = rng.normal(size=(5, 300, 7)).astype(np.float32)
    got = gpu.read(gpu.ops.argsort(up(x), axis, False))
    np.testing.assert_array_equal(got, np.argsort(x, axis, kind="stable"))


def test_limits_of_integers(gpu: Wgpu, up: Up) -> None:
    x = np.array([0, -1, 2**31 - 1, -(2**31), 1, -(2**31), 2**31 - 1], np.int32)
    for descending in (False, True):
        want = ref.argsort(x, 0, descending)
        np.testing.assert_array_equal(gpu.read(gpu.ops.argsort(up(x), 0, descending)), want)


def test_rows_go_in_slices_where_one_binding_is_too_small(
    gpu: Wgpu, up: Up, rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch
) -> None:
    x = rng.normal(size=(7, 300)).astype(np.float32)
    array = up(x)
    monkeypatch.setattr(gpu.device, "max_binding_bytes", 3 * 512 * 8)
    got = gpu.read(_sort.argsort(gpu.device, array, 1, False))
    np.testing.assert_array_equal(got, np.argsort(x, 1, kind="stable"))


def test_an_empty_axis(gpu: Wgpu, up: Up) -> None:
    assert gpu.read(gpu.ops.argsort(up(np.ones((3, 0), np.float32)), 1, False)).shape == (3, 0)


@pytest.mark.parametrize("side", ["left", "right"])
@pytest.mark.parametrize("dtype", ["float32", "float16", "int32", "uint32"])
def test_places_in_a_sorted_line_by_one_kernel(
    gpu: Wgpu, up: Up, rng: np.random.Generator, dispatches: list[int], dtype: str, side: Side
) -> None:
    line, wanted = np.sort(values(rng, (1000,), dtype)), values(rng, (7, 300), dtype)
    place = up(line[::-1].copy()).view((1000,), (-1,), 999)
    got = gpu.read(gpu.ops.searchsorted(place, up(wanted), side))
    np.testing.assert_array_equal(got, np.searchsorted(line, wanted, side))
    assert len(dispatches) == 1
