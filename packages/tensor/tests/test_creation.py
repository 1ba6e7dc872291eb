"""Functions that make tensors, beside NumPy's of the same name."""

from __future__ import annotations

from typing import Any, cast

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import phlox_tensor as pt
from phlox_tensor import (
    DTYPES,
    ArgumentError,
    BackendUnavailableError,
    DTypeError,
    KindError,
    Numpy,
    ShapeError,
    Tensor,
)

SHAPES = st.lists(st.integers(0, 4), max_size=3).map(tuple)


def same(got: Tensor[Any], want: Any, dtype: str | None = None) -> None:
    array = np.asarray(want)
    assert got.shape == array.shape
    assert got.dtype.name == (dtype or array.dtype.name)
    assert np.array_equal(got.numpy(), array.astype(got.dtype.numpy))


@given(SHAPES, st.sampled_from(sorted(DTYPES)))
def test_zeros_ones_full(shape: tuple[int, ...], dtype: str) -> None:
    numpy_type = DTYPES[dtype].numpy
    same(pt.zeros(shape, dtype=dtype), np.zeros(shape, numpy_type))
    same(pt.ones(shape, dtype=dtype), np.ones(shape, numpy_type))
    same(pt.full(shape, 1, dtype=dtype), np.full(shape, 1, numpy_type))
    assert pt.empty(shape, dtype=dtype).shape == shape
    x = pt.ones(shape, dtype=dtype)
    same(pt.zeros_like(x), np.zeros(shape, numpy_type))
    same(pt.ones_like(x), np.ones(shape, numpy_type))
    same(pt.full_like(x, 1), np.full(shape, 1, numpy_type))
    assert pt.empty_like(x).shape == shape
    assert pt.ones_like(x, dtype="float64").dtype is pt.float64


def test_values_choose_the_type() -> None:
    same(pt.full(2, 1.5), np.full(2, 1.5), "float32")
    same(pt.full((2,), 3), np.full(2, 3), "int64")
    same(pt.full([2], True), np.full(2, True))
    three, two, half = (cast("Any", n) for n in (np.int64(3), np.int64(2), np.float32(0.5)))
    same(pt.full((), three), three)
    same(pt.full(two, half), np.full(2, 0.5), "float32")
    assert pt.full_like(pt.ones(2, device=Numpy("float64")), 2).device is Numpy("float64")


@given(st.integers(-9, 9), st.integers(-9, 9), st.integers(-4, 4).filter(bool))
def test_ranges_of_integers(start: int, stop: int, step: int) -> None:
    same(pt.arange(start, stop, step), np.arange(start, stop, step))
    same(pt.arange(start), np.arange(start))
    same(pt.arange(start, stop, step, dtype="float32"), np.arange(start, stop, step), "float32")


@given(st.integers(-40, 40), st.integers(-40, 40), st.sampled_from([0.25, -0.25, 0.5, 1.5, -2.0]))
def test_ranges_of_floats(start: int, stop: int, step: float) -> None:
    """Quarters are exact, so the count of elements leaves no room for rounding."""
    same(pt.arange(start / 4, stop / 4, step), np.arange(start / 4, stop / 4, step), "float32")


def test_ranges_hold_what_they_say() -> None:
    same(pt.arange(np.int64(3)), np.arange(3))  # type: ignore[call-overload]
    same(pt.arange(5, 0, -2, dtype="uint8"), np.array([5, 3, 1], np.uint8))
    same(pt.arange(0.0, 4.0, 2.0, dtype="int32"), np.array([0, 2], np.int32))
    wrong: list[Any] = [(0, 3, 0), (float("nan"),), (float("inf"),), ("3",)]
    for arguments in wrong:
        with pytest.raises(ArgumentError, match=r"^\[arange\]"):
            pt.arange(*arguments)
    with pytest.raises(KindError):
        pt.arange(0, 3, 0.5, dtype="int64")
    with pytest.raises(KindError):
        pt.arange(0.5, 3, dtype="int64")
    with pytest.raises(KindError):
        pt.arange(2, dtype="bool")
    with pytest.raises(DTypeError):
        pt.arange(250, 260, dtype="uint8")
    with pytest.raises(DTypeError):
        pt.arange(3, -3, -1, dtype="uint8")


@given(st.integers(0, 7), st.booleans())
def test_linspace(num: int, endpoint: bool) -> None:
    got = pt.linspace(-1, 2, num, endpoint=endpoint, dtype="float64")
    assert np.array_equal(got.numpy(), np.linspace(-1, 2, num, endpoint=endpoint))
    assert pt.linspace(0, 1, num).dtype is pt.float32
    whole = pt.linspace(-2, 2, num, endpoint=endpoint, dtype="int32")
    assert whole.tolist() == np.linspace(-2, 2, num, endpoint=endpoint, dtype=np.int32).tolist()
    with pytest.raises(ShapeError, match=r"\[linspace\] too many elements: got \(2361183241"):
        pt.linspace(0, 1, 2**71 + num)


