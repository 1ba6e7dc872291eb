"""Elementwise ops that NumPy lacks or defines otherwise than the numeric spec does."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from .._errors import ArgumentError

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
_MIDDLE_P: Final = (
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
_MIDDLE_Q: Final = (
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
_LARGE_P: Final = (
    1.63153871373020978e-2,
    3.05326634961232344e-1,
    3.60344899949804439e-1,
    1.25781726111229246e-1,
    1.60837851487422766e-2,
    6.58749161529837803e-4,
)
_LARGE_Q: Final = (
    1.0,
    2.56852019228982242e00,
    1.87295284992346725e00,
    5.27905102951428412e-1,
    6.05183413124413191e-2,
    2.33520497626869185e-3,
)
_SMALL_END: Final = 0.46875
_MIDDLE_END: Final = 4.0


def _wide(x: Array) -> Array:
    return np.asarray(x).astype(np.float64)


def _polynomial(coefficients: tuple[float, ...], x: Array) -> Array:
    out = np.full_like(x, coefficients[0])
    for c in coefficients[1:]:
        out = out * x + c
    return out


def _erfc_scaled(a: Array) -> Array:
    """exp(a²)·erfc(a) for a > 0.46875."""
    a = np.minimum(a, 1e150)
    middle = _polynomial(_MIDDLE_P, np.minimum(a, _MIDDLE_END)) / _polynomial(
        _MIDDLE_Q, np.minimum(a, _MIDDLE_END)
    )
    far = np.maximum(a, _MIDDLE_END)
    z = 1.0 / (far * far)
    tail = z * _polynomial(_LARGE_P, z) / _polynomial(_LARGE_Q, z)
    return np.where(a <= _MIDDLE_END, middle, (1.0 / np.sqrt(np.pi) - tail) / far)


def erf64(x: Array) -> Array:
    """Error function in float64."""
    x = _wide(x)
    a = np.abs(x)
    z = np.minimum(x * x, _SMALL_END * _SMALL_END)
    small = x * _polynomial(_SMALL_P, z) / _polynomial(_SMALL_Q, z)
    clipped = np.clip(a, _SMALL_END, 30.0)
    large = np.sign(x) * (1.0 - np.exp(-clipped * clipped) * _erfc_scaled(clipped))
    return np.where(a <= _SMALL_END, small, large)


def erfc64(x: Array) -> Array:
    """Complementary error function in float64, accurate in the right tail."""
    x = _wide(x)
    a = np.clip(np.abs(x), _SMALL_END, 30.0)
    tail = np.exp(-a * a) * _erfc_scaled(a)
    far = np.where(x > 0, tail, 2.0 - tail)
    return np.where(np.isnan(x), x, np.where(np.abs(x) <= _SMALL_END, 1.0 - erf64(x), far))


def erf(x: Array) -> Array:
    return erf64(x).astype(x.dtype)


def sigmoid(x: Array) -> Array:
    wide = _wide(x)
    e = np.exp(-np.abs(wide))
    return np.where(wide >= 0, 1 / (1 + e), e / (1 + e)).astype(x.dtype)


def gelu(x: Array) -> Array:
    wide = _wide(x)
    with np.errstate(invalid="ignore"):
        out = 0.5 * wide * erfc64(-wide / np.sqrt(2.0))
    return np.where(wide == -np.inf, 0.0, out).astype(x.dtype)


def gelu_backward(g: Array, x: Array) -> Array:
    wide = _wide(x)
    with np.errstate(invalid="ignore", over="ignore"):
        slope = 0.5 * erfc64(-wide / np.sqrt(2.0))
        bump = wide * np.exp(-0.5 * wide * wide) / np.sqrt(2.0 * np.pi)
    bump = np.where(np.isinf(wide), 0.0, bump)
    return (_wide(g) * (slope + bump)).astype(x.dtype)


def gelu_tanh(x: Array) -> Array:
    wide = _wide(x)
    with np.errstate(invalid="ignore", over="ignore"):
        bend = np.tanh(np.sqrt(2.0 / np.pi) * (wide + 0.044715 * wide**3))
        out = 0.5 * wide * (1 + bend)
    return np.where(wide == -np.inf, 0.0, out).astype(x.dtype)


def softplus(x: Array) -> Array:
    wide = _wide(x)
    return (np.maximum(wide, 0) + np.log1p(np.exp(-np.abs(wide)))).astype(x.dtype)


def silu(x: Array) -> Array:
    wide = _wide(x)
    with np.errstate(invalid="ignore"):
        out = wide * _wide(sigmoid(wide))
    return np.where(wide == -np.inf, 0.0, out).astype(x.dtype)


def silu_backward(g: Array, x: Array) -> Array:
    wide = _wide(x)
    s = _wide(sigmoid(wide))
    with np.errstate(invalid="ignore"):
        bend = np.where(np.isinf(wide), 0.0, wide * s * (1 - s))
    return (_wide(g) * (s + bend)).astype(x.dtype)


def rounded(function: Any) -> Any:
    """Make floor, ceil, round, trunc leave integers alone."""

    def apply(x: Array) -> Array:
        return x if x.dtype.kind in "iu" else function(x)

    return apply


def in_float64(function: Any) -> Any:
    """Run a function on float64 and round once, to the operand's type."""

    def apply(x: Array) -> Array:
        return function(_wide(x)).astype(x.dtype)

    return apply


