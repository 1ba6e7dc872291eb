"""Norms of any order, scaled so that no power overflows where the norm does not."""

from __future__ import annotations

from math import inf, prod

from .._values.dtype import finfo
from .._values.tensor import Tensor


def scale_of(leading: Tensor) -> Tensor:
    """What to divide elements by before they are raised: the one that leads the sum of powers.

    That is the largest, for an order below 0 the smallest; no 0 and nothing infinite.
    """
    bounds = finfo(leading.dtype)
    return leading.detach().clip(bounds.smallest_normal, bounds.max)


def root_of(powers: Tensor, p: float) -> Tensor:
    """The p-th root; its derivative is 0 where they are 0."""
    none = powers == 0
    safe = none.where(1.0, powers)
    return none.where(0.0 if p > 0 else inf, safe.sqrt() if p == 2 else safe ** (1 / p))


def powers_of(part: Tensor, p: float) -> Tensor:
    """p-th powers; for orders below 1 their derivative is 0 at 0, where it would be infinite."""
    if p == 2:
        return part.square()
    if p > 1:
        return part**p
    none = part == 0
    return none.where(0.0 if p > 0 else inf, none.where(1.0, part) ** p)


def p_norm(size: Tensor, axis: tuple[int, ...], p: float, *, keepdims: bool = False) -> Tensor:
    """The p-norm of absolute values along axes; its derivative is 0 where it is 0."""
    some = prod(size.shape[i] for i in axis) > 0
    if p in (inf, -inf) and some:
        return (size.max if p > 0 else size.min)(axis=axis, keepdims=keepdims)
    if p in (1, inf) or not some:
        found = size.sum(axis=axis, keepdims=keepdims)
        return found + inf if p < 0 else found  # of nothing 0, and 0 ** (1 / p)
    if p == 0:
        return (size != 0).astype(size.dtype).sum(axis=axis, keepdims=keepdims)
    kept = keepdims or len(axis) < size.ndim  # one scale for all broadcasts as it is
    scale = scale_of((size.max if p > 0 else size.min)(axis=axis, keepdims=kept))
    part = size / scale
    powers = powers_of(part, p).sum(axis=axis, keepdims=kept)
    out = root_of(powers, p) * scale
    return out if kept == keepdims else out.squeeze(axis)
