"""Shape rules of integers times a scale."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .._errors import ArgumentError, ShapeError

if TYPE_CHECKING:
    from .._op import Attributes, Op, Shape, Specs


def fitting(op: str, x: Shape, scale: Shape, axis: int | None) -> None:
    """Raise ShapeError unless there is a scale for every element.

    Raises:
        ShapeError: when there is not.
    """
    if not scale:
        return
    if axis is not None:
        fits, expected = scale == (x[axis],), f"() or ({x[axis]},) along axis {axis}"
    else:
        rank = len(scale) == len(x)
        fits = rank and all(n % m == 0 if m else n == m for n, m in zip(x, scale, strict=True))
        expected = f"(), or sizes that divide {x}"
    if not fits:
        hint = "axis=-1" if axis is None and len(scale) == 1 else None
        raise ShapeError(op, "scale does not fit", got=scale, expected=expected, hint=hint)


def _check(op: Op, specs: Specs, axis: int | None) -> list[Shape]:
    x, scale, zero_point = specs
    fitting(op.name, x.shape, scale.shape, axis)
    if zero_point is not None and zero_point.shape != scale.shape:
        got = zero_point.shape
        raise ShapeError(op.name, "zero_point does not fit", got=got, expected=scale.shape)
    return [x.shape]


def dequantize(op: Op, specs: Specs, attributes: Attributes) -> list[Shape]:
    """X's shape."""
    return _check(op, specs, attributes[0])


def quantize(op: Op, specs: Specs, attributes: Attributes) -> list[Shape]:
    """X's shape."""
    axis, bits, dtype = attributes
    if dtype.kind != "Int":
        raise ArgumentError(op.name, "no integers", got=dtype, expected="such as int8")
    if not 1 <= bits <= min(8 * dtype.itemsize, 16):
        expected = f"1 <= bits <= {min(8 * dtype.itemsize, 16)} in {dtype}"
        raise ArgumentError(op.name, "too many or few bits", got=bits, expected=expected)
    return _check(op, specs, axis)
