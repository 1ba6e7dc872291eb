"""The error function in float64."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from ._precision import wide64

Array = np.ndarray[Any, Any]

# W. J. Cody, "Rational Chebyshev approximations for the error function", 1969: three ranges.
_SMALL_P: Final = (
    1.85777706184603153e-1,
    3.16112374387056560e00,
    1.13864154151050156e02,
    3.77485237685302021e02,
    3.20937758913846947e03,
)
_SMALL_Q: Final = (
    1.0,
    2.36012909523441209e01,
    2.44024637934444173e02,
    1.28261652607737228e03,
    2.84423683343917062e03,
)
MIDDLE_P: Final = (
    2.15311535474403846e-8,
    5.64188496988670089e-1,
    8.88314979438837594e00,
    6.61191906371416295e01,
    2.98635138197400131e02,
    8.81952221241769090e02,
    1.71204761263407058e03,
    2.05107837782607147e03,
    1.23033935479799725e03,
)
MIDDLE_Q: Final = (
    1.0,
    1.57449261107098347e01,
    1.17693950891312499e02,
    5.37181101862009858e02,
    1.62138957456669019e03,
    3.29079923573345963e03,
    4.36261909014324716e03,
    3.43936767414372164e03,
    1.23033935480374942e03,
)
LARGE_P: Final = (
    1.63153871373020978e-2,
    3.05326634961232344e-1,
    3.60344899949804439e-1,
    1.25781726111229246e-1,
    1.60837851487422766e-2,
    6.58749161529837803e-4,
)
LARGE_Q: Final = (
    1.0,
    2.56852019228982242e00,
    1.87295284992346725e00,
    5.27905102951428412e-1,
    6.05183413124413191e-2,
    2.33520497626869185e-3,
)
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
    small = x * _polynomial(_SMALL_P, z) / _polynomial(_SMALL_Q, z)
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
