"""The functions of the array API standard 2025.12, beside NumPy, over drawn arrays."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import phlox_tensor as pt
from tests.array_api.drawn import (
    ANY,
    FLOATS,
    INTS,
    NUMERIC,
    SIGNED,
    UNSIGNED,
    arrays,
    hold,
    often,
    same,
)

xp: Any = pt
UNARY = {
    "abs": NUMERIC, "acos": FLOATS, "acosh": FLOATS, "asin": FLOATS, "asinh": FLOATS,
    "atan": FLOATS, "atanh": FLOATS, "bitwise_invert": (*INTS, "bool"), "ceil": NUMERIC,
    "cos": FLOATS, "cosh": FLOATS, "exp": FLOATS, "expm1": FLOATS, "floor": NUMERIC,
    "isfinite": NUMERIC, "isinf": NUMERIC, "isnan": NUMERIC, "log": FLOATS, "log10": FLOATS,
    "log1p": FLOATS, "log2": FLOATS, "logical_not": ("bool",), "negative": FLOATS + SIGNED,
    "positive": NUMERIC, "reciprocal": FLOATS, "round": NUMERIC, "sign": NUMERIC,
    "signbit": FLOATS, "sin": FLOATS, "sinh": FLOATS, "sqrt": FLOATS, "square": NUMERIC,
    "tan": FLOATS, "tanh": FLOATS, "trunc": NUMERIC,
}  # fmt: skip
BINARY = {
    "add": NUMERIC, "atan2": FLOATS, "bitwise_and": (*INTS, "bool"), "bitwise_left_shift": INTS,
    "bitwise_or": (*INTS, "bool"), "bitwise_right_shift": INTS, "bitwise_xor": (*INTS, "bool"),
    "copysign": FLOATS, "divide": FLOATS, "equal": ANY, "floor_divide": NUMERIC,
    "greater": NUMERIC, "greater_equal": NUMERIC, "hypot": FLOATS, "less": NUMERIC,
    "less_equal": NUMERIC, "logaddexp": FLOATS, "logical_and": ("bool",), "logical_or": ("bool",),
    "logical_xor": ("bool",), "maximum": NUMERIC, "minimum": NUMERIC, "multiply": NUMERIC,
    "nextafter": FLOATS, "not_equal": ANY, "pow": NUMERIC, "remainder": NUMERIC,
    "subtract": NUMERIC,
}  # fmt: skip
POSITIVE = {"bitwise_left_shift", "bitwise_right_shift", "floor_divide", "pow", "remainder"}


@often
@pytest.mark.parametrize("name", UNARY)
def test_functions_of_one_array(name: str, examples: int) -> None:
    def check(data: st.DataObject) -> None:
        array = data.draw(arrays(data.draw(st.sampled_from(UNARY[name]))))
        with np.errstate(all="ignore"):
            same(getattr(xp, name)(xp.asarray(array)), getattr(np, name)(array))

    hold(examples, check, data=st.data())


@often
@pytest.mark.parametrize("name", BINARY)
def test_functions_of_two_arrays_broadcast(name: str, examples: int) -> None:
    shapes = hnp.mutually_broadcastable_shapes(num_shapes=2, max_dims=3, min_side=0, max_side=3)

    def check(data: st.DataObject) -> None:
        dtype = data.draw(st.sampled_from(BINARY[name]))
        one, two = data.draw(shapes).input_shapes
        low = 1 if name in POSITIVE else -9
        a = data.draw(arrays(dtype, one))
        b = data.draw(arrays(dtype, two, low, 6))
        x, y = xp.asarray(a), xp.asarray(b)
        with np.errstate(all="ignore"):
            want = getattr(np, name)(a, b)
            same(getattr(xp, name)(x, y), want)
            if b.ndim == 0:
                same(getattr(xp, name)(x, b.item()), want)
            if a.ndim == 0 and name != "pow":
                same(getattr(xp, name)(a.item(), y), want)

    hold(examples, check, data=st.data())


@pytest.mark.parametrize("a", ANY)
@pytest.mark.parametrize("b", ANY)
def test_types_promote_by_the_table_of_the_standard(a: str, b: str) -> None:
    kinds = {np.dtype(a).kind.replace("u", "i"), np.dtype(b).kind.replace("u", "i")}
    numbers = np.result_type(np.dtype(a), np.dtype(b))
    if len(kinds) > 1 or (numbers.kind == "f" and a in INTS):
        for call in (xp.result_type, lambda *d: xp.equal(*[xp.zeros(1, dtype=t) for t in d])):
            with pytest.raises(TypeError):
                call(getattr(xp, a), getattr(xp, b))
        assert not xp.can_cast(getattr(xp, a), getattr(xp, b))
        return
    want = getattr(xp, numbers.name)
    x, y = (xp.zeros(2, dtype=getattr(xp, name)) for name in (a, b))
    assert xp.result_type(x, getattr(xp, b)) is want
    assert xp.where(xp.asarray(True), x, y).dtype is want
    assert xp.concat([x, y]).dtype is xp.stack([x, y]).dtype is want
    assert xp.can_cast(x, want)
    assert xp.can_cast(getattr(xp, a), getattr(xp, b)) is (want is getattr(xp, b))


def test_kinds_of_types() -> None:
    table = {
        "bool": ("bool",), "signed integer": SIGNED, "unsigned integer": UNSIGNED,
        "integral": INTS, "real floating": FLOATS, "complex floating": (), "numeric": NUMERIC,
    }  # fmt: skip
    for kind, names in table.items():
        for name in ANY:
            assert xp.isdtype(getattr(xp, name), kind) is (name in names)
            assert xp.isdtype(getattr(xp, name), (kind, xp.bool)) is (name in (*names, "bool"))
    with pytest.raises(ValueError, match="unknown kind"):
        xp.isdtype(xp.float32, "number")
    assert xp.result_type(xp.float32, 1, 2.5) is xp.float32
    for wrong in ((xp.int8, 1.5), (xp.bool, 1), (xp.int8, 300)):
        with pytest.raises(TypeError):
            xp.result_type(*wrong)
    with pytest.raises(ValueError, match="nothing to go by"):
        xp.result_type(1, 2.0)


@pytest.mark.parametrize("name", NUMERIC)
def test_limits_of_types(name: str) -> None:
    dtype = getattr(xp, name)
    ask, fields = (xp.finfo, ("eps", "max", "min", "smallest_normal")), ("max", "min")
    function, names = ask if name in FLOATS else (xp.iinfo, fields)
    want: Any = np.finfo(name) if name in FLOATS else np.iinfo(name)
    for found in (function(dtype), function(xp.ones((2, 2), dtype=dtype))):
        assert found.dtype is dtype
        assert found.bits == want.bits
        for field in names:
            assert type(getattr(found, field)) is (float if name in FLOATS else int)
            assert getattr(found, field) == getattr(want, field)


REDUCTIONS: dict[str, tuple[tuple[str, ...], dict[str, Any]]] = {
    "all": (ANY, {}), "any": (ANY, {}), "count_nonzero": (ANY, {}), "max": (NUMERIC, {}),
    "mean": (FLOATS, {}), "min": (NUMERIC, {}), "prod": (NUMERIC, {}), "std": (FLOATS, {}),
    "sum": (NUMERIC, {}), "var": (FLOATS, {}),
}  # fmt: skip


@often
@pytest.mark.parametrize("name", REDUCTIONS)
def test_reductions(name: str, examples: int) -> None:
    def check(data: st.DataObject) -> None:
        dtype = data.draw(st.sampled_from(REDUCTIONS[name][0]))
        smallest = 1 if name in ("max", "min", "mean", "std", "var") else 0
        shape = hnp.array_shapes(min_dims=1, max_dims=3, min_side=smallest, max_side=4)
        array = data.draw(arrays(dtype, shape, -2, 2))
        axes = st.integers(-array.ndim, array.ndim - 1)
        some = st.lists(axes, unique_by=lambda i: i % array.ndim, max_size=array.ndim)
        axis = data.draw(st.none() | axes | some.map(tuple))
        keepdims = data.draw(st.booleans())
        got = getattr(xp, name)(xp.asarray(array), axis=axis, keepdims=keepdims)
        want = getattr(np, name)(array, axis=axis, keepdims=keepdims)
        if name == "count_nonzero":
            want = np.asarray(want, np.int64)
        same(got, want)

    hold(examples, check, data=st.data())


def test_corrections_types_and_initial_values() -> None:
    array = np.array([[1, 2, 4], [3, 7, 5]], np.float64)
    x = xp.asarray(array)
    same(xp.var(x, axis=1, correction=1.0), np.var(array, axis=1, ddof=1))
    same(xp.std(x, axis=(0, 1), correction=1), np.std(array, ddof=1))
    for name in UNSIGNED:
        n = xp.asarray([200, 100], dtype=getattr(xp, name))
        assert xp.sum(n).dtype is xp.prod(n).dtype is xp.cumulative_sum(n).dtype is xp.uint64
        assert xp.vecdot(n, n).dtype is getattr(xp, name)
    n = xp.asarray([[1, 2], [3, 4]], dtype=xp.int32)
    assert xp.sum(n, dtype=xp.int32).dtype is xp.int32
    assert xp.cumulative_sum(n, axis=0, dtype=xp.float64).dtype is xp.float64
    same(xp.cumulative_sum(n, axis=-1, include_initial=True), np.array([[0, 1, 3], [0, 3, 7]]))
    same(xp.cumulative_prod(n, axis=0, include_initial=True), np.array([[1, 1], [1, 2], [3, 8]]))
    for function in (xp.cumulative_sum, xp.cumulative_prod):
        with pytest.raises(ValueError, match="no axis"):
            function(n)


@often
@pytest.mark.parametrize("name", ["cumulative_prod", "cumulative_sum"])
def test_running_totals(name: str, examples: int) -> None:
    plain: Any = np.cumprod if name == "cumulative_prod" else np.cumsum

    def check(data: st.DataObject) -> None:
        dtype = data.draw(st.sampled_from(NUMERIC))
        shape = hnp.array_shapes(min_dims=1, max_dims=3, min_side=0, max_side=5)
        array = data.draw(arrays(dtype, shape, -2, 2))
        axis = data.draw(st.integers(-array.ndim, array.ndim - 1))
        same(getattr(xp, name)(xp.asarray(array), axis=axis), plain(array, axis=axis))

    hold(examples, check, data=st.data())


@often
def test_sorts_are_stable_in_both_directions(examples: int) -> None:
    def check(data: st.DataObject) -> None:
        dtype = data.draw(st.sampled_from(NUMERIC))
        shape = hnp.array_shapes(min_dims=1, max_dims=3, min_side=0, max_side=5)
        array = data.draw(arrays(dtype, shape, -2, 2))
        axis = data.draw(st.integers(-array.ndim, array.ndim - 1))
        x, stable = xp.asarray(array), data.draw(st.booleans())
        same(xp.sort(x, axis=axis, stable=stable), np.sort(array, axis=axis))
        order = np.argsort(array, axis=axis, kind="stable")
        same(xp.argsort(x, axis=axis, stable=stable), order)
        key = -array.astype(np.float64)
        down = np.argsort(key, axis=axis, kind="stable")
        same(xp.argsort(x, axis=axis, descending=True), down)
        same(xp.sort(x, axis=axis, descending=True), np.take_along_axis(array, down, axis=axis))

    hold(examples, check, data=st.data())


@often
def test_searches(examples: int) -> None:
    def check(data: st.DataObject) -> None:
        dtype = data.draw(st.sampled_from(NUMERIC))
        line = data.draw(arrays(dtype, st.integers(0, 9), -3, 3))
        array = data.draw(arrays(dtype, low=-4, high=4))
        side: Any = data.draw(st.sampled_from(["left", "right"]))
        sorter = np.argsort(line, kind="stable")
        want = np.searchsorted(line, array, side=side, sorter=sorter)
        x, y = xp.asarray(line), xp.asarray(array)
        same(xp.searchsorted(x, y, side=side, sorter=xp.asarray(sorter)), want)
        same(xp.searchsorted(x[xp.asarray(sorter)], y, side=side), want)
        same(xp.isin(y, x), np.isin(array, line))
        same(xp.isin(y, x, invert=True), np.isin(array, line, invert=True))
        if array.ndim:
            for got, places in zip(xp.nonzero(y), np.nonzero(array), strict=True):
                same(got, places)
        same(xp.where(y > 0, y, xp.zeros_like(y)), np.where(array > 0, array, array.dtype.type(0)))
        if array.size:
            same(xp.argmax(y), np.argmax(array))
            same(xp.argmin(y, keepdims=True), np.argmin(array, keepdims=True))

    hold(examples, check, data=st.data())


@often
def test_sets(examples: int) -> None:
    def check(data: st.DataObject) -> None:
        array = data.draw(arrays(data.draw(st.sampled_from(ANY)), low=-2, high=2))
        x = xp.asarray(array)
        values, indices, inverse, counts = np.unique(array, True, True, True)
        everything = xp.unique_all(x)
        assert everything._fields == ("values", "indices", "inverse_indices", "counts")
        inverse = inverse.reshape(array.shape)
        for got, want in zip(everything, (values, indices, inverse, counts), strict=True):
            same(got, want)
        same(xp.unique_values(x), values)
        same(xp.unique_counts(x).counts, counts)
        same(xp.unique_counts(x).values, values)
        same(xp.unique_inverse(x).inverse_indices, inverse)
        same(xp.take(xp.unique_inverse(x).values, inverse_of(x).flatten()), array.flatten())

    def inverse_of(x: Any) -> Any:
        return xp.unique_inverse(x).inverse_indices

    hold(examples, check, data=st.data())


def test_each_nan_is_an_element_of_its_own_and_zeros_are_one() -> None:
    x = xp.asarray([float("nan"), 0.0, -0.0, float("nan")])
    values, counts = xp.unique_counts(x)
    assert counts.tolist() == [2, 1, 1]
    assert np.isnan(values.numpy()).tolist() == [False, True, True]
    assert not xp.isin(x, x).tolist()[0]
    assert xp.searchsorted(xp.sort(x), xp.asarray(float("nan"))).item() == 2
