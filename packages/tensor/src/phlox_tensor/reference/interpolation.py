"""Images in another size, place by place: where a result reads, and with which weights."""

from __future__ import annotations

from collections.abc import Iterator
from math import floor
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ._precision import wide64

if TYPE_CHECKING:
    from fractions import Fraction

Array = np.ndarray[Any, Any]
Taps = dict[int, float]


class Axis(NamedTuple):
    """An axis of n elements that shall have ``size``; without a scale it is ``size / n``."""

    n: int
    size: int
    mode: str
    coordinates: str
    scale: float | None = None
    rounding: str = "floor"
    cubic: float = -0.75
    antialias: bool = False
    exclude_outside: bool = False
    region: tuple[float, float] = (0.0, 1.0)


def _fraction(above: int, below: int = 1) -> Fraction:
    from fractions import Fraction  # noqa: PLC0415 - slow, and rarely needed

    return Fraction(above, below)


def _back(axis: Axis, at: Fraction) -> float:
    """A place in the result as one among the elements; quotients of integers are exact."""
    if axis.scale is None:
        return float(at * _fraction(axis.n, axis.size))
    return float(at) / axis.scale


def _place(axis: Axis, i: int) -> float:
    """Where the result i lies, in the words of ONNX's Resize."""
    last = axis.n - 1
    if axis.coordinates == "align_corners":
        return i * last / max(axis.size - 1, 1)
    if axis.coordinates == "tf_crop_and_resize":
        start, end = axis.region
        if axis.size == 1:
            return start * last + (end - start) * last / 2
        return start * last + i * (end - start) * last / (axis.size - 1)
    if axis.coordinates == "asymmetric":
        return _back(axis, _fraction(i))
    if axis.coordinates == "tf_half_pixel_for_nn":
        return _back(axis, i + _fraction(1, 2))
    return _middle(axis, i)


def _middle(axis: Axis, i: int) -> float:
    """Where the middle of the pixel i lies, from that of the first."""
    half = _fraction(1, 2)
    if axis.coordinates == "pytorch_half_pixel" and axis.size == 1:
        return 0.0
    if axis.scale is None:
        return float((i + half) * _fraction(axis.n, axis.size) - half)
    if axis.coordinates == "half_pixel_symmetric":
        return (axis.n - 1) / 2 + (i - (axis.size - 1) / 2) / axis.scale
    return _back(axis, i + half) - 0.5


def _nearest(at: float, rounding: str) -> int:
    below = floor(at)
    part = at - below
    up = {
        "ceil": part > 0,
        "floor": False,
        "round_prefer_ceil": part >= 0.5,
        "round_prefer_floor": part > 0.5,
    }
    return below + up[rounding]


def _height(axis: Axis, t: float) -> float:
    """The filter at the distance t: a triangle, Keys' cubic, or Lanczos'."""
    t = abs(t)
    if axis.mode == "linear":
        return max(1 - t, 0.0)
    if axis.mode == "lanczos3":
        return float(np.sinc(t) * np.sinc(t / 3)) if t < 3 else 0.0
    a = axis.cubic
    if t <= 1:
        return ((a + 2) * t - (a + 3)) * t * t + 1
    return (((t - 5) * t + 8) * t - 4) * a if t < 2 else 0.0


def _taps(axis: Axis, i: int) -> Taps:
    """The elements that the result i reads, and their weights; those beyond are at the edge."""
    at = _place(axis, i)
    if axis.mode == "nearest":
        return {min(max(_nearest(at, axis.rounding), 0), axis.n - 1): 1.0}
    shrink = axis.size / axis.n if axis.scale is None else axis.scale
    narrow = min(shrink, 1.0) if axis.antialias else 1.0
    reach = floor({"cubic": 2, "lanczos3": 3, "linear": 1}[axis.mode] / narrow) + 1
    around = range(floor(at) - reach, floor(at) + reach + 2)
    found = {j: _height(axis, (j - at) * narrow) for j in around}
    if axis.antialias or axis.mode == "lanczos3":
        total = sum(found.values())
        found = {j: weight / total for j, weight in found.items()}
    if axis.exclude_outside:
        inside = {j: weight for j, weight in found.items() if 0 <= j < axis.n}
        total = sum(inside.values())
        found = {j: weight / total for j, weight in inside.items()} if total else found
    out: Taps = {}
    for j, weight in found.items():
        if weight:
            near = min(max(j, 0), axis.n - 1)
            out[near] = out.get(near, 0.0) + weight
    return out


