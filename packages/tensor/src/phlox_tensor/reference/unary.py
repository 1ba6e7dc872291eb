"""Elementwise ops of one operand that NumPy lacks or defines otherwise."""

from __future__ import annotations

from typing import Any

import numpy as np

from ._erf import erf64
from ._precision import wide64

Array = np.ndarray[Any, Any]


def erf(x: Array) -> Array:
    return erf64(x).astype(x.dtype)


def rounded(function: Any) -> Any:
    """Make floor, ceil, round, trunc leave integers alone."""

    def apply(x: Array) -> Array:
        return x if x.dtype.kind in "iu" else function(x)

    return apply


def clip(x: Array, low: Any, high: Any) -> Array:
    out = x
    if low is not None:
        out = np.maximum(out, np.asarray(low).astype(x.dtype))
    if high is not None:
        out = np.minimum(out, np.asarray(high).astype(x.dtype))
    return out


def cast(x: Array, dtype: Any) -> Array:
    """Convert as the numeric spec says: truncate, nan to 0, saturate, wrap between ints."""
    target = dtype.numpy
    if dtype.kind == "Bool":
        return x != 0
    is_float = x.dtype.kind == "f" or x.dtype.name == "bfloat16"
    if dtype.kind == "Int" and is_float:
        return _saturate(np.trunc(wide64(x)), target)
    with np.errstate(over="ignore"):
        return np.asarray(x).astype(target)


def _saturate(whole: Array, target: np.dtype[Any]) -> Array:
    info = np.iinfo(target)
    low, high = float(info.min), float(info.max)
    inside = np.where(np.isnan(whole), 0.0, np.clip(whole, low, high))
    # float(max) may round up to max + 1; those values take the limit itself.
    safe = np.where(inside >= high, 0.0, inside).astype(target)
    return np.where(inside >= high, np.array(info.max, target), safe)
