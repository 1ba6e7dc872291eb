"""Reductions, scans and sorts of the CPU backend against NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from phlox_kernels import Cpu, _native
from phlox_tensor import DType, as_dtype

Array = np.ndarray[Any, Any]
CPU = Cpu()
INT64 = as_dtype("int64")


def run(name: str, array: Array, *attributes: Any, view: Any = None) -> Array:
    """Apply an entry to an array, or to a view of it that ``view`` makes on the device."""
    entry = CPU.entry(name)
    assert entry is not None, name
    primitive = CPU.upload(array, as_dtype(array.dtype.name))
    return CPU.read(entry(view(primitive) if view else primitive, *attributes))


def accumulated(array: Array) -> DType:
    return INT64 if array.dtype.kind in "iub" else as_dtype(array.dtype.name)


def draw(rng: np.random.Generator, shape: tuple[int, ...], dtype: str) -> Array:
    if dtype == "bool":
        return rng.random(shape) < 0.5
    if dtype.startswith("float"):
        return rng.standard_normal(shape).astype(dtype)
    return rng.integers(0, 100, shape).astype(dtype)


@given(
    st.lists(st.integers(0, 40), min_size=0, max_size=4).filter(lambda s: np.prod(s) <= 20_000),
    st.sampled_from(["bool", "float32", "float64", "int8", "int32", "uint16"]),
    st.data(),
)
@settings(max_examples=150, deadline=None)
def test_any_axes_of_any_layout(shape: list[int], dtype: str, data: st.DataObject) -> None:
    rank = len(shape)
    axis = tuple(sorted(data.draw(st.sets(st.integers(0, max(rank - 1, 0)), max_size=rank))))
    axis = axis if rank else ()
    order = tuple(data.draw(st.permutations(range(rank))))
    keepdims = data.draw(st.booleans())
    array = draw(np.random.default_rng(len(shape)), tuple(shape), dtype)
    seen = np.transpose(array, order)

    def view(p: Any) -> Any:
        return _native.permute_dims(p, order)

    total = run("sum", array, axis, keepdims, accumulated(array), view=view)
    expected = np.sum(seen, axis=axis, keepdims=keepdims, dtype=accumulated(array).numpy)
    np.testing.assert_allclose(total, expected, rtol=2e-5, atol=2e-5)
    assert total.shape == expected.shape
    if dtype == "bool":
        got = [run(name, array, axis, keepdims, view=view) for name in ("all", "any")]
        np.testing.assert_array_equal(got[0], np.all(seen, axis=axis, keepdims=keepdims))
        np.testing.assert_array_equal(got[1], np.any(seen, axis=axis, keepdims=keepdims))
    elif array.size:
        got = [run(name, array, axis, keepdims, view=view) for name in ("max", "min")]
        np.testing.assert_array_equal(got[0], np.max(seen, axis=axis, keepdims=keepdims))
        np.testing.assert_array_equal(got[1], np.min(seen, axis=axis, keepdims=keepdims))


@pytest.mark.parametrize("dtype", ["float32", "float64", "int32", "uint8"])
@pytest.mark.parametrize("shape", [(1000, 300), (7, 50_000), (200_000, 3), (64, 33, 65)])
def test_large_arrays(shape: tuple[int, ...], dtype: str) -> None:
    array = draw(np.random.default_rng(1), shape, dtype)
    for axis in range(len(shape)):
        total = run("sum", array, (axis,), False, accumulated(array))
        exact = np.sum(array, axis=axis, dtype=np.float64 if dtype[0] == "f" else np.int64)
        np.testing.assert_allclose(total, exact, rtol=1e-5, atol=1e-4)
        np.testing.assert_array_equal(run("max", array, (axis,), False), np.max(array, axis=axis))
        np.testing.assert_array_equal(run("argmin", array, axis, False), np.argmin(array, axis))
    assert run("argmax", array, None, False) == np.argmax(array)


def test_the_number_of_threads_changes_no_bit() -> None:
    array = np.random.default_rng(2).standard_normal((517, 1031)).astype(np.float32)
    before = _native._num_threads()
    results = []
    try:
        for threads in (1, 2, 3, 4):
            _native._set_num_threads(threads)
            axes: list[tuple[int, ...]] = [(0,), (1,), (0, 1)]
            results.append([run("sum", array, axis, False, as_dtype("float32")) for axis in axes])
            results[-1].append(run("cumsum", array, 1, as_dtype("float32")))
    finally:
        _native._set_num_threads(before)
    for other in results[1:]:
        for a, b in zip(results[0], other, strict=True):
            assert a.tobytes() == b.tobytes()


def test_nan_wins_and_the_first_one_is_found() -> None:
    array = np.ones((50, 70), np.float32)
    array[3, 60] = array[3, 61] = array[44, 5] = np.nan
    for name in ("max", "min"):
        assert np.isnan(run(name, array, (0, 1), False))
        assert np.flatnonzero(np.isnan(run(name, array, (1,), False))).tolist() == [3, 44]
    for name in ("argmax", "argmin"):
        assert run(name, array, None, False) == 3 * 70 + 60
        assert run(name, array, 1, False)[[3, 44]].tolist() == [60, 5]


def test_narrow_floats_accumulate_wide() -> None:
    array = np.full(10_000, 0.1, np.float16)
    exact = float(np.float16(0.1)) * 10_000
    assert abs(float(run("sum", array, (0,), False, as_dtype("float16"))) - exact) < 1
    assert run("mean", array, (0,), False) == np.float16(0.1)


@pytest.mark.parametrize("dtype", ["float32", "int16", "uint64", "float64"])
@pytest.mark.parametrize("shape", [(5,), (3000,), (6, 4000), (40, 50, 3), (0, 4)])
def test_cumsum(shape: tuple[int, ...], dtype: str) -> None:
    array = draw(np.random.default_rng(3), shape, dtype)
    for axis in range(len(shape)):
        expected = np.cumsum(array.astype(np.float64) if dtype[0] == "f" else array, axis=axis)
        expected = expected.astype(dtype)
        got = run("cumsum", array, axis, as_dtype(dtype))
        np.testing.assert_allclose(got, expected, rtol=1e-5, atol=1e-3)


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "int8", "int64", "uint32"])
@pytest.mark.parametrize("shape", [(5,), (3000,), (7, 400), (90, 50, 3), (150_000,)])
def test_sorts_are_stable(shape: tuple[int, ...], dtype: str) -> None:
    array = draw(np.random.default_rng(4), shape, dtype)
    array = np.round(array).astype(dtype)
    for axis in range(len(shape)):
        order = run("argsort", array, axis, False)
        np.testing.assert_array_equal(order, np.argsort(array, axis=axis, kind="stable"))
        # NumPy's default sort of float16 leaves zeros of both signs among other numbers.
        expected = np.sort(array, axis=axis, kind="stable")
        np.testing.assert_array_equal(run("sort", array, axis, False), expected)
        falling = run("argsort", array, axis, True)
        flipped = np.argsort(np.flip(array, axis), axis=axis, kind="stable")
        expected = np.flip(array.shape[axis] - 1 - flipped, axis)
        np.testing.assert_array_equal(falling, expected)


def test_sort_puts_nan_last_in_both_directions() -> None:
    array = np.array([np.nan, 1.0, -np.inf, np.nan, np.inf, -0.0, 0.0], np.float32)
    assert run("argsort", array, 0, False).tolist() == [2, 5, 6, 1, 4, 0, 3]
    assert run("argsort", array, 0, True).tolist() == [4, 1, 5, 6, 2, 0, 3]
    rising = run("sort", array, 0, False)
    assert np.isnan(rising[-2:]).all()
    assert np.signbit(rising[1:3]).tolist() == [True, False]


def test_bad_arguments_are_errors() -> None:
    x = CPU.upload(np.ones((2, 3), np.float32), as_dtype("float32"))
    empty = CPU.upload(np.ones((0, 3), np.float32), as_dtype("float32"))
    with pytest.raises(ValueError, match=r"\[sum\] wrong axes"):
        _native.sum(x, (2,), False, "float32")
    with pytest.raises(ValueError, match=r"\[argmax\] no elements"):
        _native.argmax(empty, 0, False)
    with pytest.raises(ValueError, match=r"\[sort\] wrong axis"):
        _native.sort(x, 2, False)
    with pytest.raises(ValueError, match=r"\[cumsum\] wrong axis"):
        _native.cumsum(x, 5, "float32")
