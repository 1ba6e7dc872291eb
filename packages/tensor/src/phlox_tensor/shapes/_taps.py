"""Which elements of an axis a resized tensor reads, and with which weights."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final, NamedTuple

import numpy as np

Array = np.ndarray[Any, Any]

# The constant of Keys' cubic convolution that PyTorch and Burn use.
CUBIC: Final = -0.75


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
    return ((CUBIC + 2) * t - (CUBIC + 3)) * t * t + 1


def _far(t: Array) -> Array:
    return ((t - 5) * t + 8) * t * CUBIC - 4 * CUBIC


class Resizing(NamedTuple):
    """How ``resize`` reads along every axis: its attributes of one value."""

    mode: str
    coordinates: str
    rounding: str
    cubic_coefficient: float
    antialias: bool
    exclude_outside: bool


def _places(n: int, count: int, scale: float | None, coordinates: str, region: Any) -> Array:
    """Where each of ``count`` results lies in a line of n.

    Without a scale the places are quotients of integers, so that those on an element are exact.
    Corners are those of the whole size, also where the scale leads to a fraction.
    """
    x = np.arange(count, dtype=np.float64)
    if coordinates == "align_corners":
        return x * (n - 1) / max(count - 1, 1)
    if coordinates == "tf_crop_and_resize":
        start, end = region
        span = (end - start) * (n - 1)
        first = start * (n - 1) + (span / 2 if count == 1 else 0.0)
        return first + x * span / max(count - 1, 1)
    if coordinates == "asymmetric":
        return x * n / count if scale is None else x / scale
    if coordinates == "tf_half_pixel_for_nn":
        return (2 * x + 1) * n / (2 * count) if scale is None else (x + 0.5) / scale
    if coordinates == "pytorch_half_pixel" and count == 1:
        return np.zeros(1)
    if scale is None:
        return ((2 * x + 1) * n - count) / (2 * count)
    if coordinates == "half_pixel_symmetric":
        return (n - 1) / 2 + (x - (count - 1) / 2) / scale
    return (x + 0.5) / scale - 0.5


def _keys(t: Array, a: float) -> Array:
    """Keys' cubic kernel."""
    t = np.abs(t)
    near = ((a + 2) * t - (a + 3)) * t * t + 1
    far = (((t - 5) * t + 8) * t - 4) * a
    return np.where(t <= 1, near, np.where(t < 2, far, 0.0))


def _lanczos(t: Array, _: float) -> Array:
    return np.where(np.abs(t) < 3, np.sinc(t) * np.sinc(t / 3), 0.0)


def _right(ratio: Array, rounding: str) -> Array:
    """Whether the right one of two neighbors is taken; a place on an element is at its ratio 1."""
    choices = {
        "ceil": ratio > 0,
        "floor": ratio == 1,
        "round_prefer_ceil": ratio >= 0.5,
        "round_prefer_floor": ratio > 0.5,
    }
    return choices[rounding]


def _triangle(t: Array, _: float) -> Array:
    return np.maximum(1 - np.abs(t), 0.0)


_FILTERS = {"cubic": _keys, "lanczos3": _lanczos, "linear": _triangle}
# How far a filter reaches.
_REACH = {"cubic": 2, "lanczos3": 3, "linear": 1}


def _weights(at: Array, shrinks: float, how: Resizing) -> tuple[Array, Array]:
    """Positions around places, also beyond the edges, and their weights."""
    first = np.ceil(at) - 1
    ratio = at - first
    if how.mode == "nearest":
        right = _right(ratio, how.rounding)
        return (first + right)[:, None], np.ones((len(at), 1))
    narrow = min(shrinks, 1.0) if how.antialias else 1.0
    start = int(np.floor(-_REACH[how.mode] / narrow) + 1)
    offsets = np.arange(start, start + 2 * (1 - start))
    off = (offsets - ratio[:, None]) * narrow
    weights = _FILTERS[how.mode](off, how.cubic_coefficient)
    if how.antialias or how.mode == "lanczos3":
        weights = weights / weights.sum(axis=1, keepdims=True)
    return first[:, None] + offsets, weights


def line(
    n: int, count: int, scale: float | None, region: Any, how: Resizing
) -> tuple[Array, Array, Array]:
    """Positions in ``0..n`` that each result reads and their weights: (count, t); who is beyond."""
    if count == 0:
        return np.zeros((0, 1), np.int64), np.ones((0, 1)), np.zeros(0, bool)
    at = _places(n, count, scale, how.coordinates, region)
    positions, weights = _weights(at, count / n if scale is None else scale, how)
    if how.exclude_outside:
        inside = np.where((positions >= 0) & (positions < n), weights, 0.0)
        total = inside.sum(axis=1, keepdims=True)
        weights = np.where(total != 0, inside / np.where(total != 0, total, 1.0), weights)
    crop = how.coordinates == "tf_crop_and_resize"
    beyond = ((at < 0) | (at > n - 1)) & crop
    return np.clip(positions, 0, n - 1).astype(np.int64), weights, beyond


def lines(shape: tuple[int, ...], attributes: tuple[Any, ...]) -> Iterator[tuple[int, Any]]:
    """For each axis that ``resize`` changes its number and its ``line``."""
    size, mode, coordinates, scale, rounding, a, antialias, exclude, region, _ = attributes
    how = Resizing(mode, coordinates, rounding, a, antialias, exclude)
    region = region or (0.0,) * len(size) + (1.0,) * len(size)
    for i, count in enumerate(size):
        axis = len(shape) - len(size) + i
        n, factor = shape[axis], scale[i] if scale else None
        found = line(n, count, factor, (region[i], region[len(size) + i]), how)
        if n != count or not _is_same(*found):
            yield axis, found


def _is_same(positions: Array, weights: Array, beyond: Array) -> bool:
    """Whether each result is the element in its place."""
    here = positions == np.arange(len(positions))[:, None]
    return not beyond.any() and bool(np.where(here, weights == 1, weights == 0).all())


def as_resize(
    size: tuple[int, ...], mode: str, align_corners: bool, antialias: bool
) -> tuple[Any, ...]:
    """The attributes of ``resize`` that are ``interpolate``'s: PyTorch's, or Pillow's filters."""
    if mode.startswith("nearest"):
        exact = mode == "nearest_exact"
        where, rounding = ("half_pixel", "round_prefer_ceil") if exact else ("asymmetric", "floor")
        return (size, "nearest", where, (), rounding, CUBIC, False, False, (), 0.0)
    where = "align_corners" if align_corners else "half_pixel"
    a = -0.5 if antialias and mode == "cubic" else CUBIC
    inside = antialias or mode == "lanczos3"
    return (size, mode, where, (), "round_prefer_floor", a, antialias, inside, (), 0.0)
