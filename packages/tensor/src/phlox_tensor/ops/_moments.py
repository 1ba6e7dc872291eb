"""Means, and distances from them, for formulas of norms and variances."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .._tensor import Tensor


def centered(x: Tensor, axis: int | tuple[int, ...]) -> tuple[Tensor, Tensor]:
    """Means along axes, which stay, and distances from them, both in full precision.

    What rounding took from a mean is in all distances alike, so their own mean gives it back.
    """
    wide = x.to_full_precision()
    middle = wide.mean(axis=axis, keepdims=True)
    gaps = wide - middle
    rest = gaps.mean(axis=axis, keepdims=True)
    rest = rest.isfinite().where(rest, 0.0)
    return middle + rest, gaps - rest
