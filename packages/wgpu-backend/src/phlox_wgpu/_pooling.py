"""Pools and their cotangents."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from phlox_tensor import int32

from ._array import GpuArray
from ._copy import contiguous
from ._launch import check_turns
from ._layout import Shape
from ._runtime import GpuDevice
from .wgsl import pool as kernels

if TYPE_CHECKING:
    from ._table import Entries

Pair = tuple[int, int]
Sides = tuple[Pair, Pair]


def _groups(size: int) -> int:
    return -(-size // kernels.WORKGROUP)


def _count(size: int, kernel: int, stride: int, sides: Pair, dilation: int, ceil_mode: bool) -> int:
    """Positions of a window.

    In ceil mode a last, partial one counts if it starts inside image or left padding.
    """
    before, after = sides
    room = size + before + after - dilation * (kernel - 1) - 1
    count = room // stride + 1
    return count + (ceil_mode and room % stride > 0 and count * stride < size + before)


def _out_shape(
    x: GpuArray, kernel: Pair, stride: Pair, padding: Sides, dilation: Pair, ceil_mode: bool
) -> Shape:
    counts = [
        _count(n, k, s, sides, d, ceil_mode)
        for n, k, s, sides, d in zip(x.shape[2:], kernel, stride, padding, dilation, strict=True)
    ]
    return (*x.shape[:2], *counts)


def max_pool2d_with_indices(
    device: GpuDevice, x: GpuArray, *window: Any, with_indices: bool = True
) -> tuple[GpuArray, ...]:
    """Largest element of each window and its place in the plane; nan wins, then the first."""
    size, stride, padding, dilation, _ = window
    check_turns(device, "max_pool2d", math.prod(size) + size[0])
    values = device.empty(_out_shape(x, *window), x.dtype)
    outputs = [values]
    if with_indices:
        outputs.append(device.empty(values.shape, int32))
    stored = x.wgsl
    params = (
        *(values.size, *x.shape[1:], *values.shape[2:], x.offset, *x.strides),
        *(*stride, padding[0][0], padding[1][0], *dilation),
    )
    kernel = kernels.max_pool, stored, with_indices, (*size,)
    device.launch(kernel, [x], outputs, params, _groups(values.size))
    return tuple(outputs)


def max_pool2d(device: GpuDevice, x: GpuArray, *window: Any) -> GpuArray:
    """Largest element of each window; nan wins."""
    return max_pool2d_with_indices(device, x, *window, with_indices=False)[0]


def max_pool2d_backward(
    device: GpuDevice, g: GpuArray, indices: GpuArray, input_shape: Shape
) -> GpuArray:
    """Each g goes to the place that won; what meets there is added in order.

    The shape of the windows is not known here. Which results may name a row or column of the image
    is therefore read off the indices first: for a pool these are few, and any other indices are
    served as well.
    """
    out = device.empty(input_shape, g.dtype)
    g, indices = contiguous(device, g), contiguous(device, indices)
    planes, (height, width) = math.prod(input_shape[:2]), input_shape[2:]
    out_height, out_width = g.shape[2:]
    if not out.size:
        return out
    stored = g.wgsl
    rest = (out_height, out_width, height, width, g.offset, indices.offset)
    if max(height + width, out_height + out_width) <= kernels.WORKGROUP:
        kernel = kernels.max_pool_backward_by_planes, stored
        device.launch(kernel, [g, indices], [out], (planes, *rest), planes)
        return out
    lines = planes * (out_height + out_width)
    bounds = device.empty((max(lines, 1), 2), int32)
    kernel = kernels.index_bounds, stored
    device.launch(kernel, [g, indices], [bounds], (lines, *rest), _groups(lines))
    lines = planes * (height + width)
    ranges = device.empty((lines, 2), int32)
    device.launch((kernels.index_ranges,), [bounds], [ranges], (lines, *rest), _groups(lines))
    kernel = kernels.max_pool_backward, stored
    params = (out.size, *rest)
    device.launch(kernel, [g, indices, ranges], [out], params, _groups(out.size))
    return out


def avg_pool2d(
    device: GpuDevice,
    x: GpuArray,
    kernel: Pair,
    stride: Pair,
    padding: Sides,
    ceil_mode: bool,
    include_padding: bool,
) -> GpuArray:
    """Mean of each window."""
    check_turns(device, "avg_pool2d", math.prod(kernel) + kernel[0])
    shape = _out_shape(x, kernel, stride, padding, (1, 1), ceil_mode)
    made = kernels.average_pool, x.wgsl, include_padding
    return _average(device, x, made, shape, x.shape, shape, (kernel, stride, padding))


def avg_pool2d_backward(
    device: GpuDevice,
    g: GpuArray,
    input_shape: Shape,
    kernel: Pair,
    stride: Pair,
    padding: Sides,
    ceil_mode: bool,
    include_padding: bool,
) -> GpuArray:
    """Each g is shared out over its window."""
    del ceil_mode  # g has the shape already
    made = kernels.average_pool_backward, g.wgsl, include_padding
    return _average(device, g, made, input_shape, input_shape, g.shape, (kernel, stride, padding))


def _average(
    device: GpuDevice,
    x: GpuArray,
    made: tuple[Any, ...],
    shape: Shape,
    image: Shape,
    result: Shape,
    window: tuple[Pair, Pair, Sides],
) -> GpuArray:
    """Run a kernel from an image to a result of such shapes, or back."""
    out = device.empty(shape, x.dtype)
    kernel, stride, ((top, bottom), (left, right)) = window
    params = (out.size, *image[1:], *result[2:], x.offset, *x.strides)
    params += (*kernel, *stride, top, left, bottom, right)
    device.launch(made, [x], [out], params, _groups(out.size))
    return out


ENTRIES: Entries = {
    "avg_pool2d": avg_pool2d,
    "avg_pool2d_backward": avg_pool2d_backward,
    "max_pool2d": max_pool2d,
    "max_pool2d_backward": max_pool2d_backward,
    "max_pool2d_with_indices": max_pool2d_with_indices,
}
