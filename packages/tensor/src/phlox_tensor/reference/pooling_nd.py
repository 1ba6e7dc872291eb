"""Pools of any number of axes, window by window."""

from __future__ import annotations

from itertools import product
from math import prod
from typing import Any

import numpy as np

from ..shapes._window import sizes
from ._precision import wide64

Array = np.ndarray[Any, Any]


def _each(x: Array, kernel: Any, stride: Any, padding: Any, dilation: Any, ceil_mode: bool) -> Any:
    """For each window its place, and the positions in the tensor that it covers, by axis."""
    size = sizes("pool", x.shape[2:], kernel, stride, padding, dilation, ceil_mode)
    for place in product(*map(range, size)):
        spans = zip(place, kernel, stride, padding, dilation, strict=True)
        yield place, [i * s - low + d * np.arange(k) for i, k, s, (low, _), d in spans]


def _inside(x: Array, lines: Any) -> Any:
    return [line[(line >= 0) & (line < n)] for line, n in zip(lines, x.shape[2:], strict=True)]


def _flat(seen: Array) -> Array:
    """The elements of a window on one axis; -1 would not do for a batch of 0."""
    return seen.reshape(*seen.shape[:2], prod(seen.shape[2:]))


def _result(x: Array, *how: Any, dtype: Any) -> Array:
    return np.zeros((*x.shape[:2], *sizes("pool", x.shape[2:], *how)), dtype)


def max_pool_with_indices(x: Array, *how: Any) -> tuple[Array, Array]:
    values = _result(x, *how, dtype=x.dtype)
    indices = _result(x, *how, dtype=np.int64)
    numbers = np.arange(int(np.prod(x.shape[2:]))).reshape(x.shape[2:])
    for place, lines in _each(x, *how):
        here = np.ix_(*_inside(x, lines))
        seen = _flat(x[(slice(None), slice(None), *here)])
        best = seen.argmax(axis=2)[..., None]
        at = (slice(None), slice(None), *place)
        values[at] = np.take_along_axis(seen, best, 2)[..., 0]
        indices[at] = numbers[here].reshape(-1)[best[..., 0]]
    return values, indices


def max_pool(x: Array, *how: Any) -> Array:
    return max_pool_with_indices(x, *how)[0]


def avg_pool(
    x: Array, kernel: Any, stride: Any, padding: Any, ceil_mode: bool, count_include_pad: bool
) -> Array:
    how = (kernel, stride, padding, (1,) * len(kernel), ceil_mode)
    y = _result(x, *how, dtype=np.float64)
    for place, lines in _each(x, *how):
        counted = inside = _inside(x, lines)
        if count_include_pad:
            ends = zip(lines, x.shape[2:], padding, strict=True)
            counted = [line[line < n + high] for line, n, (_, high) in ends]
        seen = x[(slice(None), slice(None), *np.ix_(*inside))]
        total = _flat(wide64(seen)).sum(2)
        y[(slice(None), slice(None), *place)] = total / np.prod([c.size for c in counted])
    return y.astype(x.dtype)


def lp_pool(
    x: Array,
    kernel: Any,
    p: float,
    stride: Any,
    padding: Any,
    ceil_mode: bool,
    dilation: Any,
) -> Array:
    how = (kernel, stride, padding, dilation, ceil_mode)
    y = _result(x, *how, dtype=np.float64)
    for place, lines in _each(x, *how):
        here = np.ix_(*_inside(x, lines))
        seen = _flat(wide64(x[(slice(None), slice(None), *here)]))
        y[(slice(None), slice(None), *place)] = np.linalg.norm(seen, ord=p, axis=2)
    return y.astype(x.dtype)


def _cuts(place: Any, x: Array, size: Any) -> Any:
    """The elements over which a place of the result lies, each at least in part, by axis."""
    for i, n, count in zip(place, x.shape[2:], size, strict=True):
        over = [j for j in range(n) if j * count < (i + 1) * n and (j + 1) * count > i * n]
        yield slice(over[0], over[-1] + 1)


def _adaptive(x: Array, size: Any, function: Any) -> Array:
    y = np.zeros((*x.shape[:2], *size), x.dtype)
    for place in np.ndindex(*size):
        seen = _flat(x[(slice(None), slice(None), *_cuts(place, x, size))])
        y[(slice(None), slice(None), *place)] = function(seen)
    return y


def adaptive_avg(x: Array, size: Any) -> Array:
    return _adaptive(x, size, lambda seen: wide64(seen).mean(axis=2))


def adaptive_max(x: Array, size: Any) -> Array:
    return _adaptive(x, size, lambda seen: seen.max(axis=2))


def adaptive_max_with_indices(x: Array, size: Any) -> tuple[Array, Array]:
    numbers = np.arange(int(np.prod(x.shape[2:]))).reshape(x.shape[2:])
    wide = np.broadcast_to(numbers, x.shape)
    best = _adaptive(x, size, lambda seen: seen.max(axis=2))
    indices = np.zeros(best.shape, np.int64)
    for place in np.ndindex(*size):
        cut = (slice(None), slice(None), *_cuts(place, x, size))
        seen, numbered = (_flat(a[cut]) for a in (x, wide))
        first = seen.argmax(axis=2)[..., None]
        indices[(slice(None), slice(None), *place)] = np.take_along_axis(numbered, first, 2)[..., 0]
    return best, indices
