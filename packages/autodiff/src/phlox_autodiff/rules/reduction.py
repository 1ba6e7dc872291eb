"""Derivatives of reductions."""

from __future__ import annotations

from math import inf, prod
from typing import Final

from phlox_tensor import DType, Tensor, concat, stack

from .._rule import Rule, none
from .._unchecked import broadcast

Shape = tuple[int, ...]

Axes = tuple[int, ...]
_PLACE = none("the result is an index")
_TRUTH = none("the result is Bool")


def kept(shape: Shape, axis: Axes) -> Shape:
    """The shape that a reduction leaves with ``keepdims``."""
    return tuple(1 if i in axis else n for i, n in enumerate(shape))


def spread(g: Tensor, shape: Shape, axis: Axes) -> Tensor:
    """See a reduced tensor with the shape from before the reduction."""
    given = g.shape
    if given:  # one number broadcasts as it is
        line = kept(shape, axis)
        g = g if given == line else g.reshape(line)
    return broadcast(g, shape)


def _count(shape: Shape, axis: Axes) -> int:
    return prod(shape[i] for i in axis)


def times(g: Tensor, factor: float) -> Tensor:
    """``g·factor``, with no factor in float16: counts from 65,520 on are infinite there."""
    return (g.to_full_precision() * factor).astype(g.dtype)


def _mean(g: Tensor, x_shape: Shape, axis: Axes) -> Tensor:
    return spread(times(g, 1 / max(_count(x_shape, axis), 1)), x_shape, axis)


def _gaps(x: Tensor, axis: Axes) -> Tensor:
    """Distances from the mean in full precision; theirs is what rounding took from the mean."""
    wide = x.to_full_precision()
    gaps = wide - wide.mean(axis=axis, keepdims=True)
    return gaps - gaps.mean(axis=axis, keepdims=True)


def _var(g: Tensor, x: Tensor, axis: Axes, correction: float) -> Tensor:
    free = max(_count(x.shape, axis) - correction, 0)
    scale = g.to_full_precision() * (2 / free if free else inf)
    return (_gaps(x, axis) * scale.reshape(kept(x.shape, axis))).astype(x.dtype)


def _std(g: Tensor, x: Tensor, y: Tensor, axis: Axes, correction: float) -> Tensor:
    """0 where all elements are equal, which is where there is no derivative."""
    free = max(_count(x.shape, axis) - correction, 0)
    none, length = y == 0, y.to_full_precision()
    scale = none.where(0.0, g.to_full_precision() / (none.where(1.0, length) * free))
    return (_gaps(x, axis) * scale.reshape(kept(x.shape, axis))).astype(x.dtype)


def _extreme(g: Tensor, x: Tensor, y: Tensor, axis: Axes) -> Tensor:
    """Shared evenly among the elements that are the largest or smallest."""
    line, wide = kept(x.shape, axis), g.to_full_precision()
    won = (x == y.reshape(line)).astype(wide.dtype)
    return (won * (wide.reshape(line) / won.sum(axis=axis, keepdims=True))).astype(g.dtype)


def _logsumexp(g: Tensor, x: Tensor, axis: Axes) -> Tensor:
    """``g · softmax(x)``; shared evenly among elements of inf, and 0 in a group of -inf.

    The result is rounded, far from 0 by more than what is added: the largest element is not.
    """
    if not _count(x.shape, axis):
        return x.zeros()
    wide = x.to_full_precision()
    top = wide.max(axis=axis, keepdims=True).detach()
    parts = (wide == inf).where(0.0, wide - (top == -inf).where(0.0, top)).exp()
    total = parts.sum(axis=axis, keepdims=True)
    share = g.to_full_precision().reshape(total.shape) / (total == 0).where(1.0, total)
    return (parts * share).astype(g.dtype)


def _vector_norm(g: Tensor, x: Tensor, y: Tensor, axis: Axes) -> Tensor:
    """``g·x / y``; 0 where the length is, which is where there is no derivative."""
    y = y.reshape(kept(x.shape, axis))
    origin = y == 0
    return origin.where(0.0, x / origin.where(1.0, y)) * g.reshape(y.shape)


def _prod(g: Tensor, x: Tensor, axis: Axes, x_dtype: DType) -> Tensor:
    """``g`` times the product of the other elements, by a tree of products: zeros need no care.

    Upwards, neighbors are multiplied; downwards, each is given what all the others make.
    """
    others = [i for i in range(x.ndim) if i not in axis]
    order = (*others, *axis)
    front = tuple(x.shape[i] for i in others)
    n = _count(x.shape, axis)
    if n == 0 or x.size == 0:
        return x.zeros()
    level = x.permute_dims(order).reshape((*front, n)).astype(g.dtype)
    levels = []
    while level.shape[-1] > 1:
        if level.shape[-1] % 2:
            one = level.zeros((*front, 1)) + 1
            level = concat([level, one], axis=-1)
        levels.append(level)
        level = level[..., 0::2] * level[..., 1::2]
    down = g.reshape((*front, 1))
    for level in reversed(levels):
        size = level.shape[-1]
        down = down[..., : size // 2]
        pairs = stack([down * level[..., 1::2], down * level[..., 0::2]], axis=-1)
        down = pairs.reshape((*front, size))
    back = tuple(order.index(i) for i in range(x.ndim))
    shape = tuple(x.shape[i] for i in order)
    return down[..., :n].reshape(shape).permute_dims(back).astype(x_dtype)


def _sum(g: Tensor, x_shape: Shape, x_dtype: DType, axis: Axes) -> Tensor:
    return spread(g if g.dtype is x_dtype else g.astype(x_dtype), x_shape, axis)


RULES: Final[dict[str, Rule]] = {
    "all": _TRUTH,
    "any": _TRUTH,
    "argmax": _PLACE,
    "argmin": _PLACE,
    "count_nonzero": none("the result is a count"),
    "logsumexp": _logsumexp,
    "max": _extreme,
    "mean": _mean,
    "min": _extreme,
    "prod": _prod,
    "std": _std,
    "sum": _sum,
    "var": _var,
    "vector_norm": _vector_norm,
}
