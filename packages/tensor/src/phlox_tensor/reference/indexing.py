"""Elements chosen by indices and masks."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._errors.classes import IndexOutOfRangeError
from ._precision import widen

Array = np.ndarray[Any, Any]


def checked(op: str, indices: Array, size: int) -> Array:
    """Return the indices counted from the front.

    Raises:
        IndexOutOfRangeError: when one points outside the axis.
    """
    # Before they are signed, which 2**64 - 1 would leave as -1.
    bad = indices >= size if indices.dtype.kind == "u" else (indices < -size) | (indices >= size)
    if bad.any():
        raise IndexOutOfRangeError(
            op,
            "index out of range",
            got=int(indices[bad].flat[0]),
            expected=f"{-size} <= index < {size}",
        )
    wide = indices.astype(np.intp)  # of 32 bits in a browser, where NumPy takes no other
    return np.where(wide < 0, wide + size, wide)


def within(op: str, numbers: Array, size: int, name: str) -> Array:
    """Return the numbers of an argument, which count only from the front.

    Raises:
        IndexOutOfRangeError: when one is below 0, or ``size`` and more.
    """
    bad = (numbers < 0) | (numbers >= size)
    if bad.any():
        what, expected = f"{name} out of range", f"0 <= {name} <= {size - 1}"
        raise IndexOutOfRangeError(op, what, got=int(numbers[bad].flat[0]), expected=expected)
    return numbers


def take(x: Array, indices: Array, axis: int) -> Array:
    return np.take(x, checked("take", indices, x.shape[axis]), axis=axis)


def take_along_axis(x: Array, indices: Array, axis: int) -> Array:
    return np.take_along_axis(x, checked("take_along_axis", indices, x.shape[axis]), axis)


_UPDATES: dict[str, Any] = {
    "add": np.add,
    "max": np.maximum,
    "min": np.minimum,
    "mul": np.multiply,
}


def scatter(x: Array, indices: Array, values: Array, axis: int, update: str) -> Array:
    index = checked("scatter", indices, x.shape[axis])
    out = np.array(widen(x))  # repeats are combined wide
    places: list[Any] = list(np.indices(index.shape, sparse=True))
    places[axis] = index
    if update == "set":
        out[tuple(places)] = values
    else:
        _UPDATES[update].at(out, tuple(places), values)
    return out.astype(x.dtype)


def index_add(x: Array, indices: Array, values: Array, axis: int) -> Array:
    index = checked("index_add", indices, x.shape[axis])
    out = np.array(widen(x))
    place: Any = (slice(None),) * axis + (index,)
    np.add.at(out, place, values)
    return out.astype(x.dtype)


def nonzero(mask: Array) -> Array:
    return np.flatnonzero(mask)
