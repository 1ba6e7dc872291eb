"""Derivatives of images in another size: each op is the other one's transpose."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from phlox_tensor.ops import interpolation as ops

from .._rule import Rule

if TYPE_CHECKING:
    from phlox_tensor import Tensor

Shape = tuple[int, ...]


def _interpolate2d(g: Tensor, x_shape: Shape, mode: str, align_corners: bool) -> Tensor:
    return ops.interpolate2d_backward(g, x_shape, mode, align_corners)


def _backward(gg: Tensor, g_shape: Shape, mode: str, align_corners: bool) -> Tensor:
    return ops.interpolate2d(gg, g_shape[2:], mode, align_corners)


INTERPOLATION: Final[dict[str, Rule]] = {
    "interpolate2d": _interpolate2d,
    "interpolate2d_backward": _backward,
}
