"""Functions made of ops, beside NumPy's."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import phlox_tensor as pt
from phlox_tensor import ArgumentError, KindError, PhloxError, ShapeError, Tensor

Array = np.ndarray[Any, Any]
WEAK: list[Any] = [1.0]
RANKED = st.lists(st.integers(1, 4), min_size=1, max_size=4).map(tuple)


def arange(shape: tuple[int, ...]) -> Array:
    return np.arange(int(np.prod(shape)), dtype=np.float32).reshape(shape)


def same(got: Tensor[Any], want: Any) -> None:
    array = np.asarray(want)
    assert got.shape == array.shape
    assert np.array_equal(got.numpy(), array)


@given(RANKED, st.data())
def test_axes_are_added_dropped_and_moved(shape: tuple[int, ...], data: st.DataObject) -> None:
    array = arange(shape)
    x = pt.asarray(array)
    rank = len(shape)
    axis = data.draw(st.integers(-rank - 1, rank))
    same(pt.expand_dims(x, axis), np.expand_dims(array, axis))
    ones = [i for i, n in enumerate(shape) if n == 1]
    same(pt.squeeze(x), np.squeeze(array))
    same(pt.squeeze(x, ones), np.squeeze(array, tuple(ones)))
    a, b = data.draw(st.integers(-rank, rank - 1)), data.draw(st.integers(-rank, rank - 1))
    same(pt.moveaxis(x, a, b), np.moveaxis(array, a, b))
    same(x.swapaxes(a, b), np.swapaxes(array, a, b))
    order = data.draw(st.permutations(range(rank)))
    same(x.permute_dims(*order), array.transpose(order))
    same(pt.moveaxis(x, order, list(range(rank))), np.moveaxis(array, order, list(range(rank))))
    same(x.T, array.T)
    if rank > 1:
        same(x.mT, array.swapaxes(-1, -2))
    first = data.draw(st.integers(0, rank - 1))
    last = data.draw(st.integers(first, rank - 1))
    shape_out = (*shape[:first], -1, *shape[last + 1 :])
    same(x.flatten(first, last), array.reshape(shape_out))


@given(RANKED, st.data())
def test_joining_and_cutting(shape: tuple[int, ...], data: st.DataObject) -> None:
    array = arange(shape)
    x = pt.asarray(array)
    axis = data.draw(st.integers(-len(shape), len(shape) - 1))
    n = shape[axis]
    same(pt.stack([x, x + 1], axis), np.stack([array, array + 1], axis))
    same(pt.concat([x, x], axis), np.concatenate([array, array], axis))
    cut = data.draw(st.integers(0, n))
    for got, want in zip(
        pt.split(x, [cut, n - cut], axis), np.split(array, [cut], axis), strict=True
    ):
        same(got, want)
    parts = data.draw(st.sampled_from([d for d in range(1, n + 1) if n % d == 0]))
    for got, want in zip(pt.split(x, parts, axis), np.split(array, parts, axis), strict=True):
        same(got, want)
    for got, want in zip(pt.unstack(x, axis=axis), np.moveaxis(array, axis, 0), strict=True):
        same(got, want)
    chunks = pt.chunk(x, data.draw(st.integers(1, 5)), axis)
    same(pt.concat(chunks, axis), array)
    assert len({c.shape[axis] for c in chunks[:-1]}) <= 1


@given(RANKED, st.data())
def test_repeating_and_rolling(shape: tuple[int, ...], data: st.DataObject) -> None:
    array = arange(shape)
    x = pt.asarray(array)
    axis = data.draw(st.none() | st.integers(-len(shape), len(shape) - 1))
    times = data.draw(st.integers(0, 3))
    same(x.repeat(times, axis=axis), np.repeat(array, times, axis))
    shift = data.draw(st.integers(-9, 9))
    same(x.roll(shift, axis=axis), np.roll(array, shift, axis))
    counts = data.draw(st.lists(st.integers(0, 3), max_size=5))
    same(pt.tile(x, counts), np.tile(array, counts))
    same(pt.tile(x, times), np.tile(array, times))
    same(x.flip(), np.flip(array))
    for got, want in zip(
        pt.broadcast_arrays(x, pt.zeros(())),
        np.broadcast_arrays(array, np.zeros((), np.float32)),
        strict=True,
    ):
        same(got, want)


@given(
    st.lists(st.integers(1, 3), max_size=2),
    st.lists(st.integers(1, 3), max_size=2),
    st.lists(st.integers(1, 3), max_size=2),
)
def test_tensordot(rows: list[int], inner: list[int], columns: list[int]) -> None:
    a, b = arange((*rows, *inner)), arange((*inner, *columns))
    x, y = pt.asarray(a), pt.asarray(b)
    n = len(inner)
    same(pt.tensordot(x, y, axes=n), np.tensordot(a, b, n))
    left = list(range(len(rows), len(rows) + n))[::-1]
    right = list(range(n))[::-1]
    same(pt.tensordot(x, y, axes=(left, right)), np.tensordot(a, b, (left, right)))


@given(st.lists(st.floats(-5, 5, width=32), min_size=1, max_size=8), st.data())
def test_products_norms_and_topk(values: list[float], data: st.DataObject) -> None:
    array = np.array(values, np.float32)
    x = pt.asarray(array)
    same(pt.outer(x, x), np.outer(array, array))
    assert np.allclose(pt.vecdot(x, x).numpy(), array @ array, rtol=1e-5, atol=1e-6)
    norm = np.linalg.norm(array.astype(np.float64))
    assert np.allclose(pt.vector_norm(x).numpy(), norm, rtol=1e-5, atol=1e-6)
    k = data.draw(st.integers(0, len(values)))
    top, places = pt.topk(x, k)
    same(top, np.sort(array)[::-1][:k])
    same(x[places], top.numpy())


def test_topk_along_an_axis_takes_the_first_of_equals() -> None:
    top, places = pt.topk(pt.asarray([[1, 3, 3], [2, 2, 0]]), 2, axis=1)
    assert top.tolist() == [[3, 3], [2, 2]]
    assert places.tolist() == [[1, 2], [0, 1]]


def test_topk_is_the_start_of_a_sort_also_for_nan() -> None:
    x = pt.asarray([np.nan, 1.0, 3.0, np.nan, 2.0])
    assert pt.topk(x, 2)[1].tolist() == [2, 4]
    assert x.topk(2, largest=False)[1].tolist() == [1, 4]
    assert x.topk(5)[1].tolist() == [2, 4, 1, 0, 3]


def test_allclose_is_that_of_numpy() -> None:
    x = pt.asarray([1.0, 2.0])
    assert pt.allclose(x, x + 1e-6)
    assert not pt.allclose(x, x + 1e-3)
    assert pt.allclose(x, x + 1e-3, atol=1e-2)
    assert not pt.allclose(pt.asarray([np.nan]), pt.asarray([np.nan]))


def test_empty_tensors_pass_through() -> None:
    x = pt.zeros((0, 3))
    assert x.roll(1, axis=0).shape == (0, 3)
    assert x.repeat(2, axis=1).shape == (0, 6)
    assert pt.stack([x, x]).shape == (2, 0, 3)
    assert pt.chunk(x, 2)[0].shape == (0, 3)
    assert pt.tensordot(x, pt.zeros((3, 0)), axes=1).shape == (0, 0)
    assert pt.tensordot(pt.zeros((2, 0)), pt.zeros((0, 2)), axes=1).tolist() == [[0, 0], [0, 0]]
    assert x.sum().item() == 0
    assert x.flatten().shape == (0,)


@pytest.mark.parametrize(
    ("call", "error"),
    [
        (lambda x: pt.squeeze(x, 0), ShapeError),
        (lambda x: pt.expand_dims(x, 5), ShapeError),
        (lambda x: pt.moveaxis(x, (0, 1), (0,)), ArgumentError),
        (lambda x: pt.moveaxis(x, (0, 0), (0, 1)), ShapeError),
        (lambda x: x.swapaxes(0, 2), ShapeError),
        (lambda x: x.flatten(1, 0), ArgumentError),
        (lambda x: pt.split(x, 2, 1), ShapeError),
        (lambda x: pt.split(x, 0), ShapeError),
        (lambda x: pt.split(x, [1, 2]), ShapeError),
        (lambda x: pt.split(x, [-1, 3]), ShapeError),
        (lambda x: pt.chunk(x, 0), ArgumentError),
        (lambda x: x.repeat(-1), ShapeError),
        (lambda x: pt.tile(x, (-1,)), ShapeError),
        (lambda x: pt.stack([]), ArgumentError),
        (lambda x: pt.stack([x, x[0]]), ShapeError),
        (pt.concat, ArgumentError),
        (lambda x: pt.concat([x, x.T]), ShapeError),
        (lambda x: pt.concat([x, x], axis=2), ShapeError),
        (lambda x: pt.concat([x, *WEAK]), ShapeError),
        (lambda x: pt.outer(x, x), ShapeError),
        (lambda x: pt.topk(x, 4), ShapeError),
        (lambda x: pt.topk(x, -1), ShapeError),
        (lambda x: pt.interpolate2d(x, 4), ShapeError),
        (lambda x: pt.interpolate2d(x[None, None], 4, "cubic"), ArgumentError),
        (lambda x: pt.interpolate2d(x[None, None, :, :0], 4), ShapeError),
        (lambda x: pt.ops.interpolate2d_backward(x[None, None], (1, 2, 3, 3)), ShapeError),
        (lambda x: pt.tensordot(x, x.reshape(3, 2)), ShapeError),
        (lambda x: pt.tensordot(x, x, axes=3), ShapeError),
        (lambda x: pt.tensordot(x, x, axes=([0], [1])), ShapeError),
        (lambda x: pt.matrix_transpose(x[0]), ShapeError),
        (lambda x: pt.bincount(pt.asarray([-1, 3])), ArgumentError),
        (lambda x: pt.interpolate(x[None, None], (4,)), ShapeError),
        (lambda x: pt.fft.stft(x[0], 16), ShapeError),
        (lambda x: pt.fft.fft(x.astype(pt.int32)), KindError),
        (lambda x: pt.broadcast_arrays(x, x.T), ShapeError),
        (lambda x: pt.fake_quantize(x, 0.5, axis=5), ShapeError),
        (lambda x: pt.fake_quantize(x, 0.5, bits=0), ArgumentError),
        (lambda x: pt.fake_quantize(x, 0.5, 0.5), ArgumentError),  # type: ignore[arg-type]
        (lambda x: pt.fake_quantize(x, 0.5, x), KindError),
        (lambda x: pt.fake_quantize(x, 0.0), ArgumentError),
        (lambda x: pt.fake_quantize(x, np.float32(0.0)), ArgumentError),  # type: ignore[arg-type]
        (lambda x: pt.quantize(x, 0.0), ArgumentError),  # type: ignore[arg-type]
        (lambda x: pt.quantize(x, -1), ArgumentError),  # type: ignore[arg-type]
        (lambda x: pt.quantize(x, math.nan), ArgumentError),  # type: ignore[arg-type]
        (lambda x: pt.quantize(x, np.float32("inf")), ArgumentError),  # type: ignore[arg-type]
        (lambda x: pt.fake_quantize(x.astype(pt.int32), 0.5), KindError),
    ],
)
def test_what_does_not_fit_is_refused(call: Any, error: type[PhloxError]) -> None:
    with pytest.raises(error, match=r"^\[\w+\] "):
        call(pt.asarray(arange((2, 3))))


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("chunk", (2,)),
        ("expand_dims", (0,)),
        ("flatten", ()),
        ("moveaxis", (0, -1)),
        ("repeat", (2,)),
        ("roll", (1,)),
        ("split", ([1, 1],)),
        ("squeeze", ()),
        ("swapaxes", (0, 1)),
        ("tile", ((2, 1),)),
        ("unstack", ()),
        ("vector_norm", ()),
    ],
)
def test_a_composite_is_a_function_a_method_and_an_op(
    name: str, arguments: tuple[Any, ...]
) -> None:
    x: Any = pt.asarray(arange((2, 3)))
    by_function, by_method = getattr(pt, name)(x, *arguments), getattr(x, name)(*arguments)
    by_name = getattr(pt.ops, name)(x, *arguments)
    for a, b in ((by_function, by_method), (by_method, by_name)):
        if isinstance(a, tuple):
            assert [t.tolist() for t in a] == [t.tolist() for t in b]
        else:
            assert a.tolist() == b.tolist()
    assert pt.REGISTRY[name].expand is not None


def test_integers_of_numpy_stand_wherever_integers_do() -> None:
    x: Any = pt.asarray(arange((1, 4, 6)))
    one: Any = np.int64(1)
    two: Any = np.int32(2)
    assert x.squeeze(np.int64(0)).shape == (4, 6)
    assert x.moveaxis(one, two).shape == (1, 6, 4)
    assert [p.shape for p in x.split(two, axis=one)] == [(1, 2, 6)] * 2
    assert [p.shape for p in x.split([one, np.int64(3)], axis=1)] == [(1, 1, 6), (1, 3, 6)]
    assert x.tile(two).shape == (1, 4, 12)
    assert x.tile((two, one, one)).shape == (2, 4, 6)
    assert x.repeat(two, axis=one).shape == (1, 8, 6)
    assert x.roll(one, axis=two).shape == x.shape
    assert x.expand_dims(one).shape == (1, 1, 4, 6)
    assert x.flatten(one, two).shape == (1, 24)
    assert len(x.chunk(two, axis=one)) == 2
    assert pt.tensordot(x, x, axes=([one], [one])).shape == (1, 6, 1, 6)


@pytest.mark.parametrize(
    ("call", "name"),
    [
        (lambda x: x.repeat(-1), "repeat"),
        (lambda x: x.tile((-1,)), "tile"),
        (lambda x: x.moveaxis((0, 0), (0, 1)), "moveaxis"),
        (lambda x: x.moveaxis(0.5, 1), "moveaxis"),
        (lambda x: x.split(0), "split"),
        (lambda x: x.chunk(1, axis=7), "chunk"),
        (lambda x: x.expand_dims(5), "expand_dims"),
        (lambda x: x.squeeze(0), "squeeze"),
        (lambda x: x.unstack(axis=3), "unstack"),
        (lambda x: x.roll("a"), "roll"),
        (pt.stack, "stack"),
        (lambda x: pt.stack([[1], [2]]), "stack"),  # type: ignore[list-item]
        (lambda x: pt.stack([x, x.T]), "stack"),
        (lambda x: pt.tensordot(x, x, axes=([5], [0])), "tensordot"),
        (lambda x: pt.tensordot(x, x, axes=[[0]]), "tensordot"),
        (lambda x: pt.tensordot(x, x, axes=0.5), "tensordot"),  # type: ignore[arg-type]
        (lambda x: pt.vecdot(x, x.T), "vecdot"),
        (lambda x: x.matrix_transpose().flatten().mT, "matrix_transpose"),
    ],
)
def test_an_error_names_the_op_that_was_called(call: Any, name: str) -> None:
    with pytest.raises(PhloxError) as caught:
        call(pt.asarray(arange((2, 3))))
    assert caught.value.op == name


def test_numbers_beside_tensors_in_allclose() -> None:
    assert pt.allclose(pt.ones((2, 3)), 1.0)
    assert not pt.allclose(pt.ones((2, 3)), 1.5)
    assert pt.allclose(2.0, pt.full((2,), 2.0))


def test_lerp_between_numbers_whose_difference_leaves_the_range() -> None:
    ends = pt.asarray([-3e38, 3e38]), pt.asarray([3e38, -3e38])
    assert pt.lerp(*ends, 0.5).tolist() == [0.0, 0.0]
    assert pt.lerp(*ends, 0.75).tolist() == pytest.approx([1.5e38, -1.5e38], rel=1e-5)
    assert pt.lerp(*ends, 0.0).tolist() == ends[0].tolist()
    assert pt.lerp(*ends, 1.0).tolist() == ends[1].tolist()


def test_running_sums_of_long_lines_stay_exact_on_the_reference() -> None:
    total = pt.full((1_000_000,), 0.1, dtype="float32", device="numpy").cumsum()[-1]
    assert total.item() == np.float32(np.float64(np.float32(0.1)) * 1_000_000)


@pytest.mark.parametrize("wrong", [{"rtol": -1.0}, {"atol": float("nan")}])
def test_tolerances_are_not_negative(wrong: dict[str, Any]) -> None:
    x = pt.asarray([1.0])
    with pytest.raises(ArgumentError, match=r"\[isclose\] .tol is no tolerance"):
        pt.isclose(x, x, **wrong)
    with pytest.raises(ArgumentError, match=r"\[allclose\] .tol is no tolerance"):
        pt.allclose(x, x, **wrong)


def test_counts_of_repeats_are_whole_numbers_one_for_each_element() -> None:
    x = pt.ones((2, 2))
    with pytest.raises(pt.KindError, match="repeats are no whole numbers: got float32"):
        pt.repeat(x, pt.asarray([1.0, 1.9]), axis=0)  # type: ignore[arg-type]
    with pytest.raises(pt.ShapeError, match=r"\[repeat\] a count for each element: got \(3,\)"):
        pt.repeat(x, pt.asarray([1, 2, 3]), axis=0)
