"""Views: new shapes and strides over the same buffer."""

from __future__ import annotations

from collections.abc import Callable

from ._array import GpuArray, Result, array_of, dense_strides, seen_as
from ._copy import copy
from ._layout import Shape, broadcast_strides, reshaped_strides, window
from ._runtime import GpuDevice
from ._table import Entries


def _seen(
    device: GpuDevice,
    op: str,
    x: GpuArray,
    wanted: Shape,
    find: Callable[[GpuArray, Shape], tuple[Shape, Shape] | None],
) -> GpuArray:
    """X under the shape and strides that are found for its layout, or a copy where none are."""
    key = op, x.known or x.layout, wanted

    def found() -> tuple[Result | None]:
        spec = find(x, wanted)
        return (None if spec is None else seen_as(x.dtype, *spec, x.offset),)

    known: tuple[Result | None] = device.plans.get(key) or device.plans.find(key, found)
    if known[0] is None:
        return _seen(device, op, copy(device, x), wanted, find)
    return array_of(known[0], x.storage, x.offset)


def reshape(device: GpuDevice, x: GpuArray, shape: Shape) -> GpuArray:
    """A view where the strides allow it, else a view of a dense copy."""
    return _seen(device, "reshape", x, shape, _reshaped)


def _reshaped(x: GpuArray, shape: Shape) -> tuple[Shape, Shape] | None:
    if x.contiguous:
        return shape, dense_strides(shape)
    strides = reshaped_strides(x.shape, x.strides, shape)
    return None if strides is None else (shape, strides)


def permute_dims(device: GpuDevice, x: GpuArray, axes: Shape) -> GpuArray:
    """The axes in another order."""
    return _seen(device, "permute_dims", x, axes, _permuted)


def _permuted(x: GpuArray, axes: Shape) -> tuple[Shape, Shape]:
    return tuple(x.shape[i] for i in axes), tuple(x.strides[i] for i in axes)


def slice_(device: GpuDevice, x: GpuArray, start: Shape, size: Shape, step: Shape) -> GpuArray:
    """Element k along an axis is x[start + k*step]."""
    key = "slice", x.known or x.layout, start, size, step

    def found() -> tuple[Result, int]:
        shape, strides, offset = window(x.strides, x.offset, start, size, step)
        return seen_as(x.dtype, shape, strides, offset), offset - x.offset

    seen, further = device.plans.get(key) or device.plans.find(key, found)
    return array_of(seen, x.storage, x.offset + further)


def broadcast_to(device: GpuDevice, x: GpuArray, shape: Shape) -> GpuArray:
    """Axes of length 1 repeat, new axes come in front."""
    return _seen(device, "broadcast_to", x, shape, _broadcast)


def _broadcast(x: GpuArray, shape: Shape) -> tuple[Shape, Shape]:
    return shape, broadcast_strides(x.shape, x.strides, shape)


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
