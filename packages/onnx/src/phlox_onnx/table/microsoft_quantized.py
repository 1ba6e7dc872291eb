"""Ops of the domain com.microsoft on whole numbers that stand for floats."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, Unpack

import phlox_tensor as px
from phlox_tensor import Tensor

from .._errors import OnnxError
from ._row import Ints, Row, row
from .axes import axis_of
from .contraction import matmul_integer
from .microsoft import BITS, attended_from
from .quantized import (
    along,
    dequantize_linear,
    dynamic_quantize_linear,
    narrow,
    quantize_linear,
    rounded,
)
from .window import Pools, average_pool

T = Tensor[Any]


def _whole_bytes(y: T, scale: T, zero: T | None, x: T, op: str) -> T:
    """Whole numbers of the type of the zero point, or of that of the input."""
    dtype = narrow(x if zero is None else zero, op)
    return rounded(y / scale, zero, dtype)


def _product(a: T, b: T, scale: T, a_zero: T | None, b_zero: T | None, bias: T | None) -> T:
    """A product of whole numbers as floats; what scales ``b`` may differ by column."""
    out = matmul_integer(a, b, a_zero, b_zero).astype(px.float32) * scale
    return out if bias is None else out + bias


def matmul_integer_to_float(
    A: T,
    B: T,
    a_scale: T,
    b_scale: T,
    a_zero_point: T | None = None,
    b_zero_point: T | None = None,
    bias: T | None = None,
) -> T:
    return _product(A, B, a_scale * b_scale, a_zero_point, b_zero_point, bias)


def dynamic_quantize_matmul(
    A: T, B: T, b_scale: T, b_zero_point: T | None = None, bias: T | None = None
) -> T:
    """The left side is rounded over the range of its elements."""
    whole, scale, zero = dynamic_quantize_linear(A)
    return _product(whole, B, scale * b_scale, zero, b_zero_point, bias)


def quantized_attention(
    input: T,
    weight: T,
    bias: T,
    input_scale: T,
    weight_scale: T,
    mask_index: T | None = None,
    input_zero_point: T | None = None,
    weight_zero_point: T | None = None,
    past: T | None = None,
    *,
    mask_filter_value: float = -10000.0,
    num_heads: int,
    scale: float | None = None,
    unidirectional: int = 0,
) -> tuple[Any, ...]:
    """Query, key and value from one product of whole numbers; the rest is of floats."""
    if mask_filter_value != -10000.0:
        raise OnnxError("QAttention", "mask_filter_value has no row", got=mask_filter_value)
    by = input_scale.reshape(()) * weight_scale
    first = None if input_zero_point is None else input_zero_point.reshape(())
    wide = _product(input, weight, by, first, weight_zero_point, bias)
    each = weight.shape[1] // 3
    how: dict[str, Any] = {"scale": scale, "unidirectional": unidirectional}
    return attended_from(wide, (each, each, each), num_heads, mask_index, past, None, **how)


def quantized_gemm(
    A: T,
    a_scale: T,
    a_zero_point: T,
    B: T,
    b_scale: T,
    b_zero_point: T,
    C: T | None = None,
    y_scale: T | None = None,
    y_zero_point: T | None = None,
    *,
    alpha: float = 1.0,
    transA: int = 0,
    transB: int = 0,
) -> T:
    """Floats where no scale of the result is given; ``C`` counts in steps of all factors."""
    a, b = (A.mT if transA else A), (B.mT if transB else B)
    whole = matmul_integer(a, b, a_zero_point, b_zero_point)
    whole = whole if C is None else whole + C
    out = whole.astype(px.float32) * (a_scale * b_scale * alpha)
    return out if y_scale is None else _whole_bytes(out, y_scale, y_zero_point, A, "QGemm")


def on_floats(function: Callable[[T, T], T], op: str) -> Callable[..., T]:
    """An op of two tensors that runs on the floats that they stand for."""

    def run(
        A: T,
        A_scale: T,
        A_zero_point: T | None,
        B: T,
        B_scale: T,
        B_zero_point: T | None,
        C_scale: T,
        C_zero_point: T | None = None,
    ) -> T:
        a = dequantize_linear(A, A_scale, A_zero_point)
        out = function(a, dequantize_linear(B, B_scale, B_zero_point))
        return _whole_bytes(out, C_scale, C_zero_point, A, op)

    return run


def quantized_concat(Y_scale: T, Y_zero_point: T, *inputs: T, axis: int) -> T:
    """Each tensor comes with a scale and a zero point of its own."""
    triples = (inputs[i : i + 3] for i in range(0, len(inputs), 3))
    out = px.concat([dequantize_linear(*triple) for triple in triples], axis=axis)
    return _whole_bytes(out, Y_scale, Y_zero_point, Y_zero_point, "QLinearConcat")


def quantized_average_pool(
    X: T,
    x_scale: T,
    x_zero_point: T | None,
    y_scale: T,
    y_zero_point: T | None = None,
    *,
    channels_last: int = 0,
    count_include_pad: int = 0,
    kernel_shape: Ints,
    **how: Unpack[Pools],
) -> T:
    x = dequantize_linear(X, x_scale, x_zero_point)
    x = px.moveaxis(x, -1, 1) if channels_last else x
    out = average_pool(x, kernel_shape=kernel_shape, count_include_pad=count_include_pad, **how)
    out = px.moveaxis(out, 1, -1) if channels_last else out
    return _whole_bytes(out, y_scale, y_zero_point, X, "QLinearAveragePool")


def quantized_global_average_pool(
    X: T,
    x_scale: T,
    x_zero_point: T,
    y_scale: T,
    y_zero_point: T,
    *,
    channels_last: int = 0,
) -> T:
    axes = tuple(range(1, X.ndim - 1) if channels_last else range(2, X.ndim))
    out = dequantize_linear(X, x_scale, x_zero_point).mean(axis=axes, keepdims=True)
    return _whole_bytes(out, y_scale, y_zero_point, X, "QLinearGlobalAveragePool")


def quantized_leaky_relu(
    X: T,
    X_scale: T,
    X_zero_point: T | None,
    Y_scale: T,
    Y_zero_point: T | None = None,
    *,
    alpha: float = 0.01,
) -> T:
    out = px.leaky_relu(dequantize_linear(X, X_scale, X_zero_point), alpha)
    return _whole_bytes(out, Y_scale, Y_zero_point, X, "QLinearLeakyRelu")


def quantized_sigmoid(
    X: T, X_scale: T, X_zero_point: T | None, Y_scale: T, Y_zero_point: T | None = None
) -> T:
    out = dequantize_linear(X, X_scale, X_zero_point).sigmoid()
    return _whole_bytes(out, Y_scale, Y_zero_point, X, "QLinearSigmoid")


def quantized_softmax(
    X: T,
    X_scale: T,
    x_zero_point: T | None,
    y_scale: T,
    y_zero_point: T,
    *,
    axis: int = -1,
    opset: int,
) -> T:
    """Before version 13 of ONNX, over all axes from ``axis`` on."""
    x = dequantize_linear(X, X_scale, x_zero_point)
    if opset < 13:
        flat = px.softmax(x.flatten(axis_of("QLinearSoftmax", axis, x.ndim)), axis=-1)
        return _whole_bytes(flat.reshape(X.shape), y_scale, y_zero_point, X, "QLinearSoftmax")
    return _whole_bytes(px.softmax(x, axis=axis), y_scale, y_zero_point, X, "QLinearSoftmax")


def quantized_where(
    condition: T,
    X: T,
    x_scale: T,
    x_zero_point: T,
    Y: T,
    y_scale: T,
    y_zero_point: T,
    z_scale: T,
    z_zero_point: T,
) -> T:
    out = condition.where(
        dequantize_linear(X, x_scale, x_zero_point), dequantize_linear(Y, y_scale, y_zero_point)
    )
    return _whole_bytes(out, z_scale, z_zero_point, X, "QLinearWhere")


def _parts(x: T, bits: int) -> T:
    """The numbers in each byte, the low one first."""
    found = [x // (1 << shift) % (1 << bits) for shift in range(0, 8, bits)]
    return px.stack(found, axis=-1).flatten(-2)


def _in_parts(data: T, scales: T, axis: int, block_size: int, bits: int) -> bool:
    """Whether bytes hold several numbers; files of 4 bits are read into a byte for each."""
    if data.dtype.name == "int8" or bits == 8:
        return False
    n = data.shape[axis]
    blocks = [-(-count // block_size) for count in (n, 8 // bits * n)]
    if blocks[0] == blocks[1]:
        return int(data.max()) >= 1 << bits
    return blocks[1] == scales.shape[axis]


def gather_block_quantized(
    data: T,
    indices: T,
    scales: T,
    zero_points: T | None = None,
    *,
    bits: int = 4,
    block_size: int = 128,
    gather_axis: int = 0,
    quantize_axis: int = 1,
) -> T:
    """Rows of a table of whole numbers as floats, with a scale for each block along an axis."""
    rank = data.ndim
    gathered, axis = gather_axis % rank, quantize_axis % rank
    narrow(data, "GatherBlockQuantized")
    if bits not in BITS:
        expected = "2, 4 or 8"
        raise OnnxError("GatherBlockQuantized", "no such bits", got=bits, expected=expected)
    packed = _in_parts(data, scales, axis, block_size, bits)
    middle = float(1 << (bits - 1)) if packed or bits == 8 else 0.0
    x, scale = (v.take(indices, axis=gathered) for v in (data.astype(px.int32), scales))
    x = _parts(x, bits) if packed else x
    axis = axis + indices.ndim - 1 if axis > gathered else axis
    if zero_points is None:
        off = x.astype(px.float32) - middle
    else:
        zero = zero_points.take(indices, axis=gathered).astype(px.int32)
        zero = _parts(zero, bits)[..., : scale.shape[axis]] if packed else zero
        off = (x - along(zero, x, axis, block_size)).astype(px.float32)
    out = off * along(scale, x, axis, block_size).to_full_precision()
    return out.astype(scales.dtype)


ROWS: Final[dict[str, Row]] = {
    "DequantizeLinear": row(1, dequantize_linear, trained="x_scale"),
    "DynamicQuantizeMatMul": row(1, dynamic_quantize_matmul, trained="bias"),
    "GatherBlockQuantized": row(1, gather_block_quantized, trained="scales"),
    "MatMulIntegerToFloat": row(1, matmul_integer_to_float, trained="bias"),
    "QAttention": row(1, quantized_attention, trained="bias"),
    "QGemm": row(1, quantized_gemm),
    "QLinearAdd": row(1, on_floats(px.add, "QLinearAdd")),
    "QLinearAveragePool": row(1, quantized_average_pool, file_sized=True),
    "QLinearConcat": row(1, quantized_concat),
    "QLinearGlobalAveragePool": row(1, quantized_global_average_pool),
    "QLinearLeakyRelu": row(1, quantized_leaky_relu),
    "QLinearMul": row(1, on_floats(px.multiply, "QLinearMul")),
    "QLinearSigmoid": row(1, quantized_sigmoid),
    "QLinearSoftmax": row(1, quantized_softmax),
    "QLinearWhere": row(1, quantized_where),
    "QuantizeLinear": row(1, quantize_linear, trained="y_scale"),
}
