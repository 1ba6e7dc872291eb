"""Reductions, scans and sorts by the numeric spec: narrow floats accumulate in float32."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]
Axes = tuple[int, ...]


def _is_float(x: Array) -> bool:
    return x.dtype.kind == "f" or x.dtype.name == "bfloat16"


def widen(x: Array) -> Array:
    """The array in the type that sums accumulate in."""
    return x.astype(np.float32) if _is_float(x) and x.dtype.itemsize < 4 else x


def pairwise_sum(wide: Array, axis: Axes, keepdims: bool) -> Array:
    """Sum over axes; NumPy adds in pairs only along the last axis of contiguous data."""
    kept = [i for i in range(wide.ndim) if i not in axis]
    rows = np.ascontiguousarray(wide.transpose(*kept, *axis))
    rows = rows.reshape([wide.shape[i] for i in kept] + [math.prod(wide.shape[i] for i in axis)])
    out = np.asarray(np.sum(rows, axis=-1, dtype=wide.dtype))
    shape = [1 if i in axis else n for i, n in enumerate(wide.shape)]
    return out.reshape(shape) if keepdims else out


def total(x: Array, axis: Axes, keepdims: bool, dtype: Any) -> Array:
    wide = widen(x) if dtype.kind == "Float" else x.astype(dtype.numpy)
    return pairwise_sum(wide, axis, keepdims).astype(dtype.numpy)


def product(x: Array, axis: Axes, keepdims: bool, dtype: Any) -> Array:
    wide = widen(x) if dtype.kind == "Float" else x.astype(dtype.numpy)
    return np.prod(wide, axis=axis, keepdims=keepdims, dtype=wide.dtype).astype(dtype.numpy)


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


def arg(function: Any) -> Any:
    def apply(x: Array, axis: int | None, keepdims: bool) -> Array:
        return np.asarray(function(widen(x), axis=axis, keepdims=keepdims))

    return apply


def cumsum(x: Array, axis: int) -> Array:
    wide = widen(x)
    return np.cumsum(wide, axis=axis, dtype=wide.dtype).astype(x.dtype)


def argsort(x: Array, axis: int, descending: bool) -> Array:
    wide = widen(x)
    if not descending:
        return np.argsort(wide, axis=axis, kind="stable")
    if not _is_float(x):
        # Reverse twice keeps equal elements in their order.
        flipped = np.argsort(np.flip(wide, axis), axis=axis, kind="stable")
        return np.flip(wide.shape[axis] - 1 - flipped, axis)
    return np.argsort(-wide, axis=axis, kind="stable")  # nan stays last


def sort(x: Array, axis: int, descending: bool) -> Array:
    return np.take_along_axis(x, argsort(x, axis, descending), axis=axis)


def topk(x: Array, k: int, axis: int, largest: bool) -> tuple[Array, Array]:
    indices = np.take(argsort(x, axis, largest), np.arange(k), axis=axis)
    return np.take_along_axis(x, indices, axis=axis), indices
