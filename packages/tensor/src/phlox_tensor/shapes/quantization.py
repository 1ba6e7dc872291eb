"""Shape rules of integers times a scale."""

from __future__ import annotations

from .._errors.classes import ArgumentError, DTypeError, ShapeError
from .._op.declaration import Attributes, Op, Shape, Specs
from .._values.dtype import int8


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


def quantized_linear(op: Op, specs: Specs, attributes: Attributes) -> list[Shape]:
    """(…, in) times (in, out), or (in/2, out) of two integers each, plus (out,)."""
    (bits,) = attributes
    x, weight, scale, bias = specs
    if bits not in (4, 8):
        raise ArgumentError(op.name, "no such width", got=f"{bits} bits", expected="4 or 8")
    if bits == 4 and not weight.dtype.signed:
        raise DTypeError(op.name, "not two integers in one", got=weight.dtype, expected=int8)
    inner = x.shape[-1] if x.shape else 0
    held = inner // 2 if bits == 4 else inner
    if not x.shape or len(weight.shape) != 2 or weight.shape[0] != held or inner * bits % 8:
        rows = "in/2" if bits == 4 else "in"
        raise ShapeError(
            op.name,
            "inner sizes differ",
            got=f"x {x.shape}, weight {weight.shape}",
            expected=f"x (…, in), weight ({rows}, out)",
            hint="px.pack_int4(weight, axis=0)" if bits == 4 else None,
        )
    columns = weight.shape[1]
    fits = len(scale.shape) == 2 and scale.shape[1] == columns and scale.shape[0] > 0
    if not fits or inner % scale.shape[0]:
        expected = f"(groups, {columns}), groups a divisor of {inner}"
        raise ShapeError(op.name, "scale does not fit", got=scale.shape, expected=expected)
    if bias is not None and bias.shape != (columns,):
        raise ShapeError(op.name, "bias does not fit", got=bias.shape, expected=(columns,))
    return [(*x.shape[:-1], columns)]


def limits(bits: int, signed: bool) -> tuple[int, int]:
    """The smallest and the largest integer of so many bits."""
    return (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1) if signed else (0, 2**bits - 1)
