"""Views and data movement."""

from __future__ import annotations

from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]

Region = tuple[slice, ...]


def region(start: tuple[int, ...], size: tuple[int, ...], step: tuple[int, ...]) -> Region:
    """The NumPy index of a slice given by start, size and step."""
    items = []
    for first, count, stride in zip(start, size, step, strict=True):
        stop = first + count * stride
        items.append(slice(first, None if stop < 0 else stop, stride) if count else slice(0, 0))
    return tuple(items)


def slice_(x: Array, start: Any, size: Any, step: Any) -> Array:
    return x[region(start, size, step)]


def slice_scatter(x: Array, values: Array, start: Any, size: Any, step: Any) -> Array:
    out = x.copy()
    out[region(start, size, step)] = values
    return out


def add_slices(parts: tuple[Array, ...], shape: Any, start: Any, step: Any) -> Array:
    out = np.zeros(shape, parts[0].dtype)
    rank = len(shape)
    for i, part in enumerate(parts):
        place = slice(i * rank, (i + 1) * rank)
        out[region(start[place], part.shape, step[place])] += part
    return out


def pad(x: Array, padding: Any, value: Any) -> Array:
    filled = np.full(
        tuple(n + a + b for n, (a, b) in zip(x.shape, padding, strict=True)), value, x.dtype
    )
    filled[tuple(slice(a, a + n) for n, (a, _) in zip(x.shape, padding, strict=True))] = x
    return filled
