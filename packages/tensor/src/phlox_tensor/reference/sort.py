"""Sorts: stable, nan last in both directions."""

from __future__ import annotations

from typing import Any

import numpy as np

from ._precision import is_float, widen

Array = np.ndarray[Any, Any]


def argsort(x: Array, axis: int, descending: bool) -> Array:
    wide = widen(x)
    if not descending:
        return np.argsort(wide, axis=axis, kind="stable")
    if not is_float(x):
        # Reverse twice keeps equal elements in their order.
        flipped = np.argsort(np.flip(wide, axis), axis=axis, kind="stable")
        return np.flip(wide.shape[axis] - 1 - flipped, axis)
    return np.argsort(-wide, axis=axis, kind="stable")  # nan stays last


def sort(x: Array, axis: int, descending: bool) -> Array:
    return np.take_along_axis(x, argsort(x, axis, descending), axis=axis)


def topk(x: Array, k: int, axis: int, largest: bool) -> tuple[Array, Array]:
    indices = np.take(argsort(x, axis, largest), np.arange(k), axis=axis)
    return np.take_along_axis(x, indices, axis=axis), indices


def searchsorted(x1: Array, x2: Array, side: Any) -> Array:
    return np.asarray(np.searchsorted(widen(x1), widen(x2), side))


def isin(x1: Array, x2: Array, invert: bool) -> Array:
    return np.isin(widen(x1), widen(x2), invert=invert)  # bfloat16 has no order of nan
