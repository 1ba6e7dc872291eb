"""Whether two tensors are close, with a report that says where they are not."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from .._tensor import Tensor

Array = np.ndarray[Any, Any]

# Relative and absolute, by element type, as PyTorch has them.
_TOLERANCES: Final = {
    "bfloat16": (1.6e-2, 1e-5),
    "float16": (1e-3, 1e-5),
    "float32": (1.3e-6, 1e-5),
    "float64": (1e-7, 1e-7),
}
_SHOWN: Final = 5


def assert_close(
    got: Any,
    want: Any,
    *,
    rtol: float | None = None,
    atol: float | None = None,
    equal_nan: bool = True,
    check_dtype: bool = True,
) -> None:
    """Check that two tensors, arrays or numbers have one shape, one type and close values.

    An element is close where ``|got - want| <= atol + rtol·|want|``.

    Args:
        got: what was computed.
        want: what it should be.
        rtol: relative tolerance; by default that of the element type, 0 for integers.
        atol: absolute tolerance; the same.
        equal_nan: nan is close to nan.
        check_dtype: types have to agree; numbers and lists take that of ``got``.

    Raises:
        AssertionError: saying how many elements differ, by how much, and which.

    Example:
        >>> assert_close(pt.asarray([0.1 + 0.2]), [0.3])
    """
    a, b = _array(got), _array(want)
    if a.shape != b.shape:
        raise AssertionError(f"shapes differ: got {a.shape}, expected {b.shape}")
    typed = hasattr(got, "dtype") and hasattr(want, "dtype")
    if check_dtype and typed and a.dtype != b.dtype:
        raise AssertionError(f"types differ: got {a.dtype.name}, expected {b.dtype.name}")
    types = [x.dtype.name for x in ((a, b) if typed else (a,))]
    relative, absolute = max(_TOLERANCES.get(name, (0.0, 0.0)) for name in types)
    relative = relative if rtol is None else rtol
    absolute = absolute if atol is None else atol
    if a.dtype.kind in "iub" and b.dtype.kind in "iub" and not relative and not absolute:
        far = np.asarray(a != b)
    else:
        far = _far(a.astype(np.float64), b.astype(np.float64), relative, absolute, equal_nan)
    if far.any():
        raise AssertionError(_report(a, b, far, relative, absolute))


def _array(value: Any) -> Array:
    return value.numpy() if isinstance(value, Tensor) else np.asarray(value)


def _far(a: Array, b: Array, rtol: float, atol: float, equal_nan: bool) -> Array:
    with np.errstate(invalid="ignore", over="ignore"):
        near = np.abs(a - b) <= atol + rtol * np.abs(b)
    near = (near & np.isfinite(a) & np.isfinite(b)) | (a == b)
    return np.asarray(~(near | (np.isnan(a) & np.isnan(b)) if equal_nan else near))


def _report(a: Array, b: Array, far: Array, rtol: float, atol: float) -> str:
    wide_a, wide_b = a.astype(np.float64), b.astype(np.float64)
    with np.errstate(all="ignore"):
        gap = np.abs(wide_a - wide_b)
        ratio = gap / np.abs(wide_b)
    lines = [
        f"{int(far.sum())} of {far.size} elements differ by more than {atol:g} + {rtol:g}·|want|"
    ]
    for name, values in (("absolute", gap), ("relative", ratio)):
        finite = np.where(far & np.isfinite(values), values, -1.0)
        place = np.unravel_index(int(finite.argmax()), finite.shape)
        if finite[place] >= 0:
            lines.append(f"largest {name} difference {finite[place]:g} at {_place(place)}")
    for place in list(zip(*np.nonzero(np.atleast_1d(far)), strict=True))[:_SHOWN]:
        at = place if far.ndim else ()
        lines.append(f"  at {_place(at)}: got {a[at]}, expected {b[at]}")
    return "\n".join(lines)


def _place(index: Any) -> str:
    return str(tuple(int(i) for i in index))
