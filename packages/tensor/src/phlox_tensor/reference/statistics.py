"""Statistics and distances, by NumPy's own functions and by loops."""

from __future__ import annotations

from math import ceil, floor
from typing import Any

import numpy as np

from ..shapes.statistics import check_range
from . import reduction
from ._precision import wide64, widen

Array = np.ndarray[Any, Any]


def cdist(x1: Array, x2: Array, p: float) -> Array:
    gap = wide64(x1)[..., :, None, :] - wide64(x2)[..., None, :, :]
    return np.linalg.norm(gap, ord=p, axis=-1).astype(x1.dtype)


def _gaps(x: Array) -> Array:
    rows = np.atleast_2d(wide64(x))
    return rows - rows.mean(axis=1, keepdims=True) if rows.shape[1] else rows


def cov(x: Array, correction: float) -> Array:
    with np.errstate(all="ignore"):
        gaps = _gaps(x)
        out = gaps @ gaps.T / max(gaps.shape[1] - correction, 0)
    return out.reshape(x.shape[:-1] * 2).astype(x.dtype)


def corrcoef(x: Array) -> Array:
    with np.errstate(all="ignore"):
        gaps = _gaps(x)
        gaps = gaps / np.abs(gaps).max(axis=1, keepdims=True, initial=np.finfo(np.float64).tiny)
        size = np.linalg.norm(gaps, axis=1)
        out = np.clip(gaps @ gaps.T / np.outer(size, size), -1, 1)
    return out.reshape(x.shape[:-1] * 2).astype(x.dtype)


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


def histogram(x: Array, bins: int, low: float | None, high: float | None) -> tuple[Array, Array]:
    wide = widen(x).reshape(-1)
    first = (float(wide.min()) if wide.size else 0.0) if low is None else low
    last = (float(wide.max()) if wide.size else 1.0) if high is None else high
    check_range(first, last)
    ends = np.histogram_bin_edges([], bins, (first, last)).astype(x.dtype)
    wide = wide[(wide >= widen(ends)[0]) & (wide <= widen(ends)[-1])]
    counts, _ = np.histogram(wide, bins=widen(ends))
    return counts, ends


def _line(x: Array, axis: Any) -> Array:
    others = [i for i in range(x.ndim) if i not in axis]
    size = int(np.prod([x.shape[i] for i in axis]))
    return np.transpose(x, (*others, *axis)).reshape(*[x.shape[i] for i in others], size)


def quantile(x: Array, q: float, axis: Any, keepdims: bool, interpolation: str) -> Array:
    ordered = np.sort(_line(wide64(x), axis), axis=-1)
    place = q * (ordered.shape[-1] - 1)
    low, high = ordered[..., floor(place)], ordered[..., ceil(place)]
    # np.quantile adds a part of the gap, which is infinite beside an infinity.
    part = place - floor(place) if interpolation == "linear" else 0.5
    with np.errstate(all="ignore"):
        between = np.where(low == high, low, low * (1 - part) + high * part)
    found = {"higher": high, "lower": low, "nearest": ordered[..., round(place)]}
    out = np.where(np.isnan(ordered[..., -1]), np.nan, found.get(interpolation, between))
    shape = [1 if i in axis else n for i, n in enumerate(x.shape)] if keepdims else out.shape
    return np.asarray(out).reshape(shape).astype(x.dtype)


def _kept(found: Any, axis: int, keepdims: bool) -> Any:
    return tuple(np.expand_dims(each, axis) if keepdims else each for each in found)


def mode(x: Array, axis: int, keepdims: bool) -> Any:
    lines = np.moveaxis(x, axis, -1)
    values, indices = np.zeros(lines.shape[:-1], x.dtype), np.zeros(lines.shape[:-1], np.int64)
    for place in np.ndindex(values.shape):
        line = lines[place]
        line = line if line.dtype.kind in "iu" else wide64(line)  # bfloat16 has no order of nan
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


def var_mean(x: Array, axis: Any, correction: float, keepdims: bool) -> tuple[Array, Array]:
    return reduction.var(x, axis, correction, keepdims), reduction.mean(x, axis, keepdims)
