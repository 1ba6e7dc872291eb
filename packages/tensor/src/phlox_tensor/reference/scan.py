"""Running totals and differences."""

from __future__ import annotations

from typing import Any

import numpy as np

from ._precision import wide64
from .reduction import in_sum_type

Array = np.ndarray[Any, Any]


def _wide(x: Array, dtype: Any) -> Array:
    """The operand as it is run through: floats in float64, since errors of long lines add up."""
    return wide64(x) if dtype.kind == "Float" else in_sum_type(x, dtype)


def cumsum(x: Array, axis: int, dtype: Any) -> Array:
    wide = _wide(x, dtype)
    return np.cumsum(wide, axis=axis, dtype=wide.dtype).astype(dtype.numpy)


def _with_initial(x: Array, axis: int, value: int) -> Array:
    line = (*x.shape[:axis], 1, *x.shape[axis + 1 :])
    return np.concatenate([np.full(line, value, x.dtype), x], axis=axis)


def cumulative_sum(x: Array, axis: int, dtype: Any, include_initial: bool) -> Array:
    out = cumsum(x, axis, dtype)
    return _with_initial(out, axis, 0) if include_initial else out


def cumulative_prod(x: Array, axis: int, dtype: Any, include_initial: bool) -> Array:
    wide = _wide(x, dtype)
    out = np.cumprod(wide, axis=axis, dtype=wide.dtype).astype(dtype.numpy)
    return _with_initial(out, axis, 1) if include_initial else out


def diff(x: Array, prepend: Array | None, append: Array | None, axis: int, n: int) -> Array:
    parts = [part for part in (prepend, x, append) if part is not None]
    whole = np.concatenate(parts, axis=axis)
    return np.diff(whole, n=n, axis=axis)


def logcumsumexp(x: Array, axis: int) -> Array:
    wide = x.astype(np.float64)
    return np.logaddexp.accumulate(wide, axis=axis).astype(x.dtype) if x.size else x
