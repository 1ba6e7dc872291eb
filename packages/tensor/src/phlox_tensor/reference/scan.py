"""Running totals."""

from __future__ import annotations

from typing import Any

import numpy as np

from ._precision import widen

Array = np.ndarray[Any, Any]


def cumsum(x: Array, axis: int) -> Array:
    wide = widen(x)
    return np.cumsum(wide, axis=axis, dtype=wide.dtype).astype(x.dtype)
