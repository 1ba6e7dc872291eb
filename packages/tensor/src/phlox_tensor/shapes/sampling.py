"""Shape rules of images read between the pixels, and of boxes."""

from __future__ import annotations

from math import inf
from typing import Any

import numpy as np

from .._errors.classes import ArgumentError, ShapeError
from .._op.declaration import Attributes, Op, Shape, Specs
from ._window import window_sizes, windowed

MODES = ("bicubic", "bilinear", "nearest")
PADDINGS = ("border", "reflection", "zeros")


def affine_grid(op: Op, specs: Specs, attributes: Attributes) -> list[Shape]:
    """(N, *axes, rank), with one map for each of the batch."""
    theta, size = specs[0].shape, attributes[0]
    rank = len(size) - 2
    if rank not in (2, 3) or theta != (size[0], rank, rank + 1) or 0 in size[2:]:
        raise ShapeError(
            op.name,
            "theta and size do not fit",
            got=f"theta {theta}, size {size}",
            expected="theta (N, 2, 3) and size (N, C, H, W), or (N, 3, 4) and (N, C, D, H, W)",
        )
    return [(size[0], *size[2:], rank)]


def grid_sample(op: Op, specs: Specs, attributes: Attributes) -> list[Shape]:
    """(N, C, H', W'), or (N, C, D', H', W')."""
    x, grid = specs[0].shape, specs[1].shape
    mode, padding_mode, _ = attributes
    axes = len(x) - 2
    if mode not in MODES:
        raise ArgumentError(op.name, "unknown mode", got=mode, expected=", ".join(MODES))
    if padding_mode not in PADDINGS:
        expected = ", ".join(PADDINGS)
        raise ArgumentError(op.name, "unknown padding_mode", got=padding_mode, expected=expected)
    if axes != 3:
        windowed(op, specs[0], 2)
    if len(grid) != len(x) or grid[0] != x[0] or grid[-1] != axes or 0 in x[2:]:
        raise ShapeError(
            op.name,
            "the grid does not fit x",
            got=f"x {x}, grid {grid}",
            expected="x (N, C, H, W) with pixels, grid (N, height, width, 2), "
            "or x (N, C, D, H, W), grid (N, depth, height, width, 3)",
        )
    if axes == 3 and mode == "bicubic":
        expected = "bilinear, nearest"
        raise ArgumentError(op.name, "no such mode for volumes", got=mode, expected=expected)
    return [(*x[:2], *grid[1:-1])]


def deform_conv2d(op: Op, specs: Specs, attributes: Attributes) -> list[Shape]:
    """(N, O, H', W')."""
    x, offset, weight, mask, bias = specs
    stride, padding, dilation, groups = attributes
    windowed(op, x, 2)
    windowed(op, weight, 2, "weight")
    (n, channels), (out, inner) = x.shape[:2], weight.shape[:2]
    if groups < 1 or channels % groups or out % groups or inner * groups != channels:
        raise ShapeError(
            op.name,
            "channels do not fit",
            got=f"x {x.shape}, weight {weight.shape}, groups {groups}",
            expected="weight (out, in / groups, kh, kw), both divisible by groups",
        )
    size = window_sizes(op.name, x.shape[2:], weight.shape[2:], stride, padding, dilation)
    count = weight.shape[2] * weight.shape[3]
    parts = offset.shape[1] // (2 * count) if len(offset.shape) == 4 else 0
    wanted = (n, 2 * count * parts, *size)
    if not parts or channels % parts or offset.shape != wanted:
        expected = f"({n}, {2 * count}·parts, {size[0]}, {size[1]}), parts dividing the channels"
        raise ShapeError(op.name, "offset does not fit", got=offset.shape, expected=expected)
    if mask is not None and mask.shape != (n, count * parts, *size):
        expected = str((n, count * parts, *size))
        raise ShapeError(op.name, "mask does not fit", got=mask.shape, expected=expected)
    if bias is not None and bias.shape != (out,):
        raise ShapeError(op.name, "bias does not fit", got=bias.shape, expected=(out,))
    return [(n, out, *size)]


def roi_align(op: Op, specs: Specs, attributes: Attributes) -> list[Shape]:
    """(K, C, *size)."""
    x, boxes = specs[0].shape, specs[1].shape
    size, spatial_scale, sampling_ratio, _ = attributes
    windowed(op, specs[0], 2)
    if len(boxes) != 2 or boxes[1] != 5:
        expected = "boxes (K, 5): the number of the image, x1, y1, x2, y2"
        raise ShapeError(op.name, "boxes do not fit", got=boxes, expected=expected)
    if 0 in x[2:]:
        raise ShapeError(op.name, "no pixels", got=x, expected="(N, C, H, W), H and W 1 or more")
    if not 0 < spatial_scale < inf:
        expected = "a finite number above 0"
        raise ArgumentError(op.name, "no scale of places", got=spatial_scale, expected=expected)
    if sampling_ratio < 1:
        raise ArgumentError(op.name, "no places", got=sampling_ratio, expected="1 or more")
    return [(boxes[0], x[1], *size)]


def nms(op: Op, specs: Specs, attributes: Attributes) -> list[Shape]:
    """A size that only the values tell."""
    (threshold,) = attributes
    boxes, scores = specs[0].shape, specs[1].shape
    if len(boxes) != 2 or boxes[1] != 4 or scores != boxes[:1]:
        got = f"boxes {boxes}, scores {scores}"
        raise ShapeError(op.name, "boxes and scores do not fit", got=got, expected="(K, 4), (K,)")
    if not -inf <= threshold <= inf:
        expected = "a part of the union, from 0 to 1"
        raise ArgumentError(op.name, "iou_threshold is nan", got=threshold, expected=expected)
    return [(-1,)]


def middles(n: int, align_corners: bool) -> Any:
    """Places of n pixels along an axis from -1 to 1."""
    if align_corners:
        return np.linspace(-1.0, 1.0, n) if n > 1 else np.zeros(1)
    return (2 * np.arange(n) + 1) / n - 1


def starts(kernel: Any, stride: Any, padding: Any, dilation: Any, size: Any) -> list[Any]:
    """Row and column at which each place of each window reads: (kh·kw, H', W') twice."""
    shape = (*kernel, *size)
    lines = []
    for axis in range(2):
        inside = np.arange(kernel[axis]) * dilation[axis]
        outside = np.arange(size[axis]) * stride[axis] - padding[axis][0]
        where = [(-1, 1, 1, 1), (1, -1, 1, 1)][axis]
        there = [(1, 1, -1, 1), (1, 1, 1, -1)][axis]
        whole = inside.reshape(where) + outside.reshape(there)
        lines.append(np.broadcast_to(whole, shape).reshape(-1, *size))
    return lines
