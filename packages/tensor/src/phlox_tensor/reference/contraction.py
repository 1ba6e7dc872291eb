"""Products of matrices and vectors."""

from __future__ import annotations

from typing import Any

import numpy as np

from ._precision import widen
from .activation import gelu

Array = np.ndarray[Any, Any]


def matmul(x1: Array, x2: Array) -> Array:
    if x1.dtype.kind in "iu":
        return np.matmul(x1, x2)
    return np.matmul(widen(x1), widen(x2)).astype(x1.dtype)


def matmul_integer(x1: Array, x2: Array, dtype: Any) -> Array:
    return np.matmul(x1.astype(dtype.numpy), x2.astype(dtype.numpy))


def linear(x: Array, weight: Array, bias: Array | None) -> Array:
    out = np.matmul(widen(x), widen(weight))
    return (out if bias is None else out + widen(bias)).astype(x.dtype)


def fused_linear(
    x: Array,
    weight: Array,
    bias: Array | None,
    residual: Array | None,
    activation: str,
    scale: float,
) -> Array:
    wide = widen(x)
    out = np.matmul(wide, widen(weight)) * wide.dtype.type(scale)
    for addend in (bias, residual):
        if addend is not None:
            out = out + widen(addend)
    if activation == "relu":
        out = np.maximum(out, 0)
    elif activation == "gelu":
        out = gelu(out)
    return out.astype(x.dtype)


def tensordot(x1: Array, x2: Array, axes: Any) -> Array:
    return np.asarray(np.tensordot(widen(x1), widen(x2), axes)).astype(x1.dtype)


def vecdot(x1: Array, x2: Array, axis: int) -> Array:
    a, b = np.broadcast_arrays(widen(x1), widen(x2))
    last = [np.moveaxis(x, axis, -1) for x in (a, b)]
    return np.asarray(np.einsum("...i,...i->...", *last)).astype(x1.dtype)
