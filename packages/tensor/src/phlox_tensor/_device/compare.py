"""When two results agree: equal shapes and types, equal special values, close numbers."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from .._op.declaration import Op, is_built_in
from .._values.dtype import DType, finfo, float32
from .backend import Backend

Array = np.ndarray[Any, Any]
# In units of epsilon of the largest value: drivers of GPUs choose how a kernel rounds.
_CONTRACTED: Final = 256
# In ulp: a narrow result is rounded, and what it is made of may have been rounded once.
_ROUNDINGS: Final = 2.0


def same_bits(left: Array, right: Array, dtype: DType, device: Backend) -> bool:
    """Whether two arrays have equal bits; on devices that are not strict, nearly equal floats."""
    if left.tobytes() == right.tobytes():
        return True
    if device.strict or dtype.kind != "Float":
        return False
    mine, own = left.astype("float64"), right.astype("float64")
    finite = abs(own) < np.inf
    nan = ~(abs(mine) <= np.inf) & ~(abs(own) <= np.inf)
    if not (finite | nan | (mine == own)).all():
        return False
    largest = abs(own[finite]).max(initial=0.0)
    return bool((abs(mine[finite] - own[finite]) <= _CONTRACTED * finfo(dtype).eps * largest).all())


def narrow_error(op: Op) -> float | None:
    """What ``disagreement`` takes as ``rounded`` for an op.

    Those of the package compute narrow floats wide and round once, unless they declare it.
    """
    return 0.0 if op.tested.rounded is None and is_built_in(op) else op.tested.rounded


def disagreement(
    got: Array,
    want: Array,
    *,
    ulp: float,
    atol: float,
    rounded: float | None = None,
    signed_zeros: bool = False,
    denormals: bool = True,
) -> str | None:
    """Say how ``got`` differs from ``want``, or None.

    Args:
        got: the result under test; its type decides the epsilon.
        want: the expected values, perhaps wider than the result.
        ulp: allowed difference relative to the expected value, in units of epsilon.
        atol: allowed absolute difference in units of epsilon.
        rounded: given, that epsilon is float32's for narrower results too; they may be rounded,
            and off by so many of their own epsilons.
        signed_zeros: whether the sign of a zero counts.
        denormals: whether denormals differ from zero.
    """
    if got.shape != want.shape:
        return f"shape {got.shape}, expected {want.shape}"
    if got.size == 0:
        return None
    if got.dtype.kind in "iub" or want.dtype.kind in "iub":
        bad = np.asarray(got != want)
        return _first(bad, got, want) if bad.any() else None
    wide_got = got.astype(np.float64)
    with np.errstate(over="ignore"):
        wide_want = want.astype(got.dtype).astype(np.float64)
        exact = want.astype(np.float64)
    eps, steps = float(finfo(got.dtype).eps), ulp
    narrow = rounded is not None and got.dtype.itemsize < float32.itemsize
    if narrow:
        steps = min(ulp + atol, _ROUNDINGS)
    finite = np.isfinite(wide_want) & np.isfinite(wide_got)
    with np.errstate(invalid="ignore", over="ignore"):
        allowed = (finfo(float32).eps if narrow else eps) * (ulp * np.abs(exact) + atol)
        if narrow:
            allowed = allowed + eps * (steps * np.abs(exact) + (rounded or 0.0))
        near = np.abs(wide_got - exact) <= allowed
        # Rounding to the result's type is free: half an ulp, and denormals all of one.
        near |= np.abs(wide_got - wide_want) <= _spacing(wide_want, got.dtype) * max(steps, 0) / 2
        near |= wide_got == wide_want
    if not denormals:
        least = float(finfo(got.dtype).smallest_normal)
        near |= finite & (np.abs(wide_got) < least) & (np.abs(wide_want) < least)
    same = (wide_got == wide_want) | (np.isnan(wide_got) & np.isnan(wide_want))
    edge = _near_overflow(wide_got, exact, got.dtype, steps)
    bad = ~np.where(finite, near, same | edge)
    if signed_zeros:
        zeros = (wide_got == 0) & (wide_want == 0)
        bad |= zeros & (np.signbit(wide_got) != np.signbit(wide_want))
    return _first(bad, got, want) if bad.any() else None


def _spacing(values: Array, dtype: Any) -> Array:
    info = finfo(dtype)
    tiny = float(info.smallest_subnormal)
    with np.errstate(invalid="ignore"):
        return np.maximum(np.abs(np.where(np.isfinite(values), values, 0)) * float(info.eps), tiny)


def _near_overflow(got: Array, exact: Array, dtype: Any, ulp: float) -> Array:
    """Within tolerance of the largest number, infinity and that number are one."""
    info = finfo(dtype)
    limit = float(info.max) * (1 - (ulp + 1) * float(info.eps))
    with np.errstate(invalid="ignore"):
        far = np.isfinite(exact) & (np.abs(exact) >= limit) & (np.abs(got) >= limit)
        return np.asarray(far & (np.sign(got) == np.sign(exact)) & (ulp > 0))


def _first(bad: Array, got: Array, want: Array) -> str:
    place = tuple(int(i) for i in np.argwhere(bad)[0]) if bad.ndim else ()
    count = int(bad.sum())
    return f"{count} of {bad.size} differ; at {place}: got {got[place]!r}, expected {want[place]!r}"
