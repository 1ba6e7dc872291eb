"""Calls of mixed types and of indices: few Python functions after the first, the same values."""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import FrameType
from typing import Any

import numpy as np
import pytest

import phlox as px
from phlox import Cpu, Tensor

CPU = Cpu()
ARRAY = np.arange(12, dtype=np.float32).reshape(3, 4)
WIDE, MASK, PLACES = ARRAY.astype(np.float64), ARRAY > 4, np.asarray([0, 2, 1])

CALLS: dict[str, Callable[[Any, Any, Any, Any], Any]] = {
    "float32 + float64": lambda x, wide, mask, i: x + wide,
    "float64 < float32": lambda x, wide, mask, i: wide < x,
    "where of two types": lambda x, wide, mask, i: (
        np.where(mask, x, wide) if isinstance(x, np.ndarray) else px.where(mask, x, wide)
    ),
    "x[:, i]": lambda x, wide, mask, i: x[:, i],
    "x[::-1, None, i]": lambda x, wide, mask, i: x[::-1, None, i],
    "x[i, 1]": lambda x, wide, mask, i: x[i, 1],
    "x[i, i]": lambda x, wide, mask, i: x[i, i],
    "x[i]": lambda x, wide, mask, i: x[i],
    "x[mask]": lambda x, wide, mask, i: x[mask],
}


def _functions(call: Callable[[], object]) -> int:
    """How many Python functions a call runs."""
    count = -2  # the test's own

    def seen(frame: FrameType, event: str, argument: object) -> None:
        nonlocal count
        count += event == "call"

    sys.setprofile(seen)
    try:
        call()
    finally:
        sys.setprofile(None)
    return count


def _given() -> tuple[Tensor[Any], ...]:
    return tuple(px.asarray(array, device=CPU) for array in (ARRAY, WIDE, MASK, PLACES))


@pytest.mark.parametrize("name", CALLS)
def test_a_known_call_is_at_most_a_handful_of_functions(name: str) -> None:
    run, given = CALLS[name], _given()
    expected = run(ARRAY, WIDE, MASK, PLACES)
    for _ in range(3):
        found = run(*given).numpy()
        assert found.shape == expected.shape
        assert found.dtype == expected.dtype
        np.testing.assert_array_equal(found, expected)
    assert _functions(lambda: run(*given)) <= 5


def test_operands_of_one_call_do_not_decide_for_another() -> None:
    x, wide, mask, i = _given()
    for _ in range(2):
        assert (x + wide).dtype is px.float64
        assert (x + x).dtype is px.float32
        assert px.concat([x, wide]).dtype is px.float64
        assert px.concat([wide, x]).dtype is px.float64
        assert px.concat([x, x]).dtype is px.float32
        assert x[mask].tolist() == ARRAY[MASK].tolist()
        assert x[x < 3].tolist() == [0.0, 1.0, 2.0]
        assert x[i[:2]].shape == (2, 4)
        with pytest.raises(px.IndexOutOfRangeError):
            x[i + 5]
        with pytest.raises(px.KindError):
            x[wide]
        with pytest.raises(px.KindError):
            _ = x + i


def test_a_numpy_number_beside_a_tensor_is_a_number() -> None:
    x = _given()[0]
    numbers: tuple[Any, ...] = (np.float32(2), np.float64(2), np.int64(2), np.asarray(2.0))
    for number in numbers:
        assert (x * number).dtype is px.float32
        assert (number * x).tolist() == (ARRAY * 2).tolist()
        assert (x == number).tolist() == (ARRAY == 2).tolist()
    with pytest.raises(px.DTypeError, match="no tensor is complex"):
        x + np.complex64(1)  # type: ignore[operator]


def test_the_axes_of_any_rank_are_reversed() -> None:
    for shape in ((), (3,), (3, 4), (2, 3, 4)):
        x = px.arange(int(np.prod(shape)), device=CPU).reshape(shape)
        for _ in range(2):
            assert x.T.tolist() == x.numpy().T.tolist()
