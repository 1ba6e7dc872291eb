"""Statistics and distances, by NumPy's own functions and by loops."""

from __future__ import annotations

from math import inf
from typing import Any

import numpy as np

from .._errors import ArgumentError
from ._precision import wide64, widen

Array = np.ndarray[Any, Any]


def cdist(x1: Array, x2: Array, p: float) -> Array:
    gap = wide64(x1)[..., :, None, :] - wide64(x2)[..., None, :, :]
    return np.linalg.norm(gap, ord=p, axis=-1).astype(x1.dtype)


def cov(x: Array, correction: float) -> Array:
    return np.asarray(np.cov(wide64(x), ddof=int(correction))).astype(x.dtype)


def corrcoef(x: Array) -> Array:
    with np.errstate(all="ignore"):
        return np.asarray(np.corrcoef(wide64(x))).astype(x.dtype)


def cosine_similarity(x1: Array, x2: Array, axis: int, epsilon: float) -> Array:
    a, b = wide64(x1), wide64(x2)
    sizes = [np.maximum(np.linalg.norm(x, axis=axis), epsilon) for x in (a, b)]
    return ((a * b).sum(axis=axis) / (sizes[0] * sizes[1])).astype(x1.dtype)


def _wins(new: Any, old: Any, largest: bool) -> bool:
    return bool((new >= old) if largest else (new <= old)) or bool(np.isnan(new))


def running(x: Array, axis: int, *, largest: bool) -> tuple[Array, Array]:
    values = x.copy()
    indices = np.zeros(x.shape, np.int64)
    lines = np.moveaxis(values, axis, -1), np.moveaxis(indices, axis, -1)
    for place in np.ndindex(lines[0].shape[:-1]):
        best = 0
        for i in range(lines[0].shape[-1]):
            if _wins(lines[0][place][i], lines[0][place][best], largest):
                best = i
            indices_line, values_line = lines[1][place], lines[0][place]
            indices_line[i] = best
        values_line = lines[0][place]
        values_line[:] = values_line[lines[1][place]] if values_line.size else values_line
    return values, indices


def edges(low: float, high: float, bins: int) -> Array:
    """Ends of equal intervals, as NumPy's: a single value is in the middle of a unit.

    Raises:
        ArgumentError: when the first lies behind the last.
    """
    if inf > low > high > -inf:
        raise ArgumentError("histogram", "min > max", got=f"{low} > {high}", expected="min <= max")
    if low == high:
        low, high = low - 0.5, high + 0.5
    return np.linspace(low, high, bins + 1)


def histogram(x: Array, bins: int, low: float | None, high: float | None) -> tuple[Array, Array]:
    wide = widen(x).reshape(-1)
    first = float(wide.min(initial=inf)) if low is None else low
    last = float(wide.max(initial=-inf)) if high is None else high
    ends = edges(first, last, bins).astype(x.dtype)
    wide = wide[(wide >= widen(ends)[0]) & (wide <= widen(ends)[-1])]
    counts, _ = np.histogram(wide, bins=widen(ends))
    return counts, ends


def _line(x: Array, axis: Any) -> Array:
    others = [i for i in range(x.ndim) if i not in axis]
    size = int(np.prod([x.shape[i] for i in axis]))
    return np.transpose(x, (*others, *axis)).reshape(*[x.shape[i] for i in others], size)


def quantile(x: Array, q: float, axis: Any, keepdims: bool, interpolation: str) -> Array:
    wide = wide64(x)
    method: Any = interpolation
    with np.errstate(all="ignore"):
        out = np.quantile(_line(wide, axis), q, axis=-1, method=method)
    ends = np.sort(_line(wide, axis), axis=-1)
    place = q * (ends.shape[-1] - 1)
    low, high = ends[..., int(np.floor(place))], ends[..., int(np.ceil(place))]
    # NumPy's formula gives nan between equal infinities.
    out = np.where((low == high) & ~np.isnan(ends[..., -1]), low, out)
    shape = [1 if i in axis else n for i, n in enumerate(x.shape)] if keepdims else out.shape
    return np.asarray(out).reshape(shape).astype(x.dtype)


def _kept(found: Any, axis: int, keepdims: bool) -> Any:
    return tuple(np.expand_dims(each, axis) if keepdims else each for each in found)


def mode(x: Array, axis: int, keepdims: bool) -> Any:
    lines = np.moveaxis(x, axis, -1)
    values, indices = np.zeros(lines.shape[:-1], x.dtype), np.zeros(lines.shape[:-1], np.int64)
    for place in np.ndindex(values.shape):
        line = lines[place]
        unique, first, counts = np.unique(
            line, return_index=True, return_counts=True, equal_nan=False
        )
        best = int(counts.argmax())
        values[place], indices[place] = unique[best], first[best]
    return _kept((values, indices), axis, keepdims)


def extreme(x: Array, axis: int, keepdims: bool, *, largest: bool) -> Any:
    place = np.argmax(x, axis=axis) if largest else np.argmin(x, axis=axis)
    values = np.take_along_axis(x, np.expand_dims(place, axis), axis).squeeze(axis)
    return _kept((values, place), axis, keepdims)
