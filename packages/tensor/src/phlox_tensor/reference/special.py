"""Special functions in float64, by Python's own and by other methods than the expansions."""

from __future__ import annotations

from math import copysign, erf, exp, inf, isinf, isnan, nan, pi, sqrt
from math import erfc as erfc_of
from math import lgamma as _lgamma
from typing import Any

import numpy as np

from .._values.dtype import finfo
from ._precision import first_dtype, is_float, wide64

Array = np.ndarray[Any, Any]


def _each(function: Any, x: Array) -> Array:
    wide = wide64(x)
    return np.vectorize(function, otypes=[float])(wide).astype(x.dtype)


def _digamma_of(x: float) -> float:
    """Upward to 30, then the first terms of the asymptotic series; mirrored below 0."""
    if isnan(x) or x == -inf:
        return nan
    if x == 0:
        return -copysign(inf, x)
    if x < 0:
        return nan if x == int(x) else _digamma_of(1 - x) - pi / np.tan(pi * (x - round(x)))
    out = 0.0
    while x < 30:
        out -= 1 / x
        x += 1
    part = (1 / x) ** 2
    tail = part * (1 / 12 - part * (1 / 120 - part * (1 / 252 - part / 240)))
    return out + float(np.log(x)) - 0.5 / x - tail


def digamma(x: Array) -> Array:
    return _each(_digamma_of, x)


def erfc(x: Array) -> Array:
    return _each(erfc_of, x)


def _erfinv_of(y: float) -> float:
    if isnan(y) or abs(y) >= 1:
        return inf * y if abs(y) == 1 else nan
    if y > 0:  # below 0, (1 + y) / 2 is small and keeps its digits
        return -_erfinv_of(-y)
    if y == 0:
        return y
    from statistics import NormalDist  # noqa: PLC0415 - slow, and rarely needed

    x: float = NormalDist().inv_cdf((1 + y) / 2) / sqrt(2)
    # One step of Newton's method: (1 + y) / 2 has lost the last digits of a small y.
    gap = erf(x) - y if x > -0.5 else erfc_of(-x) - (1 + y)
    return x - gap * exp(x * x) * sqrt(pi) / 2


def erfinv(x: Array) -> Array:
    return _each(_erfinv_of, x)


def isclose(x1: Any, x2: Any, rtol: float, atol: float, equal_nan: bool) -> Array:
    a, b = np.asarray(x1), np.asarray(x2)
    if a.dtype.kind in "iu" and b.dtype.kind in "iu":
        # Unsigned differences do not wrap.
        gap = np.maximum(a, b).astype(np.uint64) - np.minimum(a, b).astype(np.uint64)
        return gap.astype(np.float64) <= atol + rtol * np.abs(b.astype(np.float64))
    wide = [wide64(x) if is_float(x) else x.astype(np.float64) for x in (a, b)]
    return np.isclose(wide[0], wide[1], rtol=rtol, atol=atol, equal_nan=equal_nan)


def _lgamma_of(x: float) -> float:
    if isinf(x) or (x <= 0 and x == int(x)):
        return inf
    try:
        return _lgamma(x)
    except OverflowError:
        return inf


def lgamma(x: Array) -> Array:
    return _each(_lgamma_of, x)


def nan_to_num(x: Array, number: float, high: float | None, low: float | None) -> Array:
    limits = finfo(x.dtype.name)
    top = float(limits.max) if high is None else high
    bottom = float(limits.min) if low is None else low
    out = np.where(x == np.inf, top, np.where(x == -np.inf, bottom, wide64(x)))
    return np.where(np.isnan(wide64(x)), number, out).astype(x.dtype)


def lerp(x1: Array, x2: Array, weight: Array) -> Array:
    a, b, w = wide64(x1), wide64(x2), wide64(weight)
    with np.errstate(all="ignore"):
        gap = b - a
        ends = np.where(w < 0.5, a + w * gap, b - (1 - w) * gap)
        # Beside an infinity of the operands only the sign of a number counts.
        start = np.where(np.isinf(b) & np.isfinite(a), np.sign(a), a)
        end = np.where(np.isinf(a) & np.isfinite(b), np.sign(b), b)
        found = np.where(np.isinf(gap), start * (1 - w) + end * w, ends)
        return found.astype(first_dtype((x1, x2, weight)))


def moving_average(running: Array, batch: Array, share: float, factor: float) -> Array:
    found = wide64(running) * (1.0 - share) + wide64(batch) * (factor * share)
    return found.astype(first_dtype((running, batch)))
