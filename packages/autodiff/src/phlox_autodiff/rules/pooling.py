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


def _max_pool2d_backward(gg: Tensor, indices: Tensor[Int], g_shape: Shape) -> Tensor:
    """Read each place that won."""
    n, c, h, w = gg.shape
    flat = gg.reshape((n, c, h * w))
    line = (n, c, g_shape[2] * g_shape[3])
    return flat.take_along_axis(indices.reshape(line), axis=2).reshape(g_shape)


def _avg_pool2d(
    g: Tensor,
    x_shape: Shape,
    kernel: Any,
    stride: Any,
    padding: Any,
    ceil_mode: bool,
    count_include_pad: bool,
) -> Tensor:
    return ops.avg_pool2d_backward(
        g, x_shape, kernel, stride, padding, ceil_mode, count_include_pad
    )


def _avg_pool2d_backward(
    gg: Tensor, kernel: Any, stride: Any, padding: Any, ceil_mode: bool, count_include_pad: bool
) -> Tensor:
    return ops.avg_pool2d(gg, kernel, stride, padding, ceil_mode, count_include_pad)


RULES: Final[dict[str, Rule]] = {
    "avg_pool2d": _avg_pool2d,
    "avg_pool2d_backward": _avg_pool2d_backward,
    "max_pool2d_backward": (_max_pool2d_backward, None),
    "max_pool2d_with_indices": _max_pool2d,
}


def _max_pool2d_forward(
    xs: Any, ts: Any, ys: Any, attributes: Mapping[str, Any]
) -> tuple[Tensor | None, ...]:
    """Read the tangent at each place that won."""
    del attributes
    n, c, h, w = xs[0].shape
    values, indices = ys
    flat = ts[0].reshape((n, c, h * w))
    line = (n, c, values.shape[2] * values.shape[3])
    return flat.take_along_axis(indices.reshape(line), axis=2).reshape(values.shape), None


FORWARD: Final[dict[str, Second]] = {
    "max_pool2d_with_indices": _max_pool2d_forward,
}
