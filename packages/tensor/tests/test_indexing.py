"""``x[...]`` beside NumPy: every kind of index, alone and mixed, and what is refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import phlox_tensor as pt
from phlox_tensor import ArgumentError, IndexOutOfRangeError, KindError, ShapeError, Tensor

Array = np.ndarray[Any, Any]


def arange(shape: tuple[int, ...]) -> Array:
    return np.arange(int(np.prod(shape)), dtype=np.int64).reshape(shape)


@st.composite
def slices(draw: st.DrawFn, size: int) -> slice:
    bound = st.none() | st.integers(-size - 2, size + 2)
    step = st.none() | st.integers(-3, 3).filter(bool)
    return slice(draw(bound), draw(bound), draw(step))


@st.composite
def basic_cases(draw: st.DrawFn) -> tuple[tuple[int, ...], tuple[Any, ...]]:
    shape = tuple(draw(st.lists(st.integers(0, 4), max_size=4)))
    taken = draw(st.integers(0, len(shape)))
    items: list[Any] = []
    for size in shape[:taken]:
        whole = st.integers(-size, size - 1) if size else st.nothing()
        items.append(draw(slices(size) | whole))
    for _ in range(draw(st.integers(0, 2))):
        items.insert(draw(st.integers(0, len(items))), None)
    if draw(st.booleans()):
        items.append(Ellipsis)
    return shape, tuple(items)


@st.composite
def advanced_cases(draw: st.DrawFn) -> tuple[tuple[int, ...], tuple[Any, ...]]:
    """An index with at least one integer array or mask, in any company and order."""
    shape = tuple(draw(st.lists(st.integers(1, 4), min_size=1, max_size=4)))
    common = tuple(draw(st.lists(st.integers(0, 3), max_size=2)))
    masked = draw(st.booleans())
    covered = draw(st.integers(0, len(shape)))
    items: list[Any] = []
    axis = 0
    while axis < covered:
        size = shape[axis]
        kind = draw(st.sampled_from(("array", "slice", "whole", "mask")))
        if kind == "mask" and masked:
            rank = draw(st.integers(1, min(2, covered - axis)))
            masked = False
            bits = draw(st.lists(st.booleans(), min_size=1, max_size=16))
            # Masks broadcast against each other and arrays only where their counts agree.
            if common not in ((), (1,)):
                common = (1,)
            items.append(np.resize(np.array(bits), shape[axis : axis + rank]))
            axis += rank
            continue
        if kind == "array":
            own = common if draw(st.booleans()) else common[1:]
            values = draw(st.integers(-size, size - 1))
            items.append((values + arange(own)) % size - size * draw(st.integers(0, 1)))
        elif kind == "slice":
            items.append(draw(slices(size)))
        else:
            items.append(draw(st.integers(-size, size - 1)))
        axis += 1
    if draw(st.booleans()):
        items.insert(draw(st.integers(0, len(items))), None)
    if draw(st.booleans()) or covered < len(shape):
        items.append(Ellipsis)
    return shape, tuple(items)


def on_device(index: tuple[Any, ...]) -> tuple[Any, ...]:
    return tuple(pt.asarray(i) if isinstance(i, np.ndarray) else i for i in index)


def agree(got: Tensor[Any], want: Array) -> None:
    assert got.shape == want.shape
    assert got.dtype.numpy == want.dtype
    assert np.array_equal(got.numpy(), want)


@given(basic_cases())
def test_integers_slices_none_and_ellipsis(case: tuple[tuple[int, ...], tuple[Any, ...]]) -> None:
    shape, index = case
    agree(pt.asarray(arange(shape))[index], arange(shape)[index])


@given(advanced_cases())
def test_tensors_and_masks_in_any_company(case: tuple[tuple[int, ...], tuple[Any, ...]]) -> None:
    shape, index = case
    try:
        want = arange(shape)[index]
    except IndexError:  # counts of masks and arrays that do not broadcast
        with pytest.raises(ShapeError):
            pt.asarray(arange(shape))[on_device(index)]
        return
    agree(pt.asarray(arange(shape))[on_device(index)], want)
    agree(pt.asarray(arange(shape))[index], want)


I2, I22, M34 = np.array([1, 0]), np.array([[0], [1]]), arange((3, 4)) % 3 == 0
SPELLED: list[Any] = [
    np.s_[I2],
    np.s_[I2, I2],
    np.s_[I22, I2],
    np.s_[I2, :, I2],
    np.s_[0, :, I2],
    np.s_[:, 0, I2],
    np.s_[:, I2, 0],
    np.s_[I2, None, I2],
    np.s_[I2, ..., 0],
    np.s_[..., I2],
    np.s_[..., I2, I2],
    np.s_[None, 0, None, I2],
    np.s_[1:, ::-2, ..., I2],
    np.s_[:, M34],
    np.s_[..., M34, 0],
    np.s_[I22[0], M34[:2, :2].any(), I2],
    np.s_[M34.any()],
    np.s_[np.array(True)],
    np.s_[np.array(False)],
    np.s_[:, True, I2],
    np.s_[np.array(1), :, I2],
    np.s_[[1, 0]],
    np.s_[[]],
    np.s_[[[0, 1], [1, 1]], 0],
    np.s_[[True, False]],
    np.s_[np.int64(1)],
    np.s_[np.zeros((2, 3, 4, 5), bool)],
]


@pytest.mark.parametrize("index", SPELLED, ids=str)
def test_spelled_out_cases(index: Any) -> None:
    data = arange((2, 3, 4, 5))
    agree(pt.asarray(data)[index], data[index])


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16", "uint16", "uint32", "int64"])
def test_indices_of_any_integer_type(dtype: str) -> None:
    """The size of the axis does not fit int8, nor does a count from the end fit uint8."""
    data = arange((300, 3))
    index = np.array([100, 3]).astype(dtype)
    agree(pt.asarray(data)[pt.asarray(index)], data[index])
    agree(pt.asarray(data)[pt.asarray(index), pt.asarray(index % 3)], data[index, index % 3])


def test_a_tensor_of_one_integer_drops_its_axis() -> None:
    x = pt.asarray(arange((2, 3)))
    agree(x[pt.asarray(1)], arange((2, 3))[1])
    agree(x[pt.asarray(1) : pt.asarray(2)], arange((2, 3))[1:2])


def test_iteration_and_containment() -> None:
    x = pt.asarray([[1, 2], [3, 4]])
    assert [row.tolist() for row in x] == [[1, 2], [3, 4]]
    assert 3 in x
    assert 5 not in x
    assert len(x) == 2
    with pytest.raises(TypeError, match="0-d"):
        iter(x[0, 0])
    with pytest.raises(TypeError, match="0-d"):
        len(x[0, 0])


@pytest.mark.parametrize(
    ("index", "error", "text"),
    [
        (3, IndexOutOfRangeError, "axis 0: got 3, expected -2 <= i < 2"),
        ((0, -4), IndexOutOfRangeError, "axis 1: got -4"),
        ([0, 2], IndexOutOfRangeError, "got 2"),
        (([0, 1], [0, -4]), IndexOutOfRangeError, "got -4, expected -3 <= index < 3"),
        ((0, 0, 0), ArgumentError, "too many indices: got 3, expected at most 2"),
        ((..., ...), ArgumentError, "too many indices: got 2 times '...'"),
        (1.5, ArgumentError, "not an index: got float"),
        ("a", ArgumentError, "not an index: got str"),
        (slice(None, None, 0), ArgumentError, "step cannot be zero"),
        (slice(0.5, None), ArgumentError, "slice indices must be integers"),
        ([0.5], KindError, "index is not Int or Bool: got float64"),
        ([True, False, True], ShapeError, r"mask \(3,\), expected \(2,\)"),
        ([[True, False]], ShapeError, "mask does not fit"),
        (([0, 1], [0, 1, 2]), ShapeError, "do not broadcast"),
    ],
)
def test_what_is_no_index_is_refused(index: Any, error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=text) as caught:
        pt.ones((2, 3))[index]
    assert "[getitem]" in str(caught.value) or "[take]" in str(caught.value)


def test_tensors_never_change() -> None:
    x: Any = pt.ones(3)
    with pytest.raises(TypeError, match=r"hint: x = x.at\[index\].set\(value\)"):
        x[0] = 1.0
