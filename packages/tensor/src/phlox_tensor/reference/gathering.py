"""Rows of indices, one after the other."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from .._errors.classes import IndexOutOfRangeError
from ._precision import widen

Array = np.ndarray[Any, Any]

_UPDATES: Final[dict[str, Any]] = {
    "add": np.add, "max": np.maximum, "min": np.minimum, "mul": np.multiply,
}  # fmt: skip


def _rows(indices: Array, shape: tuple[int, ...], op: str) -> tuple[Array, ...]:
    rows = np.moveaxis(indices, -1, 0)
    for row, n in zip(rows, shape, strict=False):
        wrong = row[(row >= n) | ((row < 0) & (row < -n))]
        if wrong.size:
            expected = f"{-n} <= index < {n}"
            raise IndexOutOfRangeError(
                op, "index out of range", got=int(wrong[0]), expected=expected
            )
    return tuple(rows)


def gather_nd(x: Array, indices: Array) -> Array:
    return np.asarray(x[_rows(indices, x.shape, "gather_nd")])


def masked_scatter(x: Array, mask: Array, source: Array) -> Array:
    wide, out = np.broadcast_to(mask, x.shape), x.copy()
    count = int(wide.sum())
    if count > source.size:
        raise IndexOutOfRangeError(
            "masked_scatter", "too few elements", got=source.size, expected=f"{count} or more"
        )
    out[wide] = source.reshape(-1)[:count]
    return out


def scatter_nd(x: Array, indices: Array, values: Array, update: str) -> Array:
    places = _rows(indices, x.shape, "scatter_nd")
    out = np.array(widen(x))
    if update == "set":
        out[places] = values
    else:
        _UPDATES[update].at(out, places, widen(values))
    return out.astype(x.dtype)
