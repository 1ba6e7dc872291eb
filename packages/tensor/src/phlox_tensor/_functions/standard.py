"""Functions that take arguments of the array API standard which their op does not have.

Their ops are declared with ``function=False``; tensors have methods of the same names.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Never

import numpy as np
from numpy.lib.stride_tricks import as_strided

from .._call.fast import unknown_argument
from .._data.conversion import copied, refuse_sharing
from .._data.transfer import to_device
from .._device.backend import Backend
from .._device.finding import as_device
from .._errors.called import as_called
from .._errors.classes import ArgumentError, KindError, ShapeError, WrongTypeError
from .._errors.foreign import type_name
from .._values.dtype import DTypeLike, bool_
from .._values.kinds import AnyKind, Float, Int, NumKind
from .._values.tensor import Tensor
from ..ops import indexing, movement
from ..ops.sort import argsort as _argsort
from ..ops.sort import searchsorted as _searchsorted
from ..ops.sort import sort_ as _sort
from ..ops.statistics import quantile as _quantile


def argsort(
    x: Tensor[NumKind],
    /,
    axis: int = -1,
    descending: bool = False,
    stable: bool = True,
    **wrong: Never,
) -> Tensor[Int]:
    """Indices that sort along an axis; nan last in both directions.

    Equal elements keep their order, whatever ``stable`` says: no other sort would be faster.

    Example:
        >>> argsort(asarray([3.0, 1.0, 2.0])).tolist()
        [1, 2, 0]
    """
    del stable
    if wrong:
        raise unknown_argument(_argsort, wrong)
    return _argsort(x, axis, descending)


def astype(
    x: Tensor[Any],
    dtype: DTypeLike,
    /,
    *,
    copy: bool = True,
    device: Backend | str | None = None,
) -> Tensor[Any]:
    """Return the elements in another type, on another device where one is given.

    Tensors never change, so one that has the type already is itself the copy; see
    ``Tensor.astype`` for what casts lose.

    Example:
        >>> astype(asarray([1.5, 2.5]), "int32").tolist()
        [1, 2]
    """
    del copy
    out = x.astype(dtype)
    return out if device is None else to_device(out, as_device(device))


def concat(
    arrays: Sequence[Tensor[AnyKind]], /, axis: int | None = 0, **wrong: Never
) -> Tensor[AnyKind]:
    """Tensors one after the other along an axis; all elements as a vector where it is None.

    Example:
        >>> concat([asarray([1, 2]), asarray([3])]).tolist()
        [1, 2, 3]
    """
    if wrong:
        raise unknown_argument(movement.concat, wrong)
    if axis is None and not isinstance(arrays, Tensor):
        arrays, axis = [each.flatten() for each in arrays], 0
    return movement.concat(arrays, axis)


def conj(x: Tensor[NumKind], /) -> Tensor[NumKind]:
    """Return the complex conjugates, which of real numbers are these themselves.

    Example:
        >>> conj(asarray([1.0, -2.0])).tolist()
        [1.0, -2.0]
    """
    _require_numbers("conj", x)
    return x


@as_called
def nonzero(x: Tensor[Any], /) -> tuple[Tensor[Int], ...]:
    """Return where elements are not 0: for each axis a tensor of indices, row by row.

    Raises:
        ShapeError: for a 0-d tensor, which has no axes.

    Example:
        >>> nonzero(asarray([[0, 3], [1, 0]]))[1].tolist()
        [1, 0]
    """
    if not x.shape:
        raise ShapeError("nonzero", "no axes", got="a 0-d tensor", hint="x != 0")
    truths = x if x.dtype is bool_ else x != 0
    flat = indexing.nonzero(truths.flatten())
    return unraveled(flat, x.shape)


def unraveled(flat: Tensor[Int], shape: tuple[int, ...]) -> tuple[Tensor[Int], ...]:
    """Return the indices along each axis of positions in the flattened tensor."""
    out, rest = [], 1
    for n in reversed(shape):
        out.append(flat // rest % n if n else flat)
        rest *= n or 1
    return tuple(reversed(out))


@as_called
def quantile(
    x: Tensor[Float],
    /,
    q: float | Sequence[float] = 0.5,
    axis: int | Sequence[int] | None = None,
    keepdims: bool = False,
    interpolation: str = "linear",
    **wrong: Never,
) -> Tensor[Float]:
    """The value below which a part q of the elements along the axes lies; nan where any is.

    Args:
        x: the elements.
        q: a part from 0 to 1, or several, whose results stand side by side on a new first axis.
        axis: along which axes; all by default.
        keepdims: whether the axes stay, with size 1.
        interpolation: what lies between two elements: linear, lower, higher, nearest, midpoint.

    Raises:
        ArgumentError: for a q outside of 0 to 1, none at all, or an unknown interpolation.

    Example:
        >>> quantile(asarray([1.0, 2.0, 3.0, 4.0, 5.0]), (0.25, 0.5)).tolist()
        [2.0, 3.0]
    """
    if wrong:
        raise unknown_argument(_quantile, wrong)
    if getattr(q, "ndim", 0):
        got, hint = type_name(q), "q=q.tolist()"
        raise WrongTypeError("quantile", "q is an array", got=got, expected="numbers", hint=hint)
    out: Tensor[Float]
    if not isinstance(q, list | tuple):
        out = _quantile(x, q, axis, keepdims, interpolation)
        return out
    if not q:
        raise ArgumentError("quantile", "no q", got=q, expected="numbers from 0 to 1")
    out = movement.stack([_quantile(x, part, axis, keepdims, interpolation) for part in q], 0)
    return out


def real(x: Tensor[NumKind], /) -> Tensor[NumKind]:
    """Return the real parts, which of real numbers are these themselves.

    Example:
        >>> real(asarray([1.0, -2.0])).tolist()
        [1.0, -2.0]
    """
    _require_numbers("real", x)
    return x


def _require_numbers(op: str, x: Tensor[Any]) -> None:
    if x.dtype is bool_:
        raise KindError(
            op, "not numbers", got=x.dtype, expected="Float or Int", hint="x.astype(px.int32)"
        )


def reshape(
    x: Tensor[AnyKind], /, shape: Sequence[int], *, copy: bool | None = None
) -> Tensor[AnyKind]:
    """The elements, row by row, under a new shape; one size may be -1.

    Args:
        x: the elements.
        shape: the new sizes.
        copy: True copies the elements, False raises where they have to be brought into another
            order in memory. Tensors never change, so nothing else depends on it.

    Raises:
        SharingError: with ``copy=False``, where the elements have to move.

    Example:
        >>> reshape(asarray([1, 2, 3, 4]), (2, -1)).tolist()
        [[1, 2], [3, 4]]
    """
    out: Tensor[AnyKind] = movement.reshape(x, shape)
    if copy:
        return copied(out)
    if copy is False and x.device.has_data:
        strides = x.device.strides_of(x.primitive)
        if strides is None:
            refuse_sharing("reshape", f"{x.device!r}, which does not say how elements lie")
        # NumPy tells which shapes such strides can have; the memory behind it is never read.
        seen = as_strided(np.empty((), np.int8), x.shape, strides)
        try:
            seen.shape = out.shape
        except AttributeError:
            refuse_sharing("reshape", f"{x.shape} -> {out.shape}, in another order in memory")
    return out


@as_called
def searchsorted(
    x1: Tensor[NumKind],
    x2: Tensor[NumKind] | float,
    /,
    side: str = "left",
    sorter: Tensor[Int] | None = None,
    **wrong: Never,
) -> Tensor[Int]:
    """Where the elements of ``x2`` would go into the sorted vector ``x1``.

    Args:
        x1: in ascending order, nan last; otherwise what comes out means nothing.
        x2: what to place.
        side: ``"left"`` for places in front of equal elements, ``"right"`` behind them.
        sorter: indices that bring x1 into order, as ``argsort`` gives them.

    Example:
        >>> searchsorted(asarray([1.0, 2.0, 2.0]), 2.0, side="right").item()
        3
    """
    if wrong:
        raise unknown_argument(_searchsorted, wrong)
    line = x1 if sorter is None else x1.take(sorter, axis=0)
    return _searchsorted(line, x2, side)


def sort(
    x: Tensor[NumKind],
    /,
    axis: int = -1,
    descending: bool = False,
    stable: bool = True,
    **wrong: Never,
) -> Tensor[NumKind]:
    """Elements in order along an axis; nan last in both directions.

    Equal elements keep their order, whatever ``stable`` says: no other sort would be faster.

    Example:
        >>> sort(asarray([3.0, 1.0, 2.0]), descending=True).tolist()
        [3.0, 2.0, 1.0]
    """
    del stable
    if wrong:
        raise unknown_argument(_sort, wrong)
    return _sort(x, axis, descending)
