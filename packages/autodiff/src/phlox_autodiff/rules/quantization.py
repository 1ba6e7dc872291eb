"""Derivatives of integers times a scale; ``dequantize`` follows its expansion."""

from __future__ import annotations

from math import prod
from typing import Final

from phlox_tensor import DType, Int, Tensor, unpack_int4
from phlox_tensor.ops.quantization import weight_of

from .._rule import Rule, none
from .contraction import linear_bias


def _linear_x(g: Tensor, weight: Tensor[Int], scale: Tensor, bits: int) -> Tensor:
    """``g @ weightᵀ``; here the weight is made again."""
    return g @ weight_of(weight, scale, bits).astype(g.dtype).mT


def _linear_scale(
    g: Tensor,
    x: Tensor,
    weight: Tensor[Int],
    scale_shape: tuple[int, ...],
    scale_dtype: DType,
    bits: int,
) -> Tensor:
    """The gradient of the weight, ``xᵀ @ g``, times its integers, summed over each group."""
    inner, columns = x.shape[-1], g.shape[-1]
    rows = prod(x.shape[:-1])
    found = x.reshape((rows, inner)).mT @ g.reshape((rows, columns))
    integers = unpack_int4(weight, 0) if bits == 4 else weight
    parts = (integers.astype(found.dtype) * found).reshape((scale_shape[0], -1, columns))
    return parts.sum(axis=1).astype(scale_dtype)


RULES: Final[dict[str, Rule]] = {
    "quantize": none("the result is an integer; fake_quantize has a gradient"),
    "quantized_linear": (_linear_x, None, _linear_scale, linear_bias),
}
