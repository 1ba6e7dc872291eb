"""Views: new shapes and strides over the same buffer."""

from __future__ import annotations

from ._array import GpuArray, dense_strides
from ._copy import contiguous
from ._layout import Shape, broadcast_strides, reshaped_strides, window
from ._runtime import GpuDevice
from ._table import Entries


def reshape(device: GpuDevice, x: GpuArray, shape: Shape) -> GpuArray:
    """A view where the strides allow it, else a view of a dense copy."""
    if x.contiguous:
        return x.view(shape, dense_strides(shape), x.offset)
    strides = reshaped_strides(x.shape, x.strides, shape)
    if strides is None:
        x = contiguous(device, x)
        strides = dense_strides(shape)
    return x.view(shape, strides, x.offset)


def permute_dims(_device: GpuDevice, x: GpuArray, axes: Shape) -> GpuArray:
    """The axes in another order."""
    return x.view(tuple(x.shape[i] for i in axes), tuple(x.strides[i] for i in axes), x.offset)


def slice_(_device: GpuDevice, x: GpuArray, start: Shape, size: Shape, step: Shape) -> GpuArray:
    """Element k along an axis is x[start + k*step]."""
    shape, strides, offset = window(x.strides, x.offset, start, size, step)
    return x.view(shape, strides, offset)


def broadcast_to(_device: GpuDevice, x: GpuArray, shape: Shape) -> GpuArray:
    """Axes of length 1 repeat, new axes come in front."""
    return x.view(shape, broadcast_strides(x.shape, x.strides, shape), x.offset)


def flip(_device: GpuDevice, x: GpuArray, axis: Shape) -> GpuArray:
    """The elements in reverse order along the axes."""
    if not x.size:
        return x
    strides = list(x.strides)
    offset = x.offset
    for i in axis:
        offset += (x.shape[i] - 1) * strides[i]
        strides[i] = -strides[i]
    return x.view(x.shape, tuple(strides), offset)


ENTRIES: Entries = {
    "broadcast_to": broadcast_to,
    "flip": flip,
    "permute_dims": permute_dims,
    "reshape": reshape,
    "slice": slice_,
}
