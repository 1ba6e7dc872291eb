"""Whole numbers of few bits, which a device may hold in wider ones."""

from __future__ import annotations

from typing import Any

import phlox_tensor as px
from phlox_tensor import Tensor

from ..read._types import FOUR_BITS, to_type

T = Tensor[Any]


def held(dtype: Any, device: Any) -> Any:
    """The type that a device has for whole numbers of a narrow one."""
    return dtype if dtype in device.dtypes else device.default_int


def limits(dtype: Any, code: int) -> tuple[int, int]:
    """The least and the largest number of a type; ``code`` tells four bits from eight."""
    known = px.iinfo(dtype)
    return FOUR_BITS.get(code, (known.min, known.max))


def four_bits(x: T, code: int) -> T:
    """The low four bits of whole numbers, or of floats without their fraction."""
    low = x.astype(px.int32) & 15
    if FOUR_BITS[code][0] < 0:
        low = (low ^ 8) - 8
    return low.astype(held(to_type(code), x.device))
