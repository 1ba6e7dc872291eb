"""Checks of lengths, labels and counts: whole numbers, in a type that holds them, in range."""

from __future__ import annotations

from typing import Any

from .._data.creation import arange
from .._errors.classes import IndexOutOfRangeError, KindError
from .._values.kinds import Int
from .._values.tensor import Tensor


def whole_counts(op: str, name: str, numbers: Tensor[Any]) -> Tensor[Int]:
    """The same tensor, once its elements are known to be whole numbers.

    Raises:
        KindError: a tensor of floats or of truth values, which would be cut.
    """
    if numbers.dtype.kind != "Int":
        raise KindError(
            op,
            f"{name} are no whole numbers",
            got=numbers.dtype,
            expected="an integer type",
            hint=f"{name}.astype({numbers.device.default_int})",
        )
    return numbers


def widened(numbers: Tensor[Int], most: int) -> Tensor[Int]:
    """The same numbers in a signed type wide enough to count in; above ``most`` they stay so."""
    wide = numbers.device.default_int
    if numbers.dtype.itemsize >= wide.itemsize:
        if numbers.dtype.signed:
            return numbers
        numbers = numbers.minimum(most + 1)
    return numbers.astype(wide)


def held(op: str, name: str, numbers: Tensor[Int], most: int) -> Tensor[Int]:
    """The same numbers, widened and looked up, so that one outside ``0..most`` is an error."""
    wide = widened(numbers, most)
    table: Tensor[Int] = arange(most + 1, dtype=wide.dtype, device=wide.device)
    try:  # a number below 0 would count from the end, so it is moved by all that do
        return table.take((wide < 0).where(wide - (most + 1), wide), axis=0)
    except IndexOutOfRangeError as error:
        got = str(error.got)
    if got.startswith("-") and got[1:].isdigit():
        got = str(int(got) + most + 1)
    what, expected = f"{name} out of range", f"0 <= {name} <= {most}"
    raise IndexOutOfRangeError(op, what, got=got, expected=expected)
