"""Derivatives of pools."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from phlox_tensor import Int, Tensor
from phlox_tensor.ops import pooling as ops

from .._rule import Rule, Second

Shape = tuple[int, ...]


def _max_pool2d(g_values: Tensor, indices: Tensor[Int], x_shape: Shape) -> Tensor:
    return ops.max_pool2d_backward(g_values, indices, x_shape)


def _at_places(x: Tensor, indices: Tensor[Int]) -> Tensor:
    """The element of each plane that won a window."""
    n, c, h, w = x.shape
    flat = x.reshape((n, c, h * w)).take_along_axis(indices.flatten(2), axis=2)
    return flat.reshape(indices.shape)


RULES: Final[dict[str, Rule]] = {
    "avg_pool2d": lambda g, x_shape, kernel, stride, padding, ceil_mode, count_include_pad: (
        ops.avg_pool2d_backward(g, x_shape, kernel, stride, padding, ceil_mode, count_include_pad)
    ),
    "avg_pool2d_backward": lambda gg, kernel, stride, padding, ceil_mode, count_include_pad: (
        ops.avg_pool2d(gg, kernel, stride, padding, ceil_mode, count_include_pad)
    ),
    "max_pool2d_backward": (lambda gg, indices: _at_places(gg, indices), None),
    "max_pool2d_with_indices": _max_pool2d,
}


def _max_pool2d_forward(
    xs: Any, ts: Any, ys: Any, attributes: Mapping[str, Any]
) -> tuple[Tensor | None, ...]:
    """Read the tangent at each place that won."""
    del xs, attributes
    return _at_places(ts[0], ys[1]), None


FORWARD: Final[dict[str, Second]] = {
    "max_pool2d_with_indices": _max_pool2d_forward,
}
