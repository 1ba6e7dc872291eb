"""``fake_quantize``: rounded values, gradients past the rounding; two integers in one byte."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from .._call.operands import check_positive
from .._data.spectrum import check_floats
from .._errors.classes import ArgumentError, DTypeError, KindError, ShapeError
from .._op.attributes import NORMALIZERS, normalize_axis
from .._values.dtype import int8
from .._values.kinds import Int
from .._values.number import Scalar
from .._values.tensor import Tensor
from ..ops.quantization import spread, two_of_each
from ..shapes.quantization import fitting, limits

# As of ``quantize``.
_WIDEST: Final = 16


def fake_quantize(
    x: Tensor,
    scale: Tensor | float,
    zero_point: Tensor[Int] | int = 0,
    *,
    axis: int | None = None,
    bits: int = 8,
    signed: bool = True,
) -> Tensor:
    """Return ``dequantize(quantize(x))``, for training with what rounding will do.

    The gradient passes rounding as if it were not there (Bengio et al., 2013), and is 0 for x out
    of range; that of the scale is the one of Esser et al., 2020.

    Args:
        x: the values.
        scale: for all of x, along ``axis``, or in blocks, as ``quantize`` takes it.
        zero_point: the integer of 0, in the shape of ``scale``.
        axis: along which axis scales differ.
        bits: width of the integers.
        signed: whether they go below 0.

    Raises:
        ArgumentError: for bits below 1 or above 16, a ``zero_point`` that is no integer, or a
            number as scale that is not above 0; scales in a tensor are not read.
        KindError: for integers as x.
        ShapeError: when the scale does not fit, or the axis is not there.

    Example:
        >>> fake_quantize(asarray([0.26, 90.0]), 0.5).tolist()
        [0.5, 63.5]
    """
    check_floats("fake_quantize", x)
    bits = NORMALIZERS["int"](bits, "bits", "fake_quantize", 0)
    if not 1 <= bits <= _WIDEST:
        expected = f"1 <= bits <= {_WIDEST}"
        raise ArgumentError("fake_quantize", "too many or few bits", got=bits, expected=expected)
    if isinstance(scale, Scalar | np.generic):
        check_positive("fake_quantize", "scale", scale)
    wide = x.to_full_precision()
    step = _spread("fake_quantize", scale, wide, axis)
    low, high = limits(bits, signed)
    if isinstance(zero_point, Tensor):
        if zero_point.dtype.kind != "Int":
            got = zero_point.dtype
            raise KindError("fake_quantize", "zero_point is no integer", got=got, expected="Int")
        zero = _spread("fake_quantize", zero_point.astype(wide.dtype), wide, axis)
        held = (wide / step).maximum(float(low) - zero).minimum(float(high) - zero)
    else:
        zero_point = NORMALIZERS["int"](zero_point, "zero_point", "fake_quantize", 0)
        held = (wide / step).clip(float(low - zero_point), float(high - zero_point))
    # The difference is exact, so that the sum is the rounded number itself.
    rounded = held + (held.round() - held).detach()
    return (rounded * step).astype(x.dtype)


def _spread(op: str, scale: Any, like: Tensor, axis: int | None) -> Any:
    if axis is not None:
        normalize_axis(axis, op, like.ndim)
    if not isinstance(scale, Tensor):
        return scale
    place = None if axis is None else normalize_axis(axis, op, like.ndim)
    fitting(op, like.shape, scale.shape, place)
    return spread(scale.astype(like.dtype), like.shape, place)


def pack_int4(x: Tensor[Int], axis: int = -1) -> Tensor[Int]:
    """Return integers of 8 bits that hold two neighbors along an axis each, which are in -8 to 7.

    Of other numbers the lowest four bits stay. The type stays too: int8, but where a device has
    none.

    Raises:
        DTypeError: for integers without a sign.
        ShapeError: when the size along the axis is odd.

    Example:
        >>> pack_int4(asarray([1, -2, 7, -8], dtype="int8")).tolist()
        [-31, -121]
    """
    place = _place("pack_int4", x, axis)
    if x.shape[place] % 2:
        raise ShapeError("pack_int4", "no pairs", got=x.shape, expected=f"even along axis {axis}")
    pairs = x.reshape(*x.shape[:place], x.shape[place] // 2, 2, *x.shape[place + 1 :])
    low, high = pairs.unstack(axis=place + 1)
    return (low & 15) + (((high & 15) ^ 8) - 8) * 16


def unpack_int4(x: Tensor[Int], axis: int = -1) -> Tensor[Int]:
    """Return the integers, twice as many along an axis, that ``pack_int4`` put together.

    Raises:
        DTypeError: for integers without a sign.

    Example:
        >>> unpack_int4(asarray([-31, -121], dtype="int8")).tolist()
        [1, -2, 7, -8]
    """
    return two_of_each(x, _place("unpack_int4", x, axis))


def _place(op: str, x: Tensor[Int], axis: int) -> int:
    """The axis counted from the front."""
    if x.dtype.kind != "Int" or not x.dtype.signed:
        raise DTypeError(op, "wrong type", got=x.dtype, expected=int8, hint='x.astype("int8")')
    if not -x.ndim <= axis < x.ndim:
        raise ShapeError(op, "no such axis", got=axis, expected=f"an axis of {x.shape}")
    return axis % x.ndim
