"""Running totals."""

from __future__ import annotations

from typing import Any

import numpy as np

from .reduction import in_sum_type

Array = np.ndarray[Any, Any]


def cumsum(x: Array, axis: int, dtype: Any) -> Array:
    wide = in_sum_type(x, dtype)
    return np.cumsum(wide, axis=axis, dtype=wide.dtype).astype(dtype.numpy)