def through_float32(function: Any) -> Any:
    """Run a NumPy function on float32 for narrow floats: it lacks them, or rounds half way."""

    def apply(*arrays: Any) -> Array:
        dtype = next(a.dtype for a in arrays if isinstance(a, np.ndarray | np.generic))
        if dtype.name not in ("bfloat16", "float16"):
            return function(*arrays)
        narrow = [a.astype(np.float32) if hasattr(a, "astype") else a for a in arrays]
        return function(*narrow).astype(dtype)

    return apply


def _is_int(*operands: Any) -> bool:
    kinds = [a.dtype.kind for a in operands if isinstance(a, np.ndarray | np.generic)]
    return bool(kinds) and kinds[0] in "iu"


def floor_divide(x1: Any, x2: Any) -> Array:
    if not _is_int(x1, x2):
        return through_float32(lambda a, b: np.floor(np.divide(a, b)))(x1, x2)
    # NumPy gives 0 for a zero divisor and wraps INT_MIN // -1, as the spec asks.
    return np.floor_divide(x1, x2)


def remainder(x1: Any, x2: Any) -> Array:
    return np.remainder(x1, x2)


def power(x1: Any, x2: Any) -> Array:
    if _is_int(x1, x2) and np.any(np.less(x2, 0)):
        raise ArgumentError(
            "pow",
            "integer power with a negative exponent",
            got=int(np.min(x2)),
            expected="exponents >= 0",
            hint="x.astype(pt.float32)",
        )
    return np.power(x1, x2)


def clip(x: Array, low: Any, high: Any) -> Array:
    out = x
    if low is not None:
        out = np.maximum(out, np.asarray(low).astype(x.dtype))
    if high is not None:
        out = np.minimum(out, np.asarray(high).astype(x.dtype))
    return out


def cast(x: Array, dtype: Any) -> Array:
    """Convert as the numeric spec says: truncate, nan to 0, saturate, wrap between ints."""
    target = dtype.numpy
    if dtype.kind == "Bool":
        return x != 0
    is_float = x.dtype.kind == "f" or x.dtype.name == "bfloat16"
    if dtype.kind == "Int" and is_float:
        return _saturate(np.trunc(_wide(x)), target)
    with np.errstate(over="ignore"):
        return np.asarray(x).astype(target)


def _saturate(whole: Array, target: np.dtype[Any]) -> Array:
    info = np.iinfo(target)
    low, high = float(info.min), float(info.max)
    inside = np.where(np.isnan(whole), 0.0, np.clip(whole, low, high))
    # float(max) may round up to max + 1; those values take the limit itself.
    safe = np.where(inside >= high, 0.0, inside).astype(target)
    return np.where(inside >= high, np.array(info.max, target), safe)
