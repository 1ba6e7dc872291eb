"""Images read between the pixels, place by place in float64."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from math import isnan, nan
from typing import Any

import numpy as np

from .._errors.classes import IndexOutOfRangeError
from ._precision import wide64

Array = np.ndarray[Any, Any]


def affine_grid(theta: Array, size: Any, align_corners: bool) -> Array:
    axes = size[2:]
    ends = [1 - 1 / n if not align_corners else float(n > 1) for n in axes]
    middles = [np.linspace(-end, end, n) for n, end in zip(axes, ends, strict=True)]
    lines = np.meshgrid(*middles, indexing="ij")
    points = np.stack([*lines[::-1], np.ones(axes)], axis=-1)
    return np.einsum("...j,nij->n...i", points, wide64(theta)).astype(theta.dtype)


def _mirrored(at: float, n: int, align_corners: bool) -> float:
    if not np.isfinite(at):
        return 0.0
    low, high = (0.0, n - 1.0) if align_corners else (-0.5, n - 0.5)
    if low == high:
        return 0.0
    off = (at - low) % (2 * (high - low))  # there and back again
    back = min(off, 2 * (high - low) - off)
    return min(max(low + back, 0.0), n - 1.0)


def _place(at: float, n: int, padding_mode: str, align_corners: bool) -> float:
    if padding_mode == "border":
        return 0.0 if isnan(at) else min(max(at, 0.0), n - 1.0)
    return _mirrored(at, n, align_corners) if padding_mode == "reflection" else at


def _cubic(t: float) -> float:
    """Keys, 1981."""
    t, a = abs(t), -0.75
    if t < 1:
        return ((a + 2) * t - (a + 3)) * t * t + 1
    return ((a * t - 5 * a) * t + 8 * a) * t - 4 * a if t < 2 else 0.0


def _taps(at: float, n: int, mode: str, padding_mode: str, align_corners: bool) -> Any:
    if not np.isfinite(at) and (padding_mode == "zeros" or mode == "bicubic"):
        # Nowhere: the weights are unknown, but nearest has none and reads what is outside.
        yield -1, nan if mode != "nearest" else 0.0
        return
    if mode == "bicubic":
        first = float(np.floor(at))
        t = at - first
        for i in (-1, 0, 1, 2):  # apart from t, which a far place would lose
            yield int(_place(first + i, n, padding_mode, align_corners)), _cubic(t - i)
        return
    at = _place(at, n, padding_mode, align_corners)
    if mode == "nearest":
        yield int(np.rint(at)), 1.0
        return
    first = int(np.floor(at))
    yield first, 1 - (at - first)
    yield first + 1, at - first


def _value(image: Array, place: Sequence[float], how: Any) -> Array:
    """One place of an image (C, H, W), or of a volume."""
    out, sizes = np.zeros(image.shape[0]), image.shape[1:]
    for taps in product(*(_taps(at, n, *how) for at, n in zip(place, sizes, strict=True))):
        inside = all(0 <= i < n for (i, _), n in zip(taps, sizes, strict=True))
        part = image[(slice(None), *(i for i, _ in taps))] if inside else np.zeros(image.shape[0])
        for _, weight in taps:
            part = part * weight
        out += part
    return out


def grid_sample(x: Array, grid: Array, mode: str, padding_mode: str, align_corners: bool) -> Array:
    images, places = wide64(x), wide64(grid)
    y = np.zeros((x.shape[0], x.shape[1], *grid.shape[1:-1]))
    for n, *to in np.ndindex(*grid.shape[:-1]):
        at = []
        for size, place in zip(x.shape[2:], places[(n, *to)][::-1], strict=True):
            wide = (place + 1) / 2 * (size - 1) if align_corners else ((place + 1) * size - 1) / 2
            at.append(float(wide))
        y[(n, slice(None), *to)] = _value(images[n], at, (mode, padding_mode, align_corners))
    return y.astype(x.dtype)


def deform_conv2d(
    x: Array,
    offset: Array,
    weight: Array,
    mask: Array | None,
    bias: Array | None,
    stride: Any,
    padding: Any,
    dilation: Any,
    groups: int,
) -> Array:
    n, (out, inner, *kernel), size = x.shape[0], weight.shape, offset.shape[2:]
    count = kernel[0] * kernel[1]
    parts = offset.shape[1] // (2 * count)
    moves = wide64(offset).reshape(n, parts, count, 2, *size)
    shares = np.ones((n, parts, count, *size))
    if mask is not None:
        shares = wide64(mask).reshape(shares.shape)
    images = wide64(x).reshape(n, parts, x.shape[1] // parts, *x.shape[2:])
    columns = np.zeros((n, parts, images.shape[2], count, *size))
    for b, p, k, i, j in np.ndindex(n, parts, count, *size):
        down, across = divmod(k, kernel[1])
        row = i * stride[0] - padding[0][0] + down * dilation[0] + moves[b, p, k, 0, i, j]
        column = j * stride[1] - padding[1][0] + across * dilation[1] + moves[b, p, k, 1, i, j]
        seen = _value(images[b, p], (row, column), ("bilinear", "zeros", True))
        columns[b, p, :, k, i, j] = seen * shares[b, p, k, i, j]
    columns = columns.reshape(n, groups, inner, count, *size)
    kernels = wide64(weight).reshape(groups, out // groups, inner, count)
    y = np.einsum("ngck...,gock->ngo...", columns, kernels).reshape(n, out, *size)
    if bias is not None:
        y += wide64(bias)[:, None, None]
    return y.astype(x.dtype)


def _image(images: Array, number: float) -> Array:
    """The image of this number."""
    if not 0 <= number < len(images):
        what, expected = "image of a box out of range", f"0 <= image of a box <= {len(images) - 1}"
        raise IndexOutOfRangeError("roi_align", what, got=number, expected=expected)
    return np.asarray(images[int(number)])


def roi_align(
    x: Array, boxes: Array, size: Any, spatial_scale: float, sampling_ratio: int, aligned: bool
) -> Array:
    images, lines = wide64(x), wide64(boxes)
    y = np.zeros((len(boxes), x.shape[1], *size))
    each = range(sampling_ratio)
    for k, i, j in np.ndindex(len(boxes), *size):
        image = _image(images, float(lines[k, 0]))
        left, top, right, bottom = lines[k, 1:] * spatial_scale - (0.5 if aligned else 0)
        height, width = bottom - top, right - left
        if not aligned:
            height, width = max(height, 1), max(width, 1)
        cell = height / size[0], width / size[1]
        total = np.zeros(x.shape[1])
        for a in each:
            for b in each:
                row = top + (i + (a + 0.5) / sampling_ratio) * cell[0]
                column = left + (j + (b + 0.5) / sampling_ratio) * cell[1]
                if -1 <= row <= x.shape[2] and -1 <= column <= x.shape[3]:
                    how = ("bilinear", "border", True)
                    total += _value(image, (row, column), how)
        y[k, :, i, j] = total / sampling_ratio**2
    return y.astype(x.dtype)


def nms(boxes: Array, scores: Array, iou_threshold: float) -> Array:
    wide = wide64(boxes)
    area = (wide[:, 2] - wide[:, 0]) * (wide[:, 3] - wide[:, 1])
    kept: list[int] = []
    for i in np.argsort(-wide64(scores), kind="stable"):
        areas = [(wide[j], float(area[i] + area[j])) for j in kept]
        if not any(_covers(wide[i], box, both, iou_threshold) for box, both in areas):
            kept.append(int(i))
    return np.array(kept, np.int64)


def _covers(a: Array, b: Array, areas: float, iou_threshold: float) -> bool:
    """Whether two boxes share more than a part of their union."""
    low, high = np.maximum(a[:2], b[:2]), np.minimum(a[2:], b[2:])
    common = float(np.prod(np.maximum(high - low, 0)))
    return areas - common > 0 and common > iou_threshold * (areas - common)
