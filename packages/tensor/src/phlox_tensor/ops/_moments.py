"""Means, and distances from them, for formulas of norms and variances."""

from __future__ import annotations

from math import prod

from .._values.dtype import finfo
from .._values.tensor import Tensor

Axes = int | tuple[int, ...]


def centered(x: Tensor, axis: Axes) -> tuple[Tensor, Tensor]:
    """Means along axes, which stay, and distances from them, both in full precision.

    What rounding took from a mean is in all distances alike, so their own mean gives it back.
    """
    wide = x.to_full_precision()
    middle = wide.mean(axis=axis, keepdims=True)
    gaps = wide - middle
    rest = gaps.mean(axis=axis, keepdims=True)
    rest = rest.isfinite().where(rest, 0.0)
    return middle + rest, gaps - rest


def ranged(x: Tensor, axis: Axes) -> tuple[Tensor, Tensor]:
    """Rows by powers of 2 that keep their squares in the range of the type, and those powers.

    They are 1 but for rows of large elements; nothing is rounded.
    """
    dims = (axis,) if isinstance(axis, int) else axis
    if prod(x.shape[i] for i in dims):
        largest = x.detach().abs().max(axis=axis, keepdims=True)
    else:
        largest = x.sum(axis=axis, keepdims=True)
    # The largest floats, 2^128 and 2^1024, then have squares of 2^96 and 2^848: many add up.
    limit, least = (400, -600) if finfo(x.dtype).bits == 64 else (40, -80)
    power = (largest > 2.0**limit).where(2.0**least, x.zeros(()) + 1)
    return x * power, power
