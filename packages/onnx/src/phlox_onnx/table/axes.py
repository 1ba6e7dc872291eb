"""What attributes say of axes, looked at before it is used."""

from __future__ import annotations

from typing import Any

import phlox_tensor as px
from phlox_tensor import Tensor

from .._errors import OnnxError
from ._row import Ints


def index_type(x: Tensor[Any]) -> Any:
    """The type of places and counts on the device of a tensor: int64 where it has that."""
    return px.int64 if px.int64 in x.device.dtypes else x.device.default_int


def axis_of(op: str, axis: int, rank: int) -> int:
    """An axis counted from the first one.

    Raises:
        OnnxError: when there is none.
    """
    if not -rank <= axis < rank:
        raise OnnxError(op, "axis out of range", got=axis, expected=f"-{rank} <= axis < {rank}")
    return axis % rank


def each_axis(op: str, given: Ints | None, count: int, default: int) -> Ints:
    """A number for each axis, or for each side of each.

    Raises:
        OnnxError: when there are more or fewer.
    """
    if given and len(given) != count:
        raise OnnxError(op, "not a number for each axis", got=given, expected=f"{count} of them")
    return given or (default,) * count