def _along(x: Array, along: int, axis: Axis) -> Array:
    """Each result the sum of its taps; elements of no weight are not read."""
    shape = (*x.shape[:along], axis.size, *x.shape[along + 1 :])
    out = np.zeros(shape)
    for i in range(axis.size):
        for j, weight in _taps(axis, i).items():
            to: Any = (slice(None),) * along + (i,)
            out[to] += np.take(x, j, axis=along) * weight
    return out


def _image(n: int, count: int, mode: str, align_corners: bool) -> Axis:
    """How ``interpolate2d`` reads along an axis."""
    if mode == "nearest":
        return Axis(n, count, "nearest", "asymmetric")
    where = "align_corners" if align_corners else "half_pixel"
    return Axis(n, count, {"bicubic": "cubic", "bilinear": "linear"}[mode], where)


def interpolate2d(x: Array, size: tuple[int, int], mode: str, align_corners: bool) -> Array:
    out = wide64(x)
    for along in (3, 2):
        out = _along(out, along, _image(x.shape[along], size[along - 2], mode, align_corners))
    return out.astype(x.dtype)


def interpolate2d_backward(
    g: Array, input_shape: tuple[int, ...], mode: str, align_corners: bool
) -> Array:
    out = wide64(g)
    for along in (2, 3):
        n, count = input_shape[along], g.shape[along]
        sums = np.zeros((*out.shape[:along], n, *out.shape[along + 1 :]))
        for i in range(count):
            for j, weight in _taps(_image(n, count, mode, align_corners), i).items():
                to: Any = (slice(None),) * along + (j,)
                sums[to] += np.take(out, i, axis=along) * weight
        out = sums
    return out.astype(g.dtype)


def _axes(shape: tuple[int, ...], attributes: tuple[Any, ...]) -> Iterator[tuple[int, Axis]]:
    """The axes that ``resize`` looks at, by number."""
    size, mode, coordinates, scale, rounding, cubic, antialias, exclude, region, _ = attributes
    rank = len(size)
    for i, count in enumerate(size):
        along = len(shape) - rank + i
        part = (region[i], region[rank + i]) if region else (0.0, 1.0)
        factor = scale[i] if scale else None
        how = (mode, coordinates, factor, rounding, cubic, antialias, exclude, part)
        yield along, Axis(shape[along], count, *how)


def resize(x: Array, *attributes: Any) -> Array:
    out = wide64(x)
    outside = np.zeros((1,) * x.ndim, bool)
    for along, axis in _axes(x.shape, attributes):
        out = _along(out, along, axis)
        if axis.coordinates == "tf_crop_and_resize":
            places = np.array([_place(axis, i) for i in range(axis.size)])
            beyond = (places < 0) | (places > axis.n - 1)
            outside = outside | beyond.reshape(-1, *(1,) * (x.ndim - 1 - along))
    return np.where(outside, attributes[-1], out).astype(x.dtype)


def interpolate(
    x: Array, size: tuple[int, ...], mode: str, align_corners: bool, antialias: bool
) -> Array:
    out = wide64(x)
    for i, count in enumerate(size):
        n = x.shape[i + 2]
        if mode == "nearest":
            axis = Axis(n, count, "nearest", "asymmetric")
        elif mode == "nearest_exact":
            axis = Axis(n, count, "nearest", "half_pixel", rounding="round_prefer_ceil")
        else:
            where = "align_corners" if align_corners else "half_pixel"
            cubic = -0.5 if antialias and mode == "cubic" else -0.75
            edge = antialias or mode == "lanczos3"
            axis = Axis(n, count, mode, where, None, "floor", cubic, antialias, edge)
        out = _along(out, i + 2, axis)
    return out.astype(x.dtype)
