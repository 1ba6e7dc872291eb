"""Derivatives of convolutions."""

from __future__ import annotations

from collections.abc import Mapping
from functools import reduce
from operator import add
from typing import Any, Final

from phlox_tensor import Tensor
from phlox_tensor.ops import convolution as ops

from .._rule import Rule, Second

Shape = tuple[int, ...]


def _behind(g: Tensor, padding: Any, output_padding: Any) -> tuple[Tensor, Any]:
    """The cotangent without the zeros at the end, and the padding of the convolution."""
    sides, missing = ops.transposed_padding(padding, output_padding)
    down, across = missing
    return g[..., : g.shape[2] - down, : g.shape[3] - across], sides


def _transposed_x(
    g: Tensor,
    weight: Tensor,
    stride: Any,
    padding: Any,
    output_padding: Any,
    dilation: Any,
    groups: int,
) -> Tensor:
    inside, sides = _behind(g, padding, output_padding)
    return ops.conv2d(inside, weight, None, stride, sides, dilation, groups)


def _transposed_weight(
    g: Tensor,
    x: Tensor,
    weight_shape: Shape,
    stride: Any,
    padding: Any,
    output_padding: Any,
    dilation: Any,
    groups: int,
) -> Tensor:
    inside, sides = _behind(g, padding, output_padding)
    return ops.conv2d_weight_grad(x, inside, weight_shape, stride, sides, dilation, groups)


RULES: Final[dict[str, Rule]] = {
    "conv2d": (
        lambda g, weight, x_shape, stride, padding, dilation, groups: ops.conv2d_input_grad(
            g, weight, x_shape, stride, padding, dilation, groups
        ),
        lambda g, x, weight_shape, stride, padding, dilation, groups: ops.conv2d_weight_grad(
            g, x, weight_shape, stride, padding, dilation, groups
        ),
        lambda g: g.sum(axis=(0, 2, 3)),
    ),
    "conv2d_input_grad": (
        lambda gg, weight, stride, padding, dilation, groups: ops.conv2d(
            gg, weight, None, stride, padding, dilation, groups
        ),
        lambda gg, g, weight_shape, stride, padding, dilation, groups: ops.conv2d_weight_grad(
            g, gg, weight_shape, stride, padding, dilation, groups
        ),
    ),
    "conv2d_weight_grad": (
        lambda gg, x, stride, padding, dilation, groups: ops.conv2d(
            x, gg, None, stride, padding, dilation, groups
        ),
        lambda gg, g, x_shape, stride, padding, dilation, groups: ops.conv2d_input_grad(
            g, gg, x_shape, stride, padding, dilation, groups
        ),
    ),
    "conv_transpose2d": (_transposed_x, _transposed_weight, lambda g: g.sum(axis=(0, 2, 3))),
}


def _conv2d_forward(
    xs: Any, ts: Any, ys: Any, attributes: Mapping[str, Any]
) -> tuple[Tensor | None, ...]:
    parts = [
        ops.conv2d(*pair, None, **attributes)
        for pair in ((ts[0], xs[1]), (xs[0], ts[1]))
        if None not in pair
    ]
    if ts[2] is not None:
        parts.append(ts[2].reshape((-1, 1, 1)).broadcast_to(ys[0].shape))
    return (reduce(add, parts),)


FORWARD: Final[dict[str, Second]] = {
    "conv2d": _conv2d_forward,
}
