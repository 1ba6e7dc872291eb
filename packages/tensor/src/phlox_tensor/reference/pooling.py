"""Pools, through views of all windows."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..shapes._window import overhang, window_sizes
from ._precision import widen
from ._windows import Pair, Sides, add_windows, cropped, padded, windows

Array = np.ndarray[Any, Any]


def _pool_views(
    x: Array, kernel: Pair, stride: Pair, padding: Sides, dilation: Pair, out: Pair, value: Any
) -> Array:
    extra = overhang(x.shape[2:], kernel, stride, padding, dilation, out)
    return windows(padded(x, padding, value, extra), kernel, stride, dilation, out)


def max_pool2d_with_indices(
    x: Array, kernel: Pair, stride: Pair, padding: Sides, dilation: Pair, ceil_mode: bool
) -> tuple[Array, Array]:
    out = window_sizes("max_pool2d", x.shape[2:], kernel, stride, padding, dilation, ceil_mode)
    is_int = x.dtype.kind in "iu"
    lowest = np.iinfo(x.dtype).min if is_int else -np.inf
    wide = x if is_int else widen(x)
    views = _pool_views(wide, kernel, stride, padding, dilation, out, lowest)
    places = np.broadcast_to(
        np.arange(x.shape[2] * x.shape[3]).reshape(1, 1, *x.shape[2:]), x.shape
    )
    positions = _pool_views(places, kernel, stride, padding, dilation, out, -1)
    flat = views.reshape(*views.shape[:4], kernel[0] * kernel[1])
    inside = positions.reshape(flat.shape)
    # Padding never wins, not even where the window holds nothing above the lowest value.
    rank = np.where(inside < 0, lowest, flat)
    best = np.argmax(rank, axis=-1)
    first = np.argmax(inside >= 0, axis=-1)
    chosen = np.take_along_axis(inside, best[..., None], -1)
    best = np.where(chosen[..., 0] < 0, first, best)
    values = np.take_along_axis(flat, best[..., None], -1)[..., 0]
    indices = np.take_along_axis(inside, best[..., None], -1)[..., 0]
    return values.astype(x.dtype), indices


def max_pool2d_backward(g: Array, indices: Array, input_shape: tuple[int, ...]) -> Array:
    out = np.zeros((*input_shape[:2], input_shape[2] * input_shape[3]), widen(g).dtype)
    n, c = np.indices(input_shape[:2], sparse=True)
    flat = (*input_shape[:2], g.shape[2] * g.shape[3])
    np.add.at(out, (n[..., None], c[..., None], indices.reshape(flat)), widen(g).reshape(flat))
    return out.reshape(input_shape).astype(g.dtype)


def _divisors(
    shape: tuple[int, ...],
    kernel: Pair,
    stride: Pair,
    padding: Sides,
    out: Pair,
    count_include_pad: bool,
) -> Array:
    """How many elements each window averages over (height times width)."""
    counts = []
    for o, n, k, s, (before, after) in zip(out, shape[2:], kernel, stride, padding, strict=True):
        first = np.arange(o) * s - before
        last = first + k
        low, high = (-before, n + after) if count_include_pad else (0, n)
        counts.append(np.minimum(last, high) - np.maximum(first, low))
    return counts[0][:, None] * counts[1][None, :]


def avg_pool2d(
    x: Array, kernel: Pair, stride: Pair, padding: Sides, ceil_mode: bool, count_include_pad: bool
) -> Array:
    out = window_sizes("avg_pool2d", x.shape[2:], kernel, stride, padding, (1, 1), ceil_mode)
    wide = widen(x)
    views = _pool_views(wide, kernel, stride, padding, (1, 1), out, 0)
    divisors = _divisors(x.shape, kernel, stride, padding, out, count_include_pad)
    return (views.sum(axis=(4, 5)) / divisors.astype(wide.dtype)).astype(x.dtype)


def avg_pool2d_backward(
    g: Array,
    input_shape: tuple[int, ...],
    kernel: Pair,
    stride: Pair,
    padding: Sides,
    ceil_mode: bool,
    count_include_pad: bool,
) -> Array:
    out: Pair = g.shape[2:]
    wide = widen(g)
    divisors = _divisors(input_shape, kernel, stride, padding, out, count_include_pad)
    share = wide / divisors.astype(wide.dtype)
    extra = overhang(input_shape[2:], kernel, stride, padding, (1, 1), out)
    whole = padded(np.zeros(input_shape, wide.dtype), padding, 0, extra)
    columns = np.broadcast_to(share[..., None, None], (*g.shape, *kernel))
    add_windows(whole, columns, stride, (1, 1))
    return cropped(whole, padding, input_shape).astype(g.dtype)
