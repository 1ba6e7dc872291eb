"""Variance and its root, and norms over channels."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from phlox_tensor import float32

from ._array import GpuArray, dense_strides
from ._copy import contiguous, copy, full
from ._elementwise import cast
from ._row_programs import STD, VAR
from ._rows import Axes, axes_last, reduced, run
from ._runtime import GpuDevice
from .products.plans import ENOUGH_GROUPS
from .wgsl import channels as kernels

if TYPE_CHECKING:
    from ._table import Entries

_LONG = 8192  # rows from here on are cut into parts when they are few
_PART = 4096  # elements per part, at least
_NEAR = 32  # channels whose elements lie together in shorter runs are turned first
_TURN_FROM = 1 << 16  # elements below which turning does not pay


def var(
    device: GpuDevice,
    x: GpuArray,
    axis: Axes,
    correction: float,
    keepdims: bool,
    *,
    root: bool = False,
) -> GpuArray:
    """Mean squared distance from the mean along axes, divided by n - correction; its `root`."""
    shape = reduced(x, axis, keepdims)
    length = math.prod(x.shape[i] for i in axis)
    if not length:
        return full(device, shape, math.nan, x.dtype)
    if not x.size:
        return device.empty(shape, x.dtype)
    rows = axes_last(device, x, axis)
    divisor = max(length - correction, 0.0)
    if length >= _LONG and rows.shape[0] < ENOUGH_GROUPS:
        steps = (length, 0)
        _, wide, *_ = _moments(device, rows, rows.shape[0], length, length, steps, divisor, root)
        out = cast(device, wide, x.dtype)
    else:
        out = run(device, STD if root else VAR, [rows], scalars=[divisor])[0]
    return out.view(shape, dense_strides(shape), 0)


def std(device: GpuDevice, x: GpuArray, axis: Axes, correction: float, keepdims: bool) -> GpuArray:
    """Standard deviation along axes."""
    return var(device, x, axis, correction, keepdims, root=True)


def _parts(channels: int, length: int) -> tuple[int, int]:
    """Into how many parts the elements of a channel are cut, and their length."""
    parts = max(1, min(4 * ENOUGH_GROUPS // channels, length // _PART))
    per_part = -(-length // parts)
    return -(-length // per_part), per_part


def _moments(
    device: GpuDevice,
    x: GpuArray,
    channels: int,
    length: int,
    inner: int,
    steps: tuple[int, int],
    divisor: float,
    root: bool = False,
) -> list[GpuArray]:
    """Mean and sum of squares / divisor per channel, and the mean as two floats; float32.

    `root`: the root of the second.
    """
    stored = x.wgsl
    parts, per_part = _parts(channels, length)
    groups = channels * parts
    partial = device.empty((groups, 4), float32)
    device.launch(
        (kernels.part_moments, stored),
        [x],
        [partial],
        (groups, parts, per_part, length, inner, x.offset, *steps),
        groups,
    )
    out = [device.empty((channels,), float32) for _ in range(4)]
    device.launch(
        (kernels.join_moments, root),
        [partial],
        out,
        (channels, parts, per_part, length, divisor),
        -(-channels // 64),
    )
    return out


def _channels(device: GpuDevice, x: GpuArray) -> tuple[GpuArray, int, tuple[int, int]]:
    """X so that the elements of a channel lie in runs: how long they are, and the strides."""
    batch, channels = x.shape[:2]
    inner = math.prod(x.shape[2:])
    if inner < _NEAR and x.size >= _TURN_FROM:
        order = (1, 0, *range(2, len(x.shape)))
        shape, strides = (tuple(a[i] for i in order) for a in (x.shape, x.strides))
        return copy(device, x.view(shape, strides, x.offset)), batch * inner, (batch * inner, 0)
    return contiguous(device, x), inner, (inner, channels * inner)


def batch_norm(
    device: GpuDevice,
    x: GpuArray,
    weight: GpuArray,
    bias: GpuArray,
    mean: GpuArray,
    var: GpuArray,
    epsilon: float,
    rest: GpuArray | None = None,
) -> GpuArray:
    """Each channel shifted and scaled by given mean and variance, times weight, plus bias.

    `rest`: what the mean leaves to a second float.
    """
    out = device.empty(x.shape, x.dtype)
    x = contiguous(device, x)
    inner = math.prod(x.shape[2:])
    four = 4 if inner % 4 == 0 and x.offset % 4 == 0 else 1
    stored, statistics = x.wgsl, mean.wgsl
    vectors = (weight, bias, mean, var)
    steps = [step for v in vectors for step in (v.offset, v.strides[0])]
    size = out.size // four
    device.launch(
        (kernels.apply, stored, statistics, four == 4, rest is not None),
        [x, *vectors, *([] if rest is None else [rest])],
        [out],
        (size, max(inner // four, 1), x.shape[1], x.offset // four, *steps, epsilon),
        -(-size // 256),
    )
    return out


def batch_norm_train(
    device: GpuDevice, x: GpuArray, weight: GpuArray, bias: GpuArray, epsilon: float
) -> tuple[GpuArray, GpuArray, GpuArray]:
    """Batch norm by the batch's own statistics, which are results too."""
    channels = x.shape[1]
    if not x.size:
        nan = full(device, (channels,), math.nan, x.dtype)
        return device.empty(x.shape, x.dtype), nan, nan
    length = x.size // channels
    runs, inner, steps = _channels(device, x)
    mean, variance, near, rest = _moments(
        device, runs, channels, length, inner, steps, float(length)
    )
    y = batch_norm(device, x, weight, bias, near, variance, epsilon, rest)
    return y, cast(device, mean, x.dtype), cast(device, variance, x.dtype)


