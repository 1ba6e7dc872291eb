"""Windows of convolutions: how they go over images, the table of their elements, launches."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from phlox_tensor import int32

from .._array import GpuArray
from .._launch import Launch, Operand
from .._layout import Shape
from .._runtime import GpuDevice

Pair = tuple[int, int]
Sides = tuple[Pair, Pair]

_OUTSIDE = 1 << 30  # a distance in pixels that no image has


@dataclass(frozen=True, slots=True)
class Axis:
    """One direction of a window walk: position i, tap j read pixel ``i * step + start + j * tap``.

    ``size`` pixels, ``count`` positions, ``taps`` taps; the result's position i lies at ``i *
    every + first``.
    """

    size: int
    count: int
    taps: int
    step: int
    start: int
    tap: int
    every: int = 1
    first: int = 0


@dataclass(frozen=True, slots=True)
class Plan:
    """A launch over weights (or a cotangent), images and a table, in so many parts of the sums.

    ``partial``: these are float32, and to be added up.
    """

    launch: Launch
    table: GpuArray
    parts: int = 1
    partial: bool = False


def axes_of(
    image: Shape, counts: Sequence[int], weight: Shape, stride: Pair, padding: Sides, dilation: Pair
) -> tuple[Axis, Axis]:
    """The walks down and right of windows that meet so many positions."""
    down, right = (
        Axis(image[2 + i], counts[i], weight[2 + i], stride[i], -padding[i][0], dilation[i])
        for i in range(2)
    )
    return down, right


def table_of(device: GpuDevice, channels: int, steps: Shape, axes: tuple[Axis, Axis]) -> GpuArray:
    """A row per (channel, tap down, tap right), then rows outside of any image to fill a tile."""
    down, right = axes
    c, y, x = np.indices((channels, down.taps, right.taps)).reshape(3, -1)
    y, x = y * down.tap, x * right.tap
    rows = np.full((c.size + 32, 4), (0, _OUTSIDE, _OUTSIDE, 0), np.int32)
    rows[: c.size] = np.stack([c * steps[0] + y * steps[1] + x * steps[2], y, x, 0 * c], axis=1)
    return device.upload(rows, int32)


def dealt(
    device: GpuDevice,
    kernel: tuple[Any, ...],
    tiles: Pair,
    groups: int,
    rest: Shape,
    operands: tuple[Operand, ...],
    parts: int = 1,
) -> Launch:
    """A launch over tiles of rows and columns, groups and parts of the sums."""
    count = math.prod(tiles) * groups * parts
    return Launch.of(device, kernel, count, (count, *tiles, groups, *rest), operands)


def image_of(x: GpuArray, groups: int, axes: tuple[Axis, Axis]) -> Shape:
    """Steps of an image, and the walk of the window over it."""
    image, channel, row, column = x.strides
    down, right = axes
    return (
        *(image, x.shape[1] // groups * channel, row, column),
        *(down.count * right.count, right.count),
        *(down.step, down.start, right.step, right.start, down.size, right.size),
    )


def result_of(out: GpuArray, groups: int, axes: tuple[Axis, Axis]) -> Shape:
    """Steps of a result, and where its first position lies."""
    _, channels, height, width = out.shape
    down, right = axes
    plane = height * width
    return (
        *(down.first * width + right.first, channels * plane, channels // groups * plane, plane),
        *(down.every * width, right.every, out.size),
    )
