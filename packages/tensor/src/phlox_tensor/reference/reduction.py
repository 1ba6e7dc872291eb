"""Reductions by the numeric spec: narrow floats accumulate in float32 or wider."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ._precision import is_float, wide64, widen
from .unary import cast

Array = np.ndarray[Any, Any]

Axes = tuple[int, ...]


def pairwise_sum(wide: Array, axis: Axes, keepdims: bool) -> Array:
    """Sum over axes; NumPy adds in pairs only along the last axis of contiguous data."""
    kept = [i for i in range(wide.ndim) if i not in axis]
    rows = np.ascontiguousarray(wide.transpose(*kept, *axis))
    rows = rows.reshape([wide.shape[i] for i in kept] + [math.prod(wide.shape[i] for i in axis)])
    out = np.asarray(np.sum(rows, axis=-1, dtype=wide.dtype))
    shape = [1 if i in axis else n for i, n in enumerate(wide.shape)]
    return out.reshape(shape) if keepdims else out


def in_sum_type(x: Array, dtype: Any) -> Array:
    """The terms of a sum, in its type or a wider one."""
    if dtype.kind != "Float":
        return cast(x, dtype)
    if not is_float(x):
        return x.astype(np.float64)
    return widen(x.astype(dtype.numpy) if x.dtype.itemsize < dtype.itemsize else x)


def total(x: Array, axis: Axes, keepdims: bool, dtype: Any) -> Array:
    return pairwise_sum(in_sum_type(x, dtype), axis, keepdims).astype(dtype.numpy)


def product(x: Array, axis: Axes, keepdims: bool, dtype: Any) -> Array:
    wide = in_sum_type(x, dtype)
    out = np.prod(wide, axis=axis, keepdims=keepdims, dtype=wide.dtype)
    return np.asarray(out).astype(dtype.numpy)


def mean(x: Array, axis: Axes, keepdims: bool) -> Array:
    wide = widen(x)
    count = int(np.prod([x.shape[i] for i in axis]))
    with np.errstate(invalid="ignore", divide="ignore"):
        total = pairwise_sum(wide, axis, keepdims)
        return np.asarray(total / wide.dtype.type(count)).astype(x.dtype)


def extreme(function: Any) -> Any:
    def apply(x: Array, axis: Axes, keepdims: bool) -> Array:
        return function(widen(x), axis=axis, keepdims=keepdims).astype(x.dtype)

    return apply


def truth(function: Any) -> Any:
    def apply(x: Array, axis: Axes, keepdims: bool) -> Array:
        return np.asarray(function(x, axis=axis, keepdims=keepdims))

    return apply


def count_nonzero(x: Array, axis: Axes, keepdims: bool) -> Array:
    return np.asarray(np.count_nonzero(x, axis=axis, keepdims=keepdims))


def arg(function: Any) -> Any:
    def apply(x: Array, axis: int | None, keepdims: bool) -> Array:
        return np.asarray(function(widen(x), axis=axis, keepdims=keepdims))

    return apply


def logsumexp(x: Array, axis: tuple[int, ...], keepdims: bool) -> Array:
    wide = widen(x)
    top = np.max(wide, axis=axis, keepdims=True, initial=-np.inf)
    safe = np.where(np.isinf(top), 0, top)
    with np.errstate(divide="ignore"):
        out = np.log(np.sum(np.exp(wide - safe), axis=axis, keepdims=True)) + safe
    return (out if keepdims else np.squeeze(out, axis)).astype(x.dtype)


def wide_mean(wide: Array, axis: Axes) -> Array:
    """Means along axes, which stay, of elements that are summed in their own type."""
    return pairwise_sum(wide, axis, keepdims=True) / math.prod(wide.shape[i] for i in axis)


def centered(x: Array, axis: Axes) -> tuple[Array, Array]:
    """Means along axes, which stay, and distances from them, in float64.

    What rounding took from a mean is in all distances alike, so their own mean gives it back.
    """
    wide = wide64(x)
    middle = wide_mean(wide, axis)
    gaps = wide - middle
    rest = wide_mean(gaps, axis)
    rest = np.where(np.isfinite(rest), rest, 0)
    return middle + rest, gaps - rest


def var(x: Array, axis: Axes, correction: float, keepdims: bool) -> Array:
    count = math.prod(x.shape[i] for i in axis)
    _, gaps = centered(x, axis)
    squares = pairwise_sum(gaps**2, axis, keepdims)
    return np.asarray(squares / np.float64(max(count - correction, 0))).astype(x.dtype)


def std(x: Array, axis: Axes, correction: float, keepdims: bool) -> Array:
    with np.errstate(invalid="ignore"):
        return np.asarray(np.sqrt(var(wide64(x), axis, correction, keepdims))).astype(x.dtype)


def vector_norm(x: Array, axis: Axes, keepdims: bool) -> Array:
    wide = x.astype(np.float64)
    # Powers of 2, so that squares stay in range and nothing is rounded.
    power = np.frexp(np.max(np.abs(wide), axis=axis, keepdims=True, initial=0.0))[1].clip(
        -1000, 1000
    )
    lengths = np.sqrt(np.square(np.ldexp(wide, -power)).sum(axis=axis, keepdims=True))
    found = np.ldexp(lengths, power)
    return np.asarray(found if keepdims else found.squeeze(axis)).astype(x.dtype)
