"""Windows over images as slices, one for each place in a window: for expansions."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from typing import Any, Final

from .._values.tensor import Tensor
from .movement import add_slices, pad, slice_

Pair = tuple[int, int]
Sides = tuple[tuple[int, int], ...]
_ZEROS: Final = "the zeros of margins and steps are multiplied, or left out"
PADDED_WEIGHT: Final = {"weight": _ZEROS}
PADDED_COTANGENT: Final = {"g": _ZEROS}


def padded(x: Tensor, padding: Sides, value: float, extra: Pair = (0, 0)) -> Tensor:
    """Return the images with a margin of ``value``, and ``extra`` at the end."""
    (top, bottom), (left, right) = padding
    sides = ((top, bottom + extra[0]), (left, right + extra[1]))
    return x if sides == ((0, 0), (0, 0)) else pad(x, sides, value)


def _starts(kernel: Pair, dilation: Pair) -> Iterator[Pair]:
    for i, j in product(range(kernel[0]), range(kernel[1])):
        yield i * dilation[0], j * dilation[1]


def views(x: Tensor[Any], kernel: Pair, stride: Pair, dilation: Pair, out: Pair) -> Iterator[Any]:
    """Return for each place of the window what lies under it, for all windows: (N, C, *out)."""
    size = (*x.shape[:2], *out)
    for start in _starts(kernel, dilation):
        yield slice_(x, (0, 0, *start), size, (1, 1, *stride))


def added(
    parts: list[Tensor], shape: tuple[int, ...], padding: Sides, *window: Pair, extra: Pair = (0, 0)
) -> Tensor:
    """Return images of ``shape`` to which what lay under each place of the window is added.

    Args:
        parts: one for each place of the window, in the order of ``views``.
        shape: that of the images without their margin.
        padding: the margin, which is cut off.
        window: kernel, stride, dilation.
        extra: the margin at the end beyond the padding.
    """
    kernel, stride, dilation = window
    (top, bottom), (left, right) = padding
    n, c, height, width = shape
    whole = (n, c, height + top + bottom + extra[0], width + left + right + extra[1])
    starts = [v for start in _starts(kernel, dilation) for v in (0, 0, *start)]
    out = add_slices(parts, whole, tuple(starts), (1, 1, *stride) * len(parts))
    return slice_(out, (0, 0, top, left), shape, (1, 1, 1, 1))
