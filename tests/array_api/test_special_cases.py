"""The special cases of the array API standard, from its text."""

from __future__ import annotations

from collections.abc import Sequence
from math import copysign, inf, isnan, nan
from typing import Any

import numpy as np
import pytest

import phlox_tensor as pt
from tests.array_api import special

xp: Any = pt
DTYPES = ("float32", "float64")
each_dtype = pytest.mark.parametrize("dtype", DTYPES)


def agrees(got: float, wanted: float) -> bool:
    if isnan(wanted):
        return isnan(got)
    return got == pytest.approx(wanted, rel=1e-6) and copysign(1.0, got) == copysign(1.0, wanted)


def hold(name: str, rows: Sequence[tuple[tuple[float, ...], float]], dtype: str) -> None:
    operands = [xp.asarray(list(of), dtype=dtype) for of in zip(*_given(rows), strict=True)]
    got = getattr(xp, name)(*operands)
    assert str(got.dtype) == dtype
    for (given, wanted), value in zip(rows, got.tolist(), strict=True):
        assert agrees(value, wanted), f"{name}{given}: {value}, the standard has {wanted}"
        alone = getattr(xp, name)(*(xp.asarray(x, dtype=dtype) for x in given))
        assert agrees(alone.item(), wanted), f"{name}{given} of 0-d: {alone.item()}"


def _given(rows: Sequence[tuple[tuple[float, ...], float]]) -> list[tuple[float, ...]]:
    return [given for given, _ in rows]


@each_dtype
@pytest.mark.parametrize("name", special.FUNCTIONS_OF_ONE)
def test_functions_of_one_number(name: str, dtype: str) -> None:
    rows = [((x,), wanted) for x, wanted in special.FUNCTIONS_OF_ONE[name].items()]
    zeros = special.OF_ZEROS.get(name, ())
    rows += [((x,), wanted) for x, wanted in zip((0.0, -0.0), zeros, strict=False)]
    hold(name, [*rows, ((nan,), nan)], dtype)


@each_dtype
@pytest.mark.parametrize("name", special.FUNCTIONS_OF_TWO)
def test_functions_of_two_numbers(name: str, dtype: str) -> None:
    rows: list[tuple[tuple[float, ...], float]]
    rows = [((a, b), wanted) for a, b, wanted in special.FUNCTIONS_OF_TWO[name]]
    rows += [((nan, 3.0), nan), ((3.0, nan), nan), ((nan, nan), nan)]
    if name not in special.NAN_IS_NOT_ALL and name != "copysign":
        rows += [((nan, inf), nan), ((-inf, nan), nan), ((nan, 0.0), nan)]
    if name == "copysign":  # the size is that of the first alone
        rows = [row for row in rows if not isnan(row[0][1])]
    hold(name, rows, dtype)


@each_dtype
@pytest.mark.parametrize("name", [*special.TRUTHS_OF_ONE, *special.TRUTHS_OF_TWO])
def test_questions(name: str, dtype: str) -> None:
    rows: Any = {**special.TRUTHS_OF_ONE, **special.TRUTHS_OF_TWO}[name]
    *operands, wanted = zip(*rows, strict=True)
    given = [xp.asarray(list(each), dtype=dtype) for each in operands]
    got = getattr(xp, name)(*given)
    assert got.dtype == pt.bool
    assert got.tolist() == list(wanted)


@each_dtype
def test_signs_are_numbers_of_either_zero(dtype: str) -> None:
    assert xp.sign(xp.asarray([0.0, -0.0], dtype=dtype)).tolist() == [0.0, 0.0]


@each_dtype
def test_reductions(dtype: str) -> None:
    none = xp.zeros(0, dtype=dtype)
    for name, wanted in special.OF_NOTHING.items():
        assert agrees(getattr(xp, name)(none).item(), wanted), name
    some = xp.asarray([1.0, nan, 3.0], dtype=dtype)
    for name in special.NAN_WINS:
        assert isnan(getattr(xp, name)(some).item()), name
    for name in ("std", "var"):
        assert isnan(getattr(xp, name)(some[:1], correction=1.0).item()), name
    for name in ("cumulative_prod", "cumulative_sum"):
        assert [isnan(x) for x in getattr(xp, name)(some).tolist()] == [False, True, True], name


@each_dtype
def test_what_counts_as_zero_and_as_equal(dtype: str) -> None:
    x = xp.asarray([nan, -0.0, inf, 0.0, nan], dtype=dtype)
    assert x.astype(pt.bool).tolist() == [True, False, True, False, True]
    assert (xp.all(x[:1]).item(), xp.any(x[1:2]).item()) == (True, False)
    assert xp.count_nonzero(x).item() == 3
    assert xp.nonzero(x)[0].tolist() == [0, 2, 4]
    assert xp.isin(x, xp.asarray([0.0, nan], dtype=dtype)).tolist() == [
        False, True, False, True, False,
    ]  # fmt: skip
    found = xp.unique_counts(x)
    assert sorted(found.counts.tolist()) == [1, 1, 1, 2]  # each nan alone, both zeros as one


@each_dtype
def test_clip(dtype: str) -> None:
    def of(*numbers: float) -> Any:
        return xp.asarray(list(numbers), dtype=dtype)

    assert isnan(xp.clip(of(nan), 0.0, 1.0).item())
    assert isnan(xp.clip(of(0.5), of(nan), of(1.0)).item())
    assert isnan(xp.clip(of(0.5), of(0.0), of(nan)).item())
    assert xp.clip(of(inf, -inf, 0.5), 0.0, 1.0).tolist() == [1.0, 0.0, 0.5]
    assert xp.clip(of(inf, -inf), -inf, inf).tolist() == [inf, -inf]
    assert xp.clip(of(3.0, -3.0)).tolist() == [3.0, -3.0]
    assert xp.clip(of(3.0, -3.0), min=0.0).tolist() == [3.0, 0.0]
    assert xp.clip(of(3.0, -3.0), max=0.0).tolist() == [0.0, -3.0]
    wide = xp.clip(xp.asarray([[1], [9]]), xp.asarray([2, 3]), 5)
    assert wide.tolist() == [[2, 3], [5, 5]]


@pytest.mark.parametrize("name", ["empty_like", "ones_like", "zeros_like"])
def test_like_another(name: str) -> None:
    made = {"ones_like": 1, "zeros_like": 0}
    for dtype in (*DTYPES, "int8", "uint16", "bool"):
        x = xp.zeros((2, 3), dtype=dtype).T
        got = getattr(xp, name)(x)
        assert (got.shape, got.dtype, got.device) == (x.shape, x.dtype, x.device)
        if name in made:
            assert np.array_equal(got.numpy(), np.full((3, 2), made[name]))
        other = getattr(xp, name)(x, dtype="float32", device="numpy")
        assert (str(other.dtype), other.device) == ("float32", pt.Numpy())
