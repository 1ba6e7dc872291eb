"""Whether two tensors, or trees of them, are close, with a report that says where they are not."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from math import inf
from numbers import Integral, Number, Real
from typing import Any, Final

import numpy as np

from .._data.spectrum import Spectrum
from .._errors.classes import WrongTypeError
from .._op.attributes import NORMALIZERS
from .._values.tensor import Tensor
from ..shapes.special import not_negative

Array = np.ndarray[Any, Any]

# Relative and absolute, by element type, as PyTorch has them; complex ones as of their parts.
_TOLERANCES: Final = {
    "bfloat16": (1.6e-2, 1e-5),
    "complex128": (1e-7, 1e-7),
    "complex64": (1.3e-6, 1e-5),
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

    An element is close where ``|got - want| <= atol + rtol·|want|``. Dicts, and lists and tuples
    that hold more than numbers, are compared part by part.

    Args:
        got: what was computed.
        want: what it should be.
        rtol: relative tolerance; by default that of the element type, 0 for integers.
        atol: absolute tolerance; the same.
        equal_nan: nan is close to nan.
        check_dtype: types have to agree; numbers and lists take that of ``got``.

    Raises:
        AssertionError: saying how many elements differ, by how much, and which.
        ArgumentError: for a tolerance that is negative or no number.
        WrongTypeError: for what is no number.

    Example:
        >>> assert_close(pt.asarray([0.1 + 0.2]), [0.3])
        >>> assert_close({"a": pt.ones(2)}, {"a": [1.0, 1.0]})
    """
    as_number = NORMALIZERS["float"]
    rtol, atol = (
        bound if bound is None else as_number(bound, name, "assert_close", 0)
        for name, bound in (("rtol", rtol), ("atol", atol))
    )
    not_negative("assert_close", rtol=rtol or 0.0, atol=atol or 0.0)
    for path, a, b in _pairs(got, want, ""):
        problem = _problem(a, b, rtol, atol, equal_nan, check_dtype)
        if problem is not None:
            raise AssertionError(f"{path}: {problem}" if path else problem)


def _pairs(got: Any, want: Any, path: str) -> Iterator[tuple[str, Any, Any]]:
    """The parts of two trees that stand at one place, with the way there."""
    inside = _children(got), _children(want)
    a, b = inside
    if a is None or (b is None and not isinstance(got, Mapping)):
        if b is not None and isinstance(want, Mapping):
            raise AssertionError(f"{path or 'the whole'}: got no dict, expected {list(b)}")
        yield path, got, want
        return
    if b is None or a.keys() != b.keys():
        expected = type(want).__name__ if b is None else str(list(b))
        raise AssertionError(f"{path or 'the whole'}: got {list(a)}, expected {expected}")
    for key, value in a.items():
        yield from _pairs(value, b[key], f"{path}[{key!r}]")


def _children(value: Any) -> dict[Any, Any] | None:
    """The parts of a container by key or number; None for a tensor, a number and lists of them."""
    if isinstance(value, Mapping):
        return dict(value)
    if isinstance(value, list | tuple) and not isinstance(value, Spectrum):
        return dict(enumerate(value)) if any(map(_is_part, value)) or _is_ragged(value) else None
    return None


def _is_ragged(value: Sequence[Any]) -> bool:
    """Whether these are lists of numbers that are no array."""
    if not any(isinstance(part, list | tuple) for part in value):
        return False
    try:
        np.asarray(value)
    except ValueError:
        return True
    return False


def _is_part(value: Any) -> bool:
    if isinstance(value, list | tuple) and not isinstance(value, Spectrum):
        return any(map(_is_part, value))
    return isinstance(value, Mapping | Spectrum | Tensor | np.ndarray)


def _problem(
    got: Any,
    want: Any,
    rtol: float | None,
    atol: float | None,
    equal_nan: bool,
    check_dtype: bool,
) -> str | None:
    a, b = _array(got), _array(want)
    if a.shape != b.shape:
        return f"shapes differ: got {a.shape}, expected {b.shape}"
    typed = hasattr(got, "dtype") and hasattr(want, "dtype")
    if check_dtype and typed and a.dtype != b.dtype:
        return f"types differ: got {a.dtype.name}, expected {b.dtype.name}"
    types = [x.dtype.name for x in ((a, b) if typed else (a,))]
    relative, absolute = max(_TOLERANCES.get(name, (0.0, 0.0)) for name in types)
    relative = relative if rtol is None else rtol
    absolute = absolute if atol is None else atol
    if _is_whole(a) and _is_whole(b) and not relative and not absolute:
        far = np.asarray(a != b)
    else:
        far = _far(_wide(a), _wide(b), relative, absolute, equal_nan)
    return _report(a, b, far, relative, absolute) if far.any() else None


def _array(value: Any) -> Array:
    array = value.numpy() if isinstance(value, Tensor) else np.asarray(value)
    numbers = array.dtype.kind not in "OSUMm" or _each(array, Number)
    if not numbers:
        got, expected = type(value).__name__, "tensors, arrays, numbers, or containers of them"
        raise WrongTypeError("assert_close", "no numbers", got=got, expected=expected)
    return array


def _each(array: Array, kind: type) -> bool:
    """Whether objects, such as integers beyond 64 bits, are all of a kind of number."""
    return array.dtype.kind == "O" and all(isinstance(x, kind) for x in array.flat)


def _is_whole(array: Array) -> bool:
    return array.dtype.kind in "iub" or _each(array, Integral)


def _wide(array: Array) -> Array:
    is_complex = array.dtype.kind == "c" or (array.dtype.kind == "O" and not _each(array, Real))
    wide = np.complex128 if is_complex else np.float64
    try:
        return array.astype(wide)
    except OverflowError:  # integers beyond the range of floats
        return np.vectorize(_float, otypes=[wide])(array)


def _float(number: Any) -> Any:
    if isinstance(number, complex):
        return number
    try:
        return float(number)
    except OverflowError:
        return inf if number > 0 else -inf


def _far(a: Array, b: Array, rtol: float, atol: float, equal_nan: bool) -> Array:
    with np.errstate(invalid="ignore", over="ignore"):
        near = np.abs(a - b) <= atol + rtol * np.abs(b)
    near = (near & np.isfinite(a) & np.isfinite(b)) | (a == b)
    return np.asarray(~(near | (np.isnan(a) & np.isnan(b)) if equal_nan else near))


def _gap(a: Array, b: Array) -> Array:
    """How far apart elements are; of integers as whole numbers, which floats would round."""
    if _is_whole(a) and _is_whole(b):
        return _wide(np.abs(a.astype(object) - b.astype(object)))
    return np.asarray(np.abs(_wide(a) - _wide(b)))


def _report(a: Array, b: Array, far: Array, rtol: float, atol: float) -> str:
    with np.errstate(all="ignore"):
        gap = _gap(a, b)
        ratio = gap / np.abs(_wide(b))
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