@given(st.integers(0, 4), st.none() | st.integers(0, 4), st.integers(-4, 4))
def test_eye(rows: int, columns: int | None, k: int) -> None:
    same(pt.eye(rows, columns, k=k), np.eye(rows, columns, k=k, dtype=np.float32))


@given(SHAPES.filter(lambda s: len(s) > 1), st.integers(-4, 4), st.sampled_from(sorted(DTYPES)))
def test_triangles(shape: tuple[int, ...], k: int, dtype: str) -> None:
    array = np.ones(shape, DTYPES[dtype].numpy)
    same(pt.tril(pt.asarray(array), k=k), np.tril(array, k))
    same(pt.triu(pt.asarray(array), k=k), np.triu(array, k))


@pytest.mark.parametrize("name", ["empty", "full", "ones", "zeros"])
def test_errors_name_the_function_that_was_called(name: str) -> None:
    more = (1,) if name == "full" else ()
    with pytest.raises(ArgumentError, match=rf"^\[{name}\] negative size"):
        getattr(pt, name)(-1, *more)
    with pytest.raises(DTypeError, match=rf"^\[{name}_like\] unknown element type"):
        getattr(pt, f"{name}_like")(pt.ones(2), *more, dtype="float33")


@pytest.mark.parametrize("indexing", ["xy", "ij"])
@pytest.mark.parametrize("sizes", [(), (3,), (3, 2), (3, 2, 4)])
def test_meshgrid(sizes: tuple[int, ...], indexing: Any) -> None:
    lines = [np.arange(n) + 10 * i for i, n in enumerate(sizes)]
    got = pt.meshgrid(*map(pt.asarray, lines), indexing=indexing)
    want = np.meshgrid(*lines, indexing=indexing)
    assert len(got) == len(want)
    for a, b in zip(got, want, strict=True):
        same(a, b)


@pytest.mark.parametrize(
    "call",
    [
        lambda: pt.zeros((-1,)),
        lambda: pt.zeros((2.5,)),  # type: ignore[arg-type]
        lambda: pt.ones("ab"),  # type: ignore[arg-type]
        lambda: pt.full(2, "a"),  # type: ignore[call-overload]
        lambda: pt.full(2, None),  # type: ignore[call-overload]
        lambda: pt.linspace(0, 1, -1),
        lambda: pt.eye(-1),
        lambda: pt.meshgrid(pt.ones(1), indexing="yx"),
        lambda: pt.random.uniform((-1,)),
        lambda: pt.random.permutation(-1),
    ],
)
def test_what_is_no_shape_or_number_is_refused(call: Any) -> None:
    with pytest.raises(ArgumentError, match=r"^\[\w+\] .*got "):
        call()


def test_a_triangle_of_a_vector_is_refused() -> None:
    with pytest.raises(ShapeError, match=r"\[tril\] not a matrix"):
        pt.tril(pt.ones(3))
    with pytest.raises(ShapeError, match=r"\[triu\]"):
        pt.triu(pt.ones(()))


def test_unknown_devices_and_types_are_refused_by_every_creator() -> None:
    for call in (pt.zeros, pt.ones, pt.empty, pt.random.uniform, pt.random.normal):
        with pytest.raises(ArgumentError, match="no such backend"):
            call(2, device="nope")
        with pytest.raises(DTypeError, match="unknown element type"):
            call(2, dtype="float12")
    with pytest.raises(KindError, match="not a float type"):
        pt.random.normal(2, dtype="int64")


def test_an_error_of_a_backend_is_one_of_phlox() -> None:
    error = BackendUnavailableError("wgpu", "no adapter", hint="install a driver")
    assert isinstance(error, RuntimeError)
    assert str(error) == "[wgpu] no adapter\nhint: install a driver"


@pytest.mark.parametrize(
    ("data", "dtype"),
    [
        (1.5, "int32"),
        ([1, 2.5], "int64"),
        ([float("nan")], "int8"),
        ([2.0**63], "int64"),
        ([-1.0], "uint8"),
    ],
)
def test_python_floats_that_integers_do_not_hold_are_refused(data: Any, dtype: str) -> None:
    with pytest.raises(DTypeError, match=r"\[asarray\] numbers that the type does not hold"):
        pt.asarray(data, dtype=dtype)
    assert pt.asarray(data).astype(dtype).dtype.name == dtype


def test_whole_floats_and_arrays_become_integers() -> None:
    assert pt.asarray([1.0, -(2.0**31)], dtype="int32").tolist() == [1, -(2**31)]
    assert pt.asarray(np.array([1.5, -1.5]), dtype="int32").tolist() == [1, -1]
    assert pt.asarray([], dtype="int32").shape == (0,)


def test_what_is_no_shape_broadcasts_with_nothing() -> None:
    for wrong in ("a", (2.5,), None):
        with pytest.raises(ArgumentError, match=r"\[broadcast_shapes\]"):
            pt.broadcast_shapes(cast("Any", wrong))
    assert pt.broadcast_shapes((2, 1), (3,)) == (2, 3)
