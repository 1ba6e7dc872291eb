"""``x.at[...]``: the same places as ``x[...]``, updated in a new tensor."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import phlox_tensor as pt
from phlox_tensor import DTypeError, IndexOutOfRangeError, KindError, ShapeError

Array = np.ndarray[Any, Any]
INDICES: list[Any] = [
    np.s_[0],
    np.s_[-1, 2],
    np.s_[1:],
    np.s_[::-2, 1:3],
    np.s_[..., None, 0],
    np.s_[[0, 2]],
    np.s_[[0, 1], [1, 1]],
    np.s_[:, [3, 0]],
    np.s_[np.arange(12).reshape(3, 4) % 2 == 0],
    np.s_[[True, False, True]],
    np.s_[1:1],
    np.s_[()],
    np.s_[...],
]
REPEATED: Any = np.s_[[2, 2, 0]]
UPDATES: dict[str, Any] = {
    "add": np.add,
    "max": np.maximum,
    "min": np.minimum,
    "multiply": np.multiply,
    "subtract": np.subtract,
}


def base() -> Array:
    return np.arange(12, dtype=np.float32).reshape(3, 4) - 5


@pytest.mark.parametrize("name", sorted(UPDATES))
@pytest.mark.parametrize("index", [*INDICES, REPEATED], ids=str)
def test_updates_beside_numpy(index: Any, name: str) -> None:
    """Repeated indices apply each value, as ``ufunc.at`` does."""
    data = base()
    values = np.linspace(-2, 2, data[index].size, dtype=np.float32).reshape(data[index].shape)
    want = data.copy()
    UPDATES[name].at(want, index, values)
    before = pt.asarray(data)
    got = getattr(before.at[index], name)(pt.asarray(values))
    assert np.array_equal(got.numpy(), want)
    assert np.array_equal(before.numpy(), data)


@pytest.mark.parametrize("index", INDICES, ids=str)
def test_set_beside_numpy(index: Any) -> None:
    data = base()
    values = np.linspace(-2, 2, data[index].size, dtype=np.float32).reshape(data[index].shape)
    want = data.copy()
    want[index] = values
    assert np.array_equal(pt.asarray(data).at[index].set(pt.asarray(values)).numpy(), want)
    want[index] = 7
    assert np.array_equal(pt.asarray(data).at[index].set(7).numpy(), want)
    assert np.array_equal(pt.asarray(data).at[index].get().numpy(), data[index])


def test_set_with_repeats_keeps_one_of_the_values() -> None:
    out = pt.zeros(3).at[[1, 1, 1]].set(pt.asarray([5.0, 6.0, 7.0])).tolist()
    assert out[0] == out[2] == 0.0
    assert out[1] in (5.0, 6.0, 7.0)


@given(
    st.lists(st.integers(-4, 3), max_size=12),
    st.sampled_from(sorted(UPDATES)),
    st.sampled_from(["float32", "int64", "int8", "uint8", "float16"]),
)
def test_many_repeats(indices: list[int], name: str, dtype: str) -> None:
    data = np.arange(1, 5).astype(dtype)
    values = (np.arange(len(indices)) % 3).astype(dtype)
    want = data.copy()
    UPDATES[name].at(want, np.array(indices, int), values)
    index = pt.asarray(np.array(indices, int))
    got = getattr(pt.asarray(data).at[index], name)(pt.asarray(values))
    assert got.dtype.name == dtype
    assert np.array_equal(got.numpy(), want)


def test_values_broadcast_to_the_place() -> None:
    x = pt.zeros((2, 3))
    assert x.at[:, 1].set(pt.asarray([1.0])).tolist() == [[0, 1, 0], [0, 1, 0]]
    assert x.at[0].add([1, 2, 3]).tolist() == [[1, 2, 3], [0, 0, 0]]
    assert x.at[0].set(np.float64(2)).tolist() == [[2, 2, 2], [0, 0, 0]]
    with pytest.raises(ShapeError, match="broadcast"):
        x.at[0].set([1.0, 2.0])


def test_values_take_the_type_of_the_tensor() -> None:
    narrow = pt.zeros(2, dtype="float16").at[0].set(pt.asarray(2.0))
    assert narrow.dtype is pt.float16
    ints = pt.asarray([1, 2])
    assert ints.at[0].set(True).tolist() == [1, 2]
    assert pt.asarray([True, False]).at[1].set(True).tolist() == [True, True]


@pytest.mark.parametrize(
    ("x", "values", "error"),
    [
        ([1, 2], 1.5, KindError),
        ([1, 2], [1.0], KindError),
        ([1, 2], np.ones(1, np.float32), KindError),
        ([True, False], 1, KindError),
        ([1.0, 2.0], np.ones(1, np.int64), KindError),
        ([1.0, 2.0], "a", DTypeError),
    ],
)
def test_values_of_another_kind_are_refused(x: Any, values: Any, error: type[Exception]) -> None:
    with pytest.raises(error, match=r"^\["):
        pt.asarray(x).at[0].set(values)


def test_numbers_out_of_range_are_refused() -> None:
    with pytest.raises(DTypeError, match="do not fit"):
        pt.asarray([1], dtype="uint8").at[0].set(300)
    with pytest.raises(DTypeError, match=r'hint: values.astype\("uint8"\)'):
        pt.asarray([1], dtype="uint8").at[0].set(pt.asarray(5))
    with pytest.raises(IndexOutOfRangeError):
        pt.zeros(2).at[2].set(1.0)
    with pytest.raises(IndexOutOfRangeError):
        pt.zeros(2).at[[0, 2]].add(1.0)


def test_an_update_of_another_name_says_what_to_type() -> None:
    with pytest.raises(pt.UnknownNameError, match=r"x\.at\[index\]\.multiply\(values\)"):
        pt.ones(3).at[0].mul(2.0)
    with pytest.raises(AttributeError, match="hint"):
        pt.ones(3).at[0].divide(2.0)


@pytest.mark.parametrize("mask_shape", [(3, 4), (3,), (), (0, 4)])
@pytest.mark.parametrize("values", [2.5, [1.0, 2.0, 3.0, 4.0]])
def test_updates_by_a_mask_are_those_of_numpy(mask_shape: Any, values: Any) -> None:
    random = np.random.default_rng(0)
    x = random.normal(size=(0, 4) if mask_shape == (0, 4) else (3, 4))
    mask = np.asarray(random.random(mask_shape) > 0.5)
    if mask.ndim == 2 and isinstance(values, list):
        values = values[: int(mask.sum())] + [5.0] * max(0, int(mask.sum()) - 4)
    changes: dict[str, Any] = {
        "set": lambda a, v: v,
        "add": np.add,
        "subtract": np.subtract,
        "multiply": np.multiply,
        "min": np.minimum,
        "max": np.maximum,
    }
    for name, change in changes.items():
        want = x.copy()
        want[mask] = change(want[mask], np.asarray(values))
        found = getattr(pt.asarray(x).at[pt.asarray(mask)], name)(pt.asarray(values))
        assert np.array_equal(found.numpy(), want), name


@pytest.mark.parametrize("index", [np.s_[1:3], np.s_[2], np.s_[..., 0], np.s_[[0, 2, 0]]])
@pytest.mark.parametrize("update", ["add", "multiply", "set", "subtract"])
def test_an_update_of_a_part_makes_no_numbers_of_the_whole(index: Any, update: str) -> None:
    with pt.Profile(pt.Numpy()) as device:
        x = pt.ones((40, 50), device=device)
        _ = getattr(x.at[index], update)(2.0)
    ops = {call.op for call in device.calls}
    assert "arange" not in ops
    assert "nonzero" not in ops


def test_what_would_change_a_tensor_says_what_to_type() -> None:
    x: Any = pt.asarray([1.0, 2.0, 3.0])
    with pytest.raises(TypeError, match=r"hint: x = x.at\[index\].set\(value\)"):
        x.at[0] = 5.0
    with pytest.raises(TypeError, match=r"\[delitem\] tensors never change\nhint: px.concat"):
        del x[0]


@pytest.mark.parametrize("update", ["add", "set"])
def test_the_hint_for_another_kind_loses_nothing(update: str) -> None:
    kinds = {name: pt.ones(2, dtype=name) for name in ("bool", "int32", "float32")}
    order = list(kinds)
    for name, x in kinds.items():
        for other, values in kinds.items():
            if other == name:
                continue
            with pytest.raises(KindError, match="values of another kind") as caught:
                _ = getattr(x.at[0], update)(values[0])
            hint = str(caught.value.hint)
            wider = order.index(other) > order.index(name)
            assert hint == (f'x.astype("{other}")' if wider else f'values.astype("{name}")')
            held = {"x": x, "values": values}
            held |= {hint.partition(".")[0]: eval(hint, {"x": x, "values": values})}
            _ = getattr(held["x"].at[0], update)(held["values"][0])


def test_an_update_that_nobody_keeps_warns_on_its_line() -> None:
    x = pt.zeros((3,))
    for update in (x.at[0].set, x.at[0].subtract):
        with pytest.warns(UserWarning, match=r"\[at\] the new tensor is thrown away") as caught:
            update(1.0)
        assert [each.filename for each in caught] == [__file__]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        kept = x.at[0].set(1.0)
        assert x.at[1].add(kept[0]).tolist() == [0.0, 1.0, 0.0]
