"""Arrays that grow: rows with spare capacity after them, and rooms of fixed size.

Who holds an array sees what was there: `append` takes the next elements of all lines, which no
array shows; of `append_at` the newest result alone is written, by who gives it up.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING
from weakref import ref

from ._array import GpuArray, dense_strides
from ._copy import copy_into
from ._indexing import groups_of, walk
from ._layout import Shape
from ._runtime import GpuDevice
from .wgsl import append as kernels

if TYPE_CHECKING:
    from ._table import Entries

_LEAST_ROOM = 8  # places; a copy has half as many again, as on the CPU


def append(device: GpuDevice, x: GpuArray, values: GpuArray, axis: int) -> GpuArray:
    """Values after x along an axis, in the room after it where there is any."""
    first = x.shape[axis]
    shape = (*x.shape[:axis], first + values.shape[axis], *x.shape[axis + 1 :])
    with device.lock:
        out = None if values.storage is x.storage else _in_room(device, x, shape, axis)
        if out is None:
            out = _with_room(device, x, shape, axis)
        behind = out.offset + first * out.strides[axis]
        copy_into(device, values, out.view(values.shape, out.strides, behind))
    return out


def _in_room(device: GpuDevice, x: GpuArray, shape: Shape, axis: int) -> GpuArray | None:
    """The larger view of the lines that x is the front of; their next elements are taken."""
    storage, unit = x.storage, math.prod(x.shape[axis + 1 :])
    # What is noted to run again would write at the same place each time.
    if not storage.line or not unit or x.offset or device.tape is not None:
        return None
    wide = (*x.shape[:axis], storage.line // unit, *x.shape[axis + 1 :])
    taken = storage.taken == x.shape[axis] * unit
    if storage.line % unit or not taken or shape[axis] > wide[axis]:
        return None
    if x.strides != dense_strides(wide):
        return None
    storage.taken = shape[axis] * unit
    return x.view(shape, x.strides, 0)


def _with_room(device: GpuDevice, x: GpuArray, shape: Shape, axis: int) -> GpuArray:
    """A copy of x with room after each line."""
    most = shape[axis] + max(shape[axis] // 2, _LEAST_ROOM)
    whole = device.empty((*shape[:axis], most, *shape[axis + 1 :]), x.dtype)
    copy_into(device, x, whole.view(x.shape, whole.strides, 0))
    unit = math.prod(shape[axis + 1 :])
    whole.storage.line, whole.storage.taken = most * unit, shape[axis] * unit
    return whole.view(shape, whole.strides, 0)


def is_newest(x: GpuArray) -> bool:
    """Whether x is the last that `append_at` gave of its storage, which may be written."""
    newest = x.storage.newest
    return newest is not None and newest() is x


def append_at(
    device: GpuDevice, x: GpuArray, values: GpuArray, place: GpuArray, axis: int
) -> GpuArray:
    """X's first places, then values, then zeros; the newest of a storage is written itself."""
    inputs = [values, place]
    shares = x.storage in (values.storage, place.storage)  # a kernel may not read what it writes
    if is_newest(x) and not shares:
        out, shape, steps = x.view(x.shape, x.strides, x.offset), values.shape, [x.strides]
    else:
        out, shape, inputs = device.empty(x.shape, x.dtype), x.shape, [*inputs, x]
        along = tuple(int(i == axis) for i in range(len(shape)))
        steps = [x.strides, along]
    if out.size:
        one = (*values.strides[:axis], 0, *values.strides[axis + 1 :])
        rank, params = walk(shape, [one, *steps])
        word = "u32" if x.item_bytes == 4 else "f16"
        kernel = kernels.one if len(steps) == 1 else kernels.whole
        tail = values.offset, place.offset, x.offset, x.shape[axis], out.strides[axis]
        groups = groups_of(math.prod(shape))
        device.launch((kernel, word, place.wgsl, rank), inputs, [out], (*params, *tail), groups)
    out.storage.newest = ref(out)
    return out


ENTRIES: Entries = {"append": append, "append_at": append_at}
