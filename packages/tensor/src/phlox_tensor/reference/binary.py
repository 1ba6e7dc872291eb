"""Elementwise ops of two operands that NumPy defines otherwise."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from .._errors.classes import ArgumentError
from ._precision import first_dtype, in_float64, wide64

Array = np.ndarray[Any, Any]


def _is_int(*operands: Any) -> bool:
    kinds = [a.dtype.kind for a in operands if isinstance(a, np.ndarray | np.generic)]
    return bool(kinds) and kinds[0] in "iu"


def floor_divide(x1: Any, x2: Any) -> Array:
    if not _is_int(x1, x2):
        return in_float64(np.floor_divide)(x1, x2)
    # NumPy gives 0 for a zero divisor and wraps INT_MIN // -1, as the spec asks.
    return np.floor_divide(x1, x2)


def masked_scale(keep: Any, x: Any, scale: float) -> Array:
    wide = np.where(keep, wide64(x) * scale, 0.0)
    return wide.astype(first_dtype((x,)))


def remainder(x1: Any, x2: Any) -> Array:
    return np.remainder(x1, x2)


def power(x1: Any, x2: Any) -> Array:
    if _is_int(x1, x2) and np.any(np.less(x2, 0)):
        raise ArgumentError(
            "pow",
            "integer power with a negative exponent",
            got=int(np.min(x2)),
            expected="exponents >= 0",
            hint='x.astype("float32")',
        )
    return np.power(x1, x2)


def shifted(by: np.ufunc) -> Callable[[Any, Any], Any]:
    """A shift by any number; NumPy's takes the low 32 bits of one where addresses have 32."""

    def moved(x1: Any, x2: Any) -> Any:
        dtype = np.result_type(x1, x2)
        x1, x2, last = np.asarray(x1, dtype), np.asarray(x2, dtype), dtype.itemsize * 8 - 1
        far = (x2 < 0) | (x2 > last)
        return by(by(x1, np.where(far, last, x2)), far.astype(dtype))

    return moved
