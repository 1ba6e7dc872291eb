"""Derivatives of families with few rules; most of their ops follow their expansions."""

from __future__ import annotations

from math import pi, sqrt
from typing import Final

from phlox_tensor import Bool, DType, Int, Tensor, ops
from phlox_tensor.ops import collective, interpolation

from .._rule import Joint, Rule, none

Shape = tuple[int, ...]

_INDEX = none("the result is an index")
_SOURCE = none("no operands")
_TRUTH = none("the result is Bool")


def _attention(
    g: Tensor,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    mask: Tensor[Bool] | None,
    bias: Tensor | None,
    scale: float,
    softcap: float | None,
    is_causal: bool,
) -> tuple[Tensor | None, ...]:
    operands = (query, key, value, mask, bias)
    *parts, dbias = ops.attention_backward(g, *operands, scale, softcap, is_causal)
    return (*parts, None, None if bias is None else dbias)


def _cumsum(g: Tensor, x_dtype: DType, axis: int) -> Tensor:
    return g.astype(x_dtype).flip(axis=axis).cumsum(axis=axis).flip(axis=axis)


def _interpolate2d(g: Tensor, x_shape: Shape, mode: str, align_corners: bool) -> Tensor:
    return interpolation.interpolate2d_backward(g, x_shape, mode, align_corners)


def _interpolate2d_backward(gg: Tensor, g_shape: Shape, mode: str, align_corners: bool) -> Tensor:
    return interpolation.interpolate2d(gg, g_shape[2:], mode, align_corners)


def _topk(g_values: Tensor, indices: Tensor[Int], x_shape: Shape, axis: int) -> Tensor:
    """Each cotangent goes to where its element was read."""
    return g_values.zeros(x_shape).scatter(indices, g_values, axis=axis, update="add")


RULES: Final[dict[str, Rule]] = {
    "all_gather": lambda g, axis: collective.reduce_scatter(g, axis=axis),
    "all_reduce": lambda g: collective.all_reduce(g),
    "arange": _SOURCE,
    "argsort": _INDEX,
    "argwhere": _INDEX,
    "attention": Joint(_attention),
    "bincount": none("the result counts"),
    "broadcast": lambda g, root: collective.broadcast_backward(g, root=root),
    "broadcast_backward": lambda gg, root: collective.broadcast(gg, root=root),
    "cumsum": _cumsum,
    "erfc": lambda g, x: g * (x.square().negative().exp() * (-2 / sqrt(pi))),
    "erfinv": lambda g, y: g * (y.square().exp() * (sqrt(pi) / 2)),
    "full": _SOURCE,
    "histogram": none("the counts are constant between jumps"),
    "interpolate2d": _interpolate2d,
    "interpolate2d_backward": _interpolate2d_backward,
    "isclose": _TRUTH,
    "isin": _TRUTH,
    "lgamma": lambda g, x: g * x.digamma(),
    "nextafter": none("the step to the next number is no slope"),
    "nms": _INDEX,
    "one_hot": none("the result is constant between indices"),
    "random_bits": _SOURCE,
    "random_normal": _SOURCE,
    "random_uniform": _SOURCE,
    "reduce_scatter": lambda g, axis: collective.all_gather(g, axis=axis),
    "searchsorted": _INDEX,
    "signbit": _TRUTH,
    "topk": _topk,
}