def batch_norm_backward(
    device: GpuDevice,
    g: GpuArray,
    x: GpuArray,
    weight: GpuArray,
    mean: GpuArray,
    var: GpuArray,
    epsilon: float,
) -> tuple[GpuArray, GpuArray, GpuArray]:
    """Cotangents of batch_norm_train for x, weight and bias."""
    channels = x.shape[1]
    out = device.empty(x.shape, x.dtype)
    if not x.size:
        zero = full(device, (channels,), 0.0, x.dtype)
        return out, zero, zero
    sums = _channel_sums(device, g, x, mean, var, epsilon)
    g, x = contiguous(device, g), contiguous(device, x)
    inner = math.prod(x.shape[2:])
    four = 4 if inner % 4 == 0 and x.offset % 4 == 0 and g.offset % 4 == 0 else 1
    stored = x.wgsl
    vectors = (weight, mean, var)
    steps = [step for v in vectors for step in (v.offset, v.strides[0])]
    size = out.size // four
    offsets = (g.offset // four, x.offset // four)
    count = float(out.size // channels)
    device.launch(
        (kernels.apply_backward, stored, four == 4),
        [g, x, *vectors, sums],
        [out],
        (size, max(inner // four, 1), channels, *offsets, *steps, epsilon, count),
        -(-size // 256),
    )
    narrow = cast(device, sums, x.dtype)
    return out, narrow.view((channels,), (1,), 0), narrow.view((channels,), (1,), channels)


def _channel_sums(
    device: GpuDevice,
    g: GpuArray,
    x: GpuArray,
    mean: GpuArray,
    var: GpuArray,
    epsilon: float,
) -> GpuArray:
    """Sums over each channel of g times normal, then of g, and the rest of the mean, in float32."""
    channels = x.shape[1]
    length = x.size // channels
    runs, inner, steps = _channels(device, x)
    pulls, _, _ = _channels(device, g)
    stored = x.wgsl
    parts, per_part = _parts(channels, length)
    groups = channels * parts
    partial = device.empty((parts, 3, channels), float32)
    places = (mean.offset, mean.strides[0], var.offset, var.strides[0])
    device.launch(
        (kernels.part_sums, stored),
        [runs, pulls, mean, var],
        [partial],
        (
            *(groups, parts, per_part, length, inner),
            *(runs.offset, *steps, pulls.offset, *steps, *places, epsilon),
        ),
        groups,
    )
    sums = device.empty((3, channels), float32)
    device.launch(
        (kernels.join_sums, stored),
        [partial, mean, var],
        [sums],
        (channels, parts, length, *places, epsilon),
        -(-channels // 64),
    )
    return sums


ENTRIES: Entries = {
    "batch_norm": batch_norm,
    "batch_norm_backward": batch_norm_backward,
    "batch_norm_train": batch_norm_train,
    "std": std,
    "var": var,
}
