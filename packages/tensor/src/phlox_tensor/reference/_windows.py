"""Windows over padded images, as views."""

from __future__ import annotations

from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]

Pair = tuple[int, int]
Sides = tuple[tuple[int, int], ...]


def windows(
    x: Array, kernel: Pair, stride: Pair, dilation: Pair, out: Pair, *, writeable: bool = False
) -> Array:
    """View of a padded batch (N, C, H, W) as (N, C, H', W', kh, kw)."""
    n, c, h, w = x.strides
    return np.lib.stride_tricks.as_strided(
        x,
        (*x.shape[:2], *out, *kernel),
        (n, c, h * stride[0], w * stride[1], h * dilation[0], w * dilation[1]),
        writeable=writeable,
    )


def padded(x: Array, padding: Sides, value: float, extra: Pair = (0, 0)) -> Array:
    """The images with a margin of ``value``, and extra rows and columns at the end."""
    (top, bottom), (left, right) = padding
    margins = ((0, 0), (0, 0), (top, bottom + extra[0]), (left, right + extra[1]))
    return np.pad(x, margins, constant_values=value)


def add_windows(padded: Array, columns: Array, stride: Pair, dilation: Pair) -> None:
    """Add each element of the windows to where it was read."""
    height, width = columns.shape[2:4]
    for i in range(columns.shape[4]):
        for j in range(columns.shape[5]):
            rows = slice(i * dilation[0], i * dilation[0] + (height - 1) * stride[0] + 1, stride[0])
            cols = slice(j * dilation[1], j * dilation[1] + (width - 1) * stride[1] + 1, stride[1])
            padded[:, :, rows, cols] += columns[..., i, j]


def cropped(padded: Array, padding: Sides, shape: tuple[int, ...]) -> Array:
    """The images of the given shape without their margin."""
    (top, _), (left, _) = padding
    return padded[:, :, top : top + shape[2], left : left + shape[3]]
