"""Interpolation between pixels: where each result reads along an axis, and with which weights."""

from __future__ import annotations

from typing import Any

import numpy as np

from ._precision import widen

Array = np.ndarray[Any, Any]

# The constant of Keys' cubic convolution that PyTorch and Burn use.
_CUBIC = -0.75


def taps(n: int, count: int, mode: str, align_corners: bool) -> tuple[Array, Array]:
    """Positions in ``0..n`` that each of ``count`` results reads, and their weights: (count, t).

    Pixels outside the image are those of its edge.
    """
    at = np.arange(count, dtype=np.int64)
    if mode == "nearest":
        return (at * n // count)[:, None], np.ones((count, 1))
    if align_corners:
        place = at * (n - 1) / max(count - 1, 1)
    else:
        place = ((2 * at + 1) * n - count) / (2 * count)
        if mode == "bilinear":
            place = np.maximum(place, 0)
    first = np.floor(place).astype(np.int64)
    t = place - first
    if mode == "bilinear":
        offsets, weights = np.arange(2), np.stack([1 - t, t], 1)
    else:
        offsets = np.arange(-1, 3)
        weights = np.stack([_far(1 + t), _near(t), _near(1 - t), _far(2 - t)], 1)
    return np.clip(first[:, None] + offsets, 0, n - 1), weights


def _near(t: Array) -> Array:
    return ((_CUBIC + 2) * t - (_CUBIC + 3)) * t * t + 1


def _far(t: Array) -> Array:
    return ((t - 5) * t + 8) * t * _CUBIC - 4 * _CUBIC


def _lines(x: Array, axis: int, positions: Array, weights: Array) -> Any:
    """Pairs of positions and weights, one for each tap; the weights broadcast along the axis."""
    shape = (-1, *(1 for _ in range(x.ndim - 1 - axis)))
    for position, weight in zip(positions.T, weights.T, strict=True):
        yield position, weight.astype(x.dtype).reshape(shape)


def interpolate2d(x: Array, size: tuple[int, int], mode: str, align_corners: bool) -> Array:
    out: Any = widen(x)
    for axis in (3, 2):
        lines = _lines(out, axis, *taps(x.shape[axis], size[axis - 2], mode, align_corners))
        terms = [np.take(out, position, axis=axis) * weight for position, weight in lines]
        out = sum(terms[1:], terms[0])
    return out.astype(x.dtype)


def interpolate2d_backward(
    g: Array, input_shape: tuple[int, ...], mode: str, align_corners: bool
) -> Array:
    out = widen(g)
    for axis in (2, 3):
        n, count = input_shape[axis], g.shape[axis]
        shape = tuple(n if i == axis else size for i, size in enumerate(out.shape))
        sums = np.zeros(shape, out.dtype)
        for position, weight in _lines(out, axis, *taps(n, count, mode, align_corners)):
            place: Any = (slice(None),) * axis + (position,)
            np.add.at(sums, place, out * weight)
        out = sums
    return out.astype(g.dtype)


def _kernel(mode: str) -> tuple[float, Any]:
    """How far a filter reaches, and the filter; those that PyTorch and Pillow shrink images by."""
    if mode == "linear":
        return 1.0, lambda t: np.maximum(1 - np.abs(t), 0)
    if mode == "lanczos3":
        return 3.0, lambda t: np.where(np.abs(t) < 3, np.sinc(t) * np.sinc(t / 3), 0)
    a = -0.5

    def cubic(t: Array) -> Array:
        t = np.abs(t)
        near = ((a + 2) * t - (a + 3)) * t * t + 1
        far = (((t - 5) * t + 8) * t - 4) * a
        return np.where(t < 1, near, np.where(t < 2, far, 0))

    return 2.0, cubic


def _filtered(n: int, count: int, mode: str, align_corners: bool, antialias: bool) -> Any:
    """Taps of a filter that is as wide as the pixels that it makes; the weights sum to 1."""
    reach, kernel = _kernel(mode)
    scale = (n - 1) / max(count - 1, 1) if align_corners else n / count
    wide = max(scale, 1.0) if antialias else 1.0
    center = np.arange(count) * scale + (0.5 if align_corners else 0.5 * scale)
    first = np.maximum((center - reach * wide + 0.5).astype(np.int64), 0)
    last = np.minimum((center + reach * wide + 0.5).astype(np.int64), n)
    last = np.maximum(last, first + 1)
    places = first[:, None] + np.arange(int((last - first).max(initial=1)))
    weights = np.where(places < last[:, None], kernel((places - center[:, None] + 0.5) / wide), 0.0)
    return np.clip(places, 0, n - 1), weights / weights.sum(axis=1, keepdims=True)


# The modes of ``interpolate`` whose weights are those of a mode for images.
_PLAIN = {"cubic": "bicubic", "linear": "bilinear", "nearest": "nearest"}


def line_taps(n: int, count: int, mode: str, align_corners: bool, antialias: bool) -> Any:
    """As ``taps``, for the modes of ``interpolate``."""
    if mode == "nearest_exact":
        return ((2 * np.arange(count) + 1) * n // (2 * count))[:, None], np.ones((count, 1))
    if mode == "lanczos3" or (antialias and mode != "nearest"):
        return _filtered(n, count, mode, align_corners, antialias)
    return taps(n, count, _PLAIN[mode], align_corners)


def interpolate(
    x: Array, size: tuple[int, ...], mode: str, align_corners: bool, antialias: bool
) -> Array:
    """One matrix along each axis."""
    out = x.astype(np.float64)
    for axis, count in enumerate(size, 2):
        n = x.shape[axis]
        places, weights = line_taps(n, count, mode, align_corners, antialias)
        matrix = np.zeros((count, n))
        np.add.at(matrix, (np.arange(count)[:, None], places), weights)
        out = np.moveaxis(np.tensordot(matrix, out, axes=([1], [axis])), 0, axis)
    return out.astype(x.dtype)
