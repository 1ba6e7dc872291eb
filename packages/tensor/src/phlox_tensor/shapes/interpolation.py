"""Shape rules of interpolation."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .._errors import ArgumentError, ShapeError
from ._window import IMAGE_RANK

if TYPE_CHECKING:
    from .._op import Attributes, Op, Shape, Specs

MODES = ("bicubic", "bilinear", "nearest")


def _check(op: Op, shape: Shape, size: Shape, mode: str) -> None:
    """An image with something to read from where something is written."""
    if mode not in MODES:
        raise ArgumentError(op.name, "unknown mode", got=mode, expected=", ".join(MODES))
    if len(shape) != IMAGE_RANK or len(size) != 2:
        raise ShapeError(
            op.name,
            "not a batch of images",
            got=shape,
            expected="(batch, channels, height, width)",
            hint="x[None] for a single image",
        )
    if 0 in shape[2:]:
        raise ShapeError(op.name, "no pixels to read", got=shape, expected="height, width >= 1")


def interpolate2d(op: Op, specs: Specs, attributes: Attributes) -> list[Shape]:
    """(N, C, *size)."""
    size, mode, _ = attributes
    shape = specs[0].shape
    _check(op, shape, size, mode)
    return [(*shape[:2], *size)]


def interpolate2d_backward(op: Op, specs: Specs, attributes: Attributes) -> list[Shape]:
    """The shape of the input; g has its batch and channels."""
    shape, mode, _ = attributes
    g = specs[0].shape
    _check(op, shape, g[2:], mode)
    if g[:2] != shape[:2]:
        raise ShapeError(
            op.name,
            "the cotangent does not have the shape of the result",
            got=g,
            expected=f"({shape[0]}, {shape[1]}, height, width)",
        )
    return [shape]


FILTERS = ("cubic", "lanczos3", "linear", "nearest", "nearest_exact")
# What PyTorch calls them, by the number of axes.
_OTHER = {
    "bicubic": "cubic", "bilinear": "linear", "nearest-exact": "nearest_exact",
    "trilinear": "linear",
}  # fmt: skip


def interpolate(op: Op, specs: Specs, attributes: Attributes) -> list[Shape]:
    """(N, C, *size)."""
    size, mode, align_corners, antialias = attributes
    shape = specs[0].shape
    if mode not in FILTERS:
        hint = f'mode="{_OTHER[mode]}"' if mode in _OTHER else None
        expected = ", ".join(FILTERS)
        raise ArgumentError(op.name, "unknown mode", got=mode, expected=expected, hint=hint)
    if mode.startswith("nearest") and (antialias or align_corners):
        raise ArgumentError(
            op.name, f"{mode} has no weights", got="align_corners or antialias", expected="neither"
        )
    if antialias and align_corners:
        raise ArgumentError(
            op.name, "antialias keeps the edges in place", got="align_corners", expected="False"
        )
    if len(shape) < 3 or len(size) != len(shape) - 2 or min(size) < 1 or 0 in shape[2:]:
        raise ShapeError(
            op.name,
            "size does not fit x",
            got=f"x {shape}, size {size}",
            expected="(batch, channels, *axes), and a size of 1 or more for each of the axes",
        )
    return [(*shape[:2], *size)]
