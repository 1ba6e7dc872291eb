"""Reductions, scans and sorts by the numeric spec: narrow floats accumulate in float32."""

from __future__ import annotations

from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]
Axes = tuple[int, ...]


def _is_float(x: Array) -> bool:
    return x.dtype.kind == "f" or x.dtype.name == "bfloat16"


def widen(x: Array) -> Array:
    """The array in the type that sums accumulate in."""
    return x.astype(np.float32) if _is_float(x) and x.dtype.itemsize < 4 else x  # noqa: PLR2004


def total(x: Array, axis: Axes, keepdims: bool, dtype: Any) -> Array:
    wide = widen(x) if dtype.kind == "Float" else x.astype(dtype.numpy)
    return np.sum(wide, axis=axis, keepdims=keepdims, dtype=wide.dtype).astype(dtype.numpy)


def product(x: Array, axis: Axes, keepdims: bool, dtype: Any) -> Array:
    wide = widen(x) if dtype.kind == "Float" else x.astype(dtype.numpy)
    return np.prod(wide, axis=axis, keepdims=keepdims, dtype=wide.dtype).astype(dtype.numpy)


def mean(x: Array, axis: Axes, keepdims: bool) -> Array:
    wide = widen(x)
    count = int(np.prod([x.shape[i] for i in axis]))
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.asarray(
            np.sum(wide, axis=axis, keepdims=keepdims) / wide.dtype.type(count)
        ).astype(x.dtype)


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
