"""Images in another size, with a border, as windows: layers without parameters."""

from __future__ import annotations

from dataclasses import KW_ONLY
from typing import Any, Literal

from phlox_tensor import Float, ShapeError, Tensor, fold, interpolate, pad, pad_border, unfold

from ..module.layer import Stateless
from .window import Pair

Filter = Literal["nearest", "nearest_exact", "linear", "cubic", "lanczos3"]
Border = Literal["constant", "reflect", "symmetric", "edge", "circular"]


class Interpolate(Stateless):
    """Lines, images and volumes in another size.

    Args:
        size: sizes of the output, one for all axes or one for each; or ``scale_factor``.
        scale_factor: how many times as large the output is, one factor or one for each axis; sizes
            are rounded down, and places follow from the sizes.
        mode: what a place reads: its neighbor, or a weighted sum of those around.
        align_corners: whether the elements at the corners keep their places.
        antialias: whether weights reach further where the output is smaller.
    """

    size: int | tuple[int, ...] | None = None
    scale_factor: float | tuple[float, ...] | None = None
    mode: Filter = "nearest"
    align_corners: bool = False
    _: KW_ONLY
    antialias: bool = False

    def _check(self) -> None:
        one = (self.size is None) != (self.scale_factor is None)
        self.require("size", one, "size or scale_factor, not both")

    def forward(self, x: Tensor[Float]) -> Tensor[Float]:
        """Map (N, C, *axes) to (N, C, *sizes).

        Raises:
            ShapeError: when there is not one size, or one factor, for each axis.
        """
        s, axes = self.settings, max(x.ndim - 2, 0)
        given: Any = s.scale_factor if s.size is None else s.size
        each = given if isinstance(given, tuple) else (given,) * axes
        if len(each) != axes:
            expected = f"(N, C) and {len(each)} axes"
            raise ShapeError("Interpolate", "no such axes", got=x.shape, expected=expected)
        if s.size is None:
            each = tuple(int(n * factor) for n, factor in zip(x.shape[2:], each, strict=True))
        return interpolate(x, each, s.mode, s.align_corners, s.antialias)


class Pad(Stateless):
    """A margin around the last axes, before a convolution for instance.

    Args:
        padding: (before, after) for each of the last axes, the first of them first.
        mode: what the margin holds: a constant, or elements of the tensor: mirrored with the edge
            once (reflect) or twice (symmetric), the edge itself, or those of the other end.
        value: the constant.
    """

    padding: tuple[tuple[int, int], ...]
    mode: Border = "constant"
    value: float = 0.0

    def _check(self) -> None:
        fits = self.mode == "constant" or self.value == 0.0
        self.require("value", fits, f"none with mode {self.mode!r}")

    def forward(self, x: Tensor[Float]) -> Tensor[Float]:
        """Map (…, *axes) to the same axes with margins."""
        s = self.settings
        if s.mode == "constant":
            return pad(x, s.padding, s.value)
        return pad_border(x, s.padding, s.mode)


class Unfold(Stateless):
    """The windows of images as columns.

    Args:
        kernel_size: height and width of the window.
        dilation: distance between the window's elements.
        padding: zeros at each side.
        stride: steps of the window.
    """

    kernel_size: Pair
    dilation: Pair = 1
    padding: Pair = 0
    stride: Pair = 1

    def forward(self, x: Tensor[Float]) -> Tensor[Float]:
        """Map (N, C, H, W) to (N, C · kernel, windows)."""
        s = self.settings
        how = {"stride": s.stride, "padding": s.padding, "dilation": s.dilation}
        return unfold(x, s.kernel_size, **how)


class Fold(Stateless):
    """Columns added up to images at the places of windows: the transpose of ``Unfold``.

    Args:
        output_size: height and width of the images.
        kernel_size: height and width of the window.
        dilation: distance between the window's elements.
        padding: what is cut off at each side.
        stride: steps of the window.
    """

    output_size: Pair
    kernel_size: Pair
    dilation: Pair = 1
    padding: Pair = 0
    stride: Pair = 1

    def forward(self, x: Tensor[Float]) -> Tensor[Float]:
        """Map (N, C · kernel, windows) to (N, C, H, W)."""
        s = self.settings
        how = {"stride": s.stride, "padding": s.padding, "dilation": s.dilation}
        return fold(x, s.output_size, s.kernel_size, **how)
