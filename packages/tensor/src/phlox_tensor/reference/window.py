"""Contractions, convolutions and pools, through views of all windows."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._rules.linear import window_sizes
from .elementwise import gelu
from .reduction import widen

Array = np.ndarray[Any, Any]
Pair = tuple[int, int]
Sides = tuple[tuple[int, int], ...]


def matmul(x1: Array, x2: Array) -> Array:
    if x1.dtype.kind in "iu":
        return np.matmul(x1, x2)
    return np.matmul(widen(x1), widen(x2)).astype(x1.dtype)


def linear(x: Array, weight: Array, bias: Array | None) -> Array:
    out = np.matmul(widen(x), widen(weight))
    return (out if bias is None else out + widen(bias)).astype(x.dtype)


def fused_linear(
    x: Array,
    weight: Array,
    bias: Array | None,
    residual: Array | None,
    activation: str,
    scale: float,
) -> Array:
    wide = widen(x)
    out = np.matmul(wide, widen(weight)) * wide.dtype.type(scale)
    for addend in (bias, residual):
        if addend is not None:
            out = out + widen(addend)
    if activation == "relu":
        out = np.maximum(out, 0)
    elif activation == "gelu":
        out = gelu(out)
    return out.astype(x.dtype)


def _windows(
    x: Array, kernel: Pair, stride: Pair, dilation: Pair, out: Pair, *, writeable: bool = False
) -> Array:
    """View of a padded batch (N, C, H, W) as (N, C, H', W', kh, kw)."""
    n, c, h, w = x.strides
    return np.lib.stride_tricks.as_strided(
        x,
        (*x.shape[:2], *out, *kernel),
        (n, c, h * stride[0], w * stride[1], h * dilation[0], w * dilation[1]),
        writeable=writeable,
    )


def _padded(x: Array, padding: Sides, value: float, extra: Pair = (0, 0)) -> Array:
    (top, bottom), (left, right) = padding
    margins = ((0, 0), (0, 0), (top, bottom + extra[0]), (left, right + extra[1]))
    return np.pad(x, margins, constant_values=value)


def conv2d(
    x: Array,
    weight: Array,
    bias: Array | None,
    stride: Pair,
    padding: Sides,
    dilation: Pair,
    groups: int,
) -> Array:
    wide, kernels = _padded(widen(x), padding, 0), widen(weight)
    out = window_sizes("conv2d", x.shape[2:], weight.shape[2:], stride, padding, dilation)
    views = _windows(wide, weight.shape[2:], stride, dilation, out)
    parts = [
        np.tensordot(view, kernel, axes=([1, 4, 5], [1, 2, 3])).transpose(0, 3, 1, 2)
        for view, kernel in zip(
            np.split(views, groups, axis=1), np.split(kernels, groups), strict=True
        )
    ]
    y = np.concatenate(parts, axis=1)
    if bias is not None:
        y = y + widen(bias)[:, None, None]
    return y.astype(x.dtype)


def conv2d_weight_grad(
    g: Array,
    x: Array,
    weight_shape: tuple[int, ...],
    stride: Pair,
    padding: Sides,
    dilation: Pair,
    groups: int,
) -> Array:
    wide, cotangent = _padded(widen(x), padding, 0), widen(g)
    views = _windows(wide, weight_shape[2:], stride, dilation, g.shape[2:])  # type: ignore[arg-type]
    parts = [
        np.tensordot(part, view, axes=([0, 2, 3], [0, 2, 3]))
        for view, part in zip(
            np.split(views, groups, axis=1), np.split(cotangent, groups, axis=1), strict=True
        )
    ]
    return np.concatenate(parts, axis=0).astype(x.dtype)


def conv2d_input_grad(
    g: Array,
    weight: Array,
    input_shape: tuple[int, ...],
    stride: Pair,
    padding: Sides,
    dilation: Pair,
    groups: int,
) -> Array:
    kernels, cotangent = widen(weight), widen(g)
    padded = _padded(np.zeros(input_shape, kernels.dtype), padding, 0)
    parts = [
        np.tensordot(part, kernel, axes=([1], [0]))  # (N, H', W', I, kh, kw)
        for part, kernel in zip(
            np.split(cotangent, groups, axis=1), np.split(kernels, groups), strict=True
        )
    ]
    columns = np.concatenate(parts, axis=3).transpose(0, 3, 1, 2, 4, 5)
    _add_windows(padded, columns, stride, dilation)
    return _cropped(padded, padding, input_shape).astype(g.dtype)


def conv_transpose2d(
    x: Array,
    weight: Array,
    bias: Array | None,
    stride: Pair,
    padding: Sides,
    output_padding: Pair,
    dilation: Pair,
    groups: int,
) -> Array:
    wide, kernels = widen(x), widen(weight)
    out = weight.shape[1] * groups
    spans = zip(x.shape[2:], weight.shape[2:], stride, output_padding, dilation, strict=True)
    size = tuple((n - 1) * s + d * (k - 1) + 1 + extra for n, k, s, extra, d in spans)
    full = np.zeros((x.shape[0], out, *size), kernels.dtype)
    parts = [
        np.tensordot(part, kernel, axes=([1], [0]))  # (N, H, W, O / groups, kh, kw)
        for part, kernel in zip(
            np.split(wide, groups, axis=1), np.split(kernels, groups), strict=True
        )
    ]
    columns = np.concatenate(parts, axis=3).transpose(0, 3, 1, 2, 4, 5)
    _add_windows(full, columns, stride, dilation)
    (top, bottom), (left, right) = padding
    y = full[:, :, top : size[0] - bottom, left : size[1] - right]
    if bias is not None:
        y = y + widen(bias)[:, None, None]
    return y.astype(x.dtype)


def _add_windows(padded: Array, columns: Array, stride: Pair, dilation: Pair) -> None:
    height, width = columns.shape[2:4]
    for i in range(columns.shape[4]):
        for j in range(columns.shape[5]):
            rows = slice(i * dilation[0], i * dilation[0] + (height - 1) * stride[0] + 1, stride[0])
            cols = slice(j * dilation[1], j * dilation[1] + (width - 1) * stride[1] + 1, stride[1])
            padded[:, :, rows, cols] += columns[..., i, j]


def _cropped(padded: Array, padding: Sides, shape: tuple[int, ...]) -> Array:
    (top, _), (left, _) = padding
    return padded[:, :, top : top + shape[2], left : left + shape[3]]


def _overhang(
    shape: tuple[int, ...], kernel: Pair, stride: Pair, padding: Sides, dilation: Pair, out: Pair
) -> Pair:
    """How far the last windows reach beyond the padded image (in ceil mode)."""
    reach = [
        max(0, (o - 1) * s + d * (k - 1) + 1 - n - a - b)
        for o, s, d, k, n, (a, b) in zip(
            out, stride, dilation, kernel, shape[2:], padding, strict=True
        )
    ]
    return reach[0], reach[1]


def _pool_views(
    x: Array, kernel: Pair, stride: Pair, padding: Sides, dilation: Pair, out: Pair, value: Any
) -> Array:
    extra = _overhang(x.shape, kernel, stride, padding, dilation, out)
    return _windows(_padded(x, padding, value, extra), kernel, stride, dilation, out)


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
    flat = views.reshape(*views.shape[:4], -1)
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
    flat = (*input_shape[:2], -1)
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
    extra = _overhang(input_shape, kernel, stride, padding, (1, 1), out)
    padded = _padded(np.zeros(input_shape, wide.dtype), padding, 0, extra)
    columns = np.broadcast_to(share[..., None, None], (*g.shape, *kernel))
    _add_windows(padded, columns, stride, (1, 1))
    return _cropped(padded, padding, input_shape).astype(g.dtype)
