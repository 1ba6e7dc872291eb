"""In which type the reference computes: narrow floats in float32, special functions in float64."""

from __future__ import annotations

from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]


def is_float(x: Array) -> bool:
    """Whether the elements are floats, bfloat16 included."""
    return x.dtype.kind == "f" or x.dtype.name == "bfloat16"


def widen(x: Array) -> Array:
    """The array in the type that sums accumulate in."""
    return x.astype(np.float32) if is_float(x) and x.dtype.itemsize < 4 else x


def wide64(x: Array) -> Array:
    """The array in float64."""
    return np.asarray(x).astype(np.float64)


def in_float64(function: Any) -> Any:
    """Run a function on float64 and round once, to the operand's type."""

    def apply(*arrays: Any) -> Array:
        return function(*map(wide64, arrays)).astype(first_dtype(arrays))

    return apply


def first_dtype(operands: Any) -> np.dtype[Any]:
    """The type of the operands that are arrays; the others are Python numbers."""
    return next(a.dtype for a in operands if isinstance(a, np.ndarray | np.generic))


def through_float32(function: Any) -> Any:
    """Run a NumPy function on float32 for narrow floats: it lacks them, or rounds half way."""

    def apply(*arrays: Any) -> Array:
        dtype = first_dtype(arrays)
        if dtype.name not in ("bfloat16", "float16"):
            return function(*arrays)
        narrow = [a.astype(np.float32) if hasattr(a, "astype") else a for a in arrays]
        return function(*narrow).astype(dtype)

    return apply
