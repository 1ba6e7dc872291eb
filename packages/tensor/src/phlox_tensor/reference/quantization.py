"""Integers times a scale, by NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np

from ._precision import widen

Array = np.ndarray[Any, Any]


def _spread(scale: Array, shape: tuple[int, ...], axis: int | None) -> Array:
    if not scale.ndim:
        return scale
    if axis is not None:
        return scale.reshape([n if i == axis else 1 for i, n in enumerate(shape)])
    for i, n in enumerate(shape):
        scale = np.repeat(scale, n // scale.shape[i] if n else 1, axis=i)
    return scale


def dequantize(x: Array, scale: Array, zero_point: Array | None, axis: int | None) -> Array:
    wide = widen(scale)
    out = x.astype(wide.dtype)
    if zero_point is not None:
        out = out - _spread(zero_point.astype(wide.dtype), x.shape, axis)
    return (out * _spread(wide, x.shape, axis)).astype(scale.dtype)


def quantize(
    x: Array, scale: Array, zero_point: Array | None, axis: int | None, bits: int, dtype: Any
) -> Array:
    wide = widen(x)
    out = np.round(wide / _spread(widen(scale), x.shape, axis))
    if zero_point is not None:
        out = out + _spread(zero_point.astype(wide.dtype), x.shape, axis)
    low = -(1 << bits) // 2 if dtype.signed else 0
    return np.nan_to_num(np.clip(out, low, low + (1 << bits) - 1), nan=0.0).astype(dtype.numpy)
