"""``fake_quantize``: values as if they were quantised, with gradients as if they were not."""

from __future__ import annotations

from typing import Any

from ._kinds import Int
from ._tensor import Tensor
from .ops.quantization import spread
from .reference.quantization import limits
from .shapes.quantization import fitting


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
        ShapeError: when the scale does not fit.

    Example:
        >>> fake_quantize(asarray([0.26, 90.0]), 0.5).tolist()
        [0.5, 63.5]
    """
    wide = x.to_full_precision()
    step = _spread("fake_quantize", scale, wide, axis)
    low, high = limits(bits, signed)
    if isinstance(zero_point, Tensor):
        zero = _spread("fake_quantize", zero_point.astype(wide.dtype), wide, axis)
        held = (wide / step + zero).maximum(float(low)).minimum(float(high)) - zero
    else:
        held = (wide / step).clip(float(low - zero_point), float(high - zero_point))
    # The difference is exact, so that the sum is the rounded number itself.
    rounded = held + (held.round() - held).detach()
    return (rounded * step).astype(x.dtype)


def _spread(op: str, scale: Any, like: Tensor, axis: int | None) -> Any:
    if not isinstance(scale, Tensor):
        return scale
    place = None if axis is None else axis % max(like.ndim, 1)
    fitting(op, like.shape, scale.shape, place)
    return spread(scale.astype(like.dtype), like.shape, place)
