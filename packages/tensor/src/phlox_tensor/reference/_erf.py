"""The error function in float64."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from ..shapes._cody import LARGE_P, LARGE_Q, MIDDLE_P, MIDDLE_Q, SMALL_P, SMALL_Q
from ._precision import wide64

Array = np.ndarray[Any, Any]

_SMALL_END: Final = 0.46875
_MIDDLE_END: Final = 4.0


def _polynomial(coefficients: tuple[float, ...], x: Array) -> Array:
    out = np.full_like(x, coefficients[0])
    for c in coefficients[1:]:
        out = out * x + c
    return out


def _erfc_scaled(a: Array) -> Array:
    """exp(a²)·erfc(a) for a > 0.46875."""
    a = np.minimum(a, 1e150)
    middle = _polynomial(MIDDLE_P, np.minimum(a, _MIDDLE_END)) / _polynomial(
        MIDDLE_Q, np.minimum(a, _MIDDLE_END)
    )
    far = np.maximum(a, _MIDDLE_END)
    z = 1.0 / (far * far)
    tail = z * _polynomial(LARGE_P, z) / _polynomial(LARGE_Q, z)
    return np.where(a <= _MIDDLE_END, middle, (1.0 / np.sqrt(np.pi) - tail) / far)


def erf64(x: Array) -> Array:
    """Error function in float64."""
    x = wide64(x)
    a = np.abs(x)
    z = np.minimum(x * x, _SMALL_END * _SMALL_END)
    small = x * _polynomial(SMALL_P, z) / _polynomial(SMALL_Q, z)
    clipped = np.clip(a, _SMALL_END, 30.0)
    large = np.sign(x) * (1.0 - np.exp(-clipped * clipped) * _erfc_scaled(clipped))
    return np.where(a <= _SMALL_END, small, large)


def erfc64(x: Array) -> Array:
    """Complementary error function in float64, accurate in the right tail."""
    x = wide64(x)
    a = np.clip(np.abs(x), _SMALL_END, 30.0)
    tail = np.exp(-a * a) * _erfc_scaled(a)
    far = np.where(x > 0, tail, 2.0 - tail)
    return np.where(np.isnan(x), x, np.where(np.abs(x) <= _SMALL_END, 1.0 - erf64(x), far))
