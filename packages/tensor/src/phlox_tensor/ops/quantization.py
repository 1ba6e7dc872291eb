"""Numbers as integers times a scale: for a whole tensor, along an axis, or in blocks."""

from __future__ import annotations

from typing import Any

from .._errors.classes import ShapeError
from .._op.declaration import Shape
from .._op.records import IndexSample, case, refusal
from .._values.dtype import DType, int8, int16, int32, uint8
from .._values.kinds import Int
from .._values.tensor import Tensor
from ..reference import quantization as ref
from ..shapes import quantization as shapes
from ..shapes.contraction import linear_work
from . import contraction as products
from . import movement
from ._families import contraction, quantization

_HOW = "axis: Axis? = None"
_SCALES = (
    "A scale in a tensor is not checked: with 0, what is not 0 is out of range. "
    "``scale`` and ``zero_point`` have one number for all, or one for each place along ``axis``, "
    "or the rank of x and one for each block: a size of x is a multiple of theirs."
)


def spread(scale: Tensor[Any], shape: tuple[int, ...], axis: int | None) -> Tensor[Any]:
    """Scales lined up with the elements that they are for."""
    if not scale.ndim:
        return scale
    if axis is not None:
        return scale.reshape(tuple(n if i == axis else 1 for i, n in enumerate(shape)))
    parts, beside = _blocks(shape, scale.shape)
    return scale.reshape(beside).broadcast_to(parts).reshape(shape)


def _blocks(shape: Shape, scales: Shape) -> tuple[Shape, Shape]:
    """The shape of elements cut into blocks, and that of their scales beside them."""
    parts = [p for n, m in zip(shape, scales, strict=True) for p in (m, n // m if m else 0)]
    return tuple(parts), tuple(size for m in scales for size in (m, 1))


def two_of_each(x: Tensor[Int], axis: int) -> Tensor[Int]:
    """The two integers of 4 bits in each one of 8 as neighbors along an axis, the low one first."""
    low = ((x & 15) ^ 8) - 8
    parts = movement.stack((low, x >> 4), axis=axis + 1)
    shape = tuple(2 * n if i == axis else n for i, n in enumerate(x.shape))
    return parts.reshape(shape)


def weight_of(weight: Tensor[Int], scale: Tensor, bits: int) -> Tensor:
    """The weight of ``quantized_linear`` as floats."""
    if bits == 4:
        weight = two_of_each(weight, 0)
    if scale.shape[0] == 1:
        return dequantize(weight, scale.reshape(scale.shape[1]), axis=1)
    return dequantize(weight, scale)


@quantization.formula(
    f"x: Int, scale: Float, zero_point: Num?; {_HOW} -> Float",
    numpy=ref.dequantize,
    shape=shapes.dequantize,
    domain={"x": (-9, 9)},
    ulp=2,
    atol=2,
    cases=(
        case((2, 3), (), None),
        case((2, 3), (3,), IndexSample((3,), 3), axis=1),
        case((4, 3), (2, 1), IndexSample((2, 1), 3)),
        case((0, 3), (3,), None, axis=1),
    ),
    refuses=(refusal(ShapeError, (2,), (3,), None),),
    method=False,
    example="pt.dequantize(pt.asarray([-2, 0, 5]), pt.asarray(0.5))",
    doc=f"``(x - zero_point)·scale``. {_SCALES}",
)
def dequantize(
    x: Tensor[Int], scale: Tensor, zero_point: Tensor[Any] | None, axis: int | None
) -> Tensor:
    wide = scale.to_full_precision()
    out = x.astype(wide.dtype)
    if axis is None and scale.ndim:  # blocks, beside which no scale has to be repeated
        parts, beside = _blocks(x.shape, scale.shape)
        out = out.reshape(parts)
        if zero_point is not None:
            out = out - zero_point.astype(wide.dtype).reshape(beside)
        return (out * wide.reshape(beside)).reshape(x.shape).astype(scale.dtype)
    if zero_point is not None:
        out = out - spread(zero_point.astype(wide.dtype), x.shape, axis)
    return (out * spread(wide, x.shape, axis)).astype(scale.dtype)


@quantization.formula(
    f"x: Float, scale: Float, zero_point: Num?; {_HOW}, bits: int = 8, dtype: DType = 'int8' "
    "-> Int",
    numpy=ref.quantize,
    positive=("scale",),
    shape=shapes.quantize,
    domain={"x": (-9, 9), "scale": (0.6, 2.4)},
    cases=(
        case((2, 3), (), None, dtype=int32),
        case((2, 3), (3,), IndexSample((3,), -3), axis=1, dtype=uint8),
        case((2, 3), (3,), IndexSample((3,), 3), axis=1, bits=4, dtype=int32),
        case((4, 3), (2, 1), IndexSample((2, 1), 3), dtype=int8),
        case((2, 2), (2, 2), None, bits=12, dtype=int16),
        case((0, 3), (3,), None, axis=1, dtype=int32),
    ),
    method=False,
    example="pt.quantize(pt.asarray([-1.0, 0.2, 90.0]), pt.asarray(0.5))",
    doc="``round(x/scale) + zero_point`` in integers of so many ``bits``, held in ``dtype``: what "
    "is out of range becomes the nearest number in it, nan becomes 0. A scale that is no tensor is "
    f"a number above 0. {_SCALES}",
)
def quantize(
    x: Tensor,
    scale: Tensor,
    zero_point: Tensor[Any] | None,
    axis: int | None,
    bits: int,
    dtype: DType,
) -> Tensor[Int]:
    wide = x.to_full_precision()
    out = (wide / spread(scale.to_full_precision(), x.shape, axis)).round()
    if zero_point is not None:
        out = out + spread(zero_point.astype(wide.dtype), x.shape, axis)
    low, high = shapes.limits(bits, dtype.signed)
    return out.clip(float(low), float(high)).astype(dtype)


@contraction.formula(
    "x: Float, weight: Int, scale: Float, bias: Float?; bits: int = 8 -> Float",
    shape=shapes.quantized_linear,
    work=linear_work,
    domain={"weight": (-3, 3)},
    ulp=8,
    atol=64,  # sums of products up to 27
    rounded=4,  # weights are rounded where pairs or tiles of bfloat16 are multiplied
    cases=(
        case((3, 4), (4, 5), (1, 5), (5,)),
        case((2, 3, 4), (4, 2), (2, 2), None),
        case((4,), (4, 3), (4, 3), (3,)),
    ),
    method=False,
    example="pt.quantized_linear(pt.ones((2,)), pt.asarray([[1], [2]]), pt.asarray([[0.5]]), None)",
    doc="``x @ (weight·scale) + bias`` with integers of shape (in, out) and scales of shape "
    "(groups, out), each for in/groups neighbors of a column. With 4 ``bits`` a weight of int8 has "
    "the shape (in/2, out): each integer is two, as ``pack_int4(weight, axis=0)`` made it. The "
    "backward pass keeps the integers, never the weight that they stand for. ``weight·scale`` is "
    "float32 where the others are narrow; where a processor multiplies pairs or tiles of bfloat16, "
    "more than 16 rows take it rounded to that.",
)
def quantized_linear(
    x: Tensor, weight: Tensor[Int], scale: Tensor, bias: Tensor | None, bits: int
) -> Tensor:
    floats = weight_of(weight, scale.to_full_precision(), bits)
    wide = None if bias is None else bias.to_full_precision()
    return products.linear(x.to_full_precision(), floats, wide).astype(x.dtype)
