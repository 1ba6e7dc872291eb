"""Functions that no declaration expresses: results that are no tensors, operands of many types."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce
from typing import Any, Final

import numpy as np

from .._errors.classes import ArgumentError, DTypeError, KindError, WrongTypeError
from .._errors.foreign import type_name
from .._op.attributes import NORMALIZERS
from .._values import dtype as _dtype
from .._values.dtype import DType, DTypeLike, KindName, as_dtype, number_for
from .._values.kinds import AnyKind, NumKind
from .._values.tensor import Tensor
from ..ops import matrices, movement
from ..reference.special import isclose
from ..shapes import _broadcast
from ..shapes.special import not_negative

Scalar = bool | int | float
_KINDS: Final[dict[str, Callable[[DType], bool]]] = {
    "bool": lambda d: d.kind == "Bool",
    "complex floating": lambda d: False,
    "integral": lambda d: d.kind == "Int",
    "numeric": lambda d: d.kind != "Bool",
    "real floating": lambda d: d.kind == "Float",
    "signed integer": lambda d: d.kind == "Int" and d.signed,
    "unsigned integer": lambda d: d.kind == "Int" and not d.signed,
}


# Takes tensors as arguments of their own, and leaves each its kind and element type.
def broadcast_arrays(*arrays: Tensor[AnyKind]) -> tuple[Tensor[AnyKind], ...]:
    """Return the tensors with the shape they all broadcast to.

    Example:
        >>> [x.tolist() for x in broadcast_arrays(asarray([1, 2]), asarray([[3], [4]]))]
        [[[1, 2], [1, 2]], [[3, 3], [4, 4]]]
    """
    shape = _broadcast.broadcast_shapes((x.shape for x in arrays), "broadcast_arrays")
    return tuple(movement.broadcast_to(x, shape) for x in arrays)


def broadcast_shapes(*shapes: Sequence[int]) -> tuple[int, ...]:
    """Return the shape that all broadcast to.

    Raises:
        ShapeError: when two sizes differ and neither is 1.
        ArgumentError: for what is no shape.

    Example:
        >>> broadcast_shapes((3, 1), (4,))
        (3, 4)
    """
    dims = [NORMALIZERS["Shape"](shape, "shape", "broadcast_shapes", 0) for shape in shapes]
    return _broadcast.broadcast_shapes(dims, "broadcast_shapes")


def can_cast(from_: DTypeLike | Tensor[Any], to: DTypeLike, /) -> bool:
    """Whether promotion takes one element type to the other: then no value is lost.

    Example:
        >>> can_cast(int8, int16), can_cast(int16, int8), can_cast(int8, float32)
        (True, False, False)
    """
    own, wanted = _type_of(from_, "can_cast"), as_dtype(to, "can_cast")
    try:
        return _promoted(own, wanted, "can_cast") is wanted
    except (DTypeError, KindError):
        return False


def einsum(equation: str, /, *arrays: Tensor[NumKind]) -> Tensor[NumKind]:
    """Return the sum of products over the labels that the result does not have.

    Pairs are multiplied so that what is in between stays small, each as a product of matrices.

    Args:
        equation: a label for each axis of each tensor, then those of the result; without an arrow
            the labels that occur once, in order. ``...`` stands for axes that broadcast.
        arrays: as many as the equation has terms.

    Raises:
        ArgumentError: when the text is no equation, or names another number of tensors.
        ShapeError: when labels and axes do not fit.

    Example:
        >>> einsum("ij,jk->ik", ones((2, 3)), ones((3, 4))).shape
        (2, 4)
    """
    given: tuple[Any, ...] = (equation, *arrays)
    if code := _as_equation(given):
        what, got = "no equation leads", ", ".join(map(type_name, given))
        raise WrongTypeError("einsum", what, got=got, expected="a str, tensors", hint=code)
    return matrices.einsum(arrays, equation)


def _as_equation(given: tuple[Any, ...]) -> str | None:
    """The call for one list of tensors, or for tensors and lists of labels by turns; else None."""
    if len(given) == 2 and isinstance(given[0], str) and isinstance(given[1], list | tuple):
        return f"px.einsum({given[0]!r}, *tensors)"
    terms = [*given[1::2], *given[2 * (len(given) // 2) :]]
    if isinstance(given[0], str) or not all(isinstance(each, list | tuple) for each in terms):
        return None
    letters = [
        "".join("..." if n is Ellipsis else chr(ord("a") + n) for n in each) for each in terms
    ]
    text = "->".join((",".join(letters[: len(given) // 2]), *letters[len(given) // 2 :]))
    return f"px.einsum({text!r}, {', '.join('xyzuvw'[: len(given) // 2])})"


def isdtype(dtype: DTypeLike, kind: DTypeLike | tuple[DTypeLike, ...]) -> bool:
    """Whether an element type is of a kind, or of one of several.

    Args:
        dtype: the element type.
        kind: an element type, or ``"bool"``, ``"signed integer"``, ``"unsigned integer"``,
            ``"integral"``, ``"real floating"``, ``"complex floating"``, ``"numeric"``.

    Raises:
        ArgumentError: for an unknown kind.

    Example:
        >>> isdtype(float32, ("integral", "real floating"))
        True
    """
    own = as_dtype(dtype, "isdtype")
    if isinstance(kind, tuple):
        return any(isdtype(own, each) for each in kind)
    if not isinstance(kind, str):
        return own is as_dtype(kind, "isdtype")
    if kind not in _KINDS:
        raise ArgumentError("isdtype", "unknown kind", got=kind, expected=", ".join(_KINDS))
    return _KINDS[kind](own)


def result_type(*arrays_and_dtypes: Tensor[Any] | DTypeLike | Scalar) -> DType:
    """Return the element type in which tensors, types and numbers meet.

    Python numbers are weak: they take the type of the other operands.

    Raises:
        KindError: when kinds mix.
        DTypeError: when no type holds both.
        ArgumentError: when there are only numbers, or nothing.

    Example:
        >>> result_type(int8, uint8, 3)
        phlox_tensor.int16
    """
    numbers = [x for x in arrays_and_dtypes if isinstance(x, Scalar)]
    types = [_type_of(x, "result_type") for x in arrays_and_dtypes if not isinstance(x, Scalar)]
    if not types:
        expected = "at least one tensor or element type"
        raise ArgumentError("result_type", "nothing to go by", got=numbers, expected=expected)
    out = reduce(lambda a, b: _promoted(a, b, "result_type"), types)
    for number in numbers:
        _check_number(number, out)
    return out


def _check_number(number: Scalar, dtype: DType) -> None:
    """A truth value goes only with Bool, a float only with Float."""
    own: KindName = (
        "Bool" if type(number) is bool else "Int" if isinstance(number, int) else "Float"
    )
    fits = dtype.kind == own or (dtype.kind == "Float" and own == "Int")
    if not fits:
        raise KindError("result_type", "kinds do not mix", got=f"{number!r} and {dtype}")
    if own == "Int":
        number_for(number, dtype, "result_type")


def _type_of(given: Tensor[Any] | DTypeLike, op: str) -> DType:
    return given.dtype if isinstance(given, Tensor) else as_dtype(given, op)


def _promoted(a: DType, b: DType, op: str) -> DType:
    if a.kind != b.kind:
        raise KindError(op, "kinds do not mix", got=f"{a} and {b}", expected="one kind")
    return _dtype.promote(a, b, op)


# Gives a bool of Python.
def _numbers(x: Any) -> np.ndarray[Any, Any]:
    array = np.asarray(x.numpy() if isinstance(x, Tensor) else x)
    if array.dtype.kind in "OSUc":
        got = type(x).__name__
        raise WrongTypeError("allclose", "no numbers", got=got, expected="a tensor or a number")
    return array


def allclose(
    x1: Tensor[Any] | float, x2: Tensor[Any] | float, /, *, rtol: float = 1e-5, atol: float = 1e-8
) -> bool:
    """Whether all elements differ by at most ``atol + rtol·|x2|``; reads both tensors.

    Raises:
        ShapeError: when the shapes do not broadcast.
        ArgumentError: for a negative tolerance.
        WrongTypeError: for what is neither a tensor nor a number.

    Example:
        >>> allclose(asarray([1.0, 2.0]), asarray([1.0, 2.000001]))
        True
    """
    a, b = map(_numbers, (x1, x2))
    _broadcast.broadcast_shapes((a.shape, b.shape), "allclose")
    not_negative("allclose", rtol=rtol, atol=atol)
    return bool(isclose(a, b, rtol, atol, equal_nan=False).all())
