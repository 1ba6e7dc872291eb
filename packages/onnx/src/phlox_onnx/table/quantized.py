"""Whole numbers in place of floats: scales, zero points, and exact arithmetic with them."""

from __future__ import annotations

from typing import Any, Final, Unpack

import phlox_tensor as px
from phlox_tensor import Tensor

from .._errors import OnnxError
from ..read._types import CODES, to_type
from ._row import Row, row
from .axes import axis_of
from .bits import held, limits
from .contraction import matmul_integer
from .window import Windows, conv

T = Tensor[Any]


def along(v: T, x: T, axis: int, block_size: int = 0) -> T:
    """Scales or zero points as they lie along a tensor: one, one for each slice, or in blocks."""
    if v.size == 1 and v.ndim <= 1:
        return v.reshape(())
    axis = axis_of("QuantizeLinear", axis, x.ndim)
    if v.ndim == 1 and not block_size:
        return v.reshape((-1, *(1,) * (x.ndim - 1 - axis)))
    n = x.shape[axis]
    each = block_size or -(-n // v.shape[axis])
    wide = px.repeat(v, each, axis=axis)
    cut = tuple(slice(0, n) if i == axis else slice(None) for i in range(x.ndim))
    return wide[cut]


def rounded(x: T, zero: T | None, dtype: Any, code: int = 0) -> T:
    """Half to even, moved by the zero point, and kept within the type."""
    least, most = limits(dtype, code)
    whole = x.round()
    if zero is not None:
        whole = whole + zero.astype(whole.dtype)
    return whole.clip(float(least), float(most)).astype(held(dtype, x.device))


def narrow(zero: T, op: str) -> Any:
    """The type of a zero point, which says where numbers are cut off."""
    if zero.dtype.itemsize > 2:
        got = f"{zero.dtype.name} on {zero.device!r}"
        raise OnnxError(op, "the type of the zero point is lost", got=got, expected="8 or 16 bits")
    return zero.dtype


def _wanted(zero: T | None, output_dtype: int) -> Any:
    """The type of whole numbers that is asked for."""
    if output_dtype:
        return to_type(output_dtype)
    return px.uint8 if zero is None else narrow(zero, "QuantizeLinear")


def quantize_linear(
    x: T,
    y_scale: T,
    y_zero_point: T | None = None,
    *,
    axis: int = 1,
    block_size: int = 0,
    output_dtype: int = 0,
    precision: int = 0,
    saturate: int = 1,
) -> T:
    dtype = _wanted(y_zero_point, output_dtype)
    # The quotient has at least the precision that the file asks for.
    exact = px.float64 if precision == CODES["float64"] else px.float32
    wide = x if x.dtype is px.float64 else x.astype(exact)
    scale = along(y_scale, x, axis, block_size).astype(wide.dtype)
    zero = None if y_zero_point is None else along(y_zero_point, x, axis, block_size)
    return rounded(wide / scale, zero, dtype, output_dtype)


def dequantize_linear(
    x: T,
    x_scale: T,
    x_zero_point: T | None = None,
    *,
    axis: int = 1,
    block_size: int = 0,
    output_dtype: int = 0,
) -> T:
    whole = x.astype(px.int32)
    if x_zero_point is not None:
        whole = whole - along(x_zero_point, x, axis, block_size).astype(px.int32)
    scale = along(x_scale, x, axis, block_size)
    out = whole.astype(px.float32) * scale.to_full_precision()
    return out.astype(to_type(output_dtype) if output_dtype else x_scale.dtype)


def dynamic_quantize_linear(x: T) -> tuple[T, T, T]:
    """To uint8, over the range of the elements and 0."""
    low, high = x.min().minimum(0.0), x.max().maximum(0.0)
    scale = (high - low) / 255.0
    safe = (scale == 0).where(1.0, scale)
    zero = (-low / safe).round().clip(0.0, 255.0)
    return rounded(x / safe, zero, px.uint8), scale, zero.astype(held(px.uint8, x.device))


def fake_quantize(
    x: T,
    y_scale: T,
    y_zero_point: T | None = None,
    *,
    axis: int = 1,
    block_size: int = 0,
    output_dtype: int = 0,
    precision: int = 0,
    saturate: int = 1,
) -> T:
    """What comes back from whole numbers; the gradient passes where they hold it."""
    least, most = limits(_wanted(y_zero_point, output_dtype), output_dtype)
    one = y_scale.size == 1
    zero = y_zero_point.reshape(()) if one and y_zero_point is not None else y_zero_point
    wide = x.astype(px.float64) if precision == CODES["float64"] else x
    back = px.fake_quantize(
        wide,
        y_scale.reshape(()) if one else y_scale,
        0 if zero is None else zero,
        axis=None if one or block_size else axis_of("QuantizeLinear", axis, x.ndim),
        bits=(most - least).bit_length(),
        signed=least < 0,
    )
    return back.astype(x.dtype)


def _requantized(wide: T, factor: T, zero: T | None, dtype: Any) -> T:
    return rounded(wide.astype(px.float32) * factor, zero, dtype)


def qlinear_matmul(
    a: T,
    a_scale: T,
    a_zero_point: T,
    b: T,
    b_scale: T,
    b_zero_point: T,
    y_scale: T,
    y_zero_point: T,
) -> T:
    def rows(v: T) -> T:
        return v.expand_dims(axis=-1) if v.ndim == 1 and v.size > 1 else v

    whole = matmul_integer(a, b, a_zero_point, b_zero_point)
    scale = rows(a_scale.astype(px.float32)) * b_scale.astype(px.float32)
    out_scale = y_scale.astype(px.float32)
    dtype = narrow(y_zero_point, "QLinearMatMul")
    return _requantized(whole, scale / rows(out_scale), rows(y_zero_point), dtype)


def _whole_conv(x: T, w: T, x_zero: T | None, w_zero: T | None, **how: Unpack[Windows]) -> T:
    """A convolution of whole numbers, exact in float64 below 2⁵³."""
    if px.float64 not in x.device.dtypes:
        raise OnnxError("ConvInteger", "the device lacks float64", got=repr(x.device))
    a, b = x.astype(px.float64), w.astype(px.float64)
    if x_zero is not None:
        a = a - x_zero.astype(px.float64).reshape(())
    if w_zero is not None:
        b = b - along(w_zero.astype(px.float64), w, 0)
    return conv(a, b, None, **how)


def conv_integer(
    x: T,
    w: T,
    x_zero_point: T | None = None,
    w_zero_point: T | None = None,
    **how: Unpack[Windows],
) -> T:
    return _whole_conv(x, w, x_zero_point, w_zero_point, **how).astype(px.int32)


def qlinear_conv(
    x: T,
    x_scale: T,
    x_zero_point: T,
    w: T,
    w_scale: T,
    w_zero_point: T,
    y_scale: T,
    y_zero_point: T,
    B: T | None = None,
    **how: Unpack[Windows],
) -> T:
    whole = _whole_conv(x, w, x_zero_point, w_zero_point, **how)
    column = (-1, *(1,) * (x.ndim - 2))
    if B is not None:
        whole = whole + B.astype(px.float64).reshape(column)
    scale = x_scale.reshape(()) * (
        w_scale.reshape(column) if w_scale.size > 1 else w_scale.reshape(())
    )
    zero = y_zero_point.reshape(())
    dtype = narrow(y_zero_point, "QLinearConv")
    return _requantized(whole, scale / y_scale.reshape(()), zero, dtype)


OWN_ROWS: Final[dict[str, Row]] = {
    "FakeQuantize": row(1, fake_quantize),
    "LearnedQuantize": row(1, fake_quantize, trained="y_scale", numbers=True),
}
ROWS: Final[dict[str, Row]] = {
    "ConvInteger": row(10, conv_integer, file_sized=True),
    "DequantizeLinear": row(28, dequantize_linear, trained="x_scale"),
    "DynamicQuantizeLinear": row(11, dynamic_quantize_linear),
    "QLinearConv": row(10, qlinear_conv, file_sized=True),
    "QLinearMatMul": row(21, qlinear_matmul),
    "QuantizeLinear": row(28, quantize_linear, trained="y_scale"),
}
