"""Sorting along an axis, and searching in what is sorted."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from phlox_tensor import int32, uint32

from ._array import GpuArray
from ._copy import contiguous, full
from ._runtime import GpuDevice
from .wgsl.sort import Emit, Sort, search_source, sort_source, step_source

if TYPE_CHECKING:
    from ._table import Entries

Back = Callable[[GpuArray], GpuArray]
_PAIR_BYTES = 8


def argsort(device: GpuDevice, x: GpuArray, axis: int, descending: bool) -> GpuArray:
    """Places that sort along the axis; stable, nan last."""
    rows, back = _rows(device, x, axis)
    out = device.empty(rows.shape, int32)
    _sort(device, rows, out, x.wgsl, descending, "places")
    return back(out)


def sort(device: GpuDevice, x: GpuArray, axis: int, descending: bool) -> GpuArray:
    """Elements in order along the axis; stable, nan last."""
    rows, back = _rows(device, x, axis)
    out = device.empty(rows.shape, x.dtype)
    _sort(device, rows, out, x.wgsl, descending, "values")
    return back(out)


def sort_keys(device: GpuDevice, keys: GpuArray) -> GpuArray:
    """Pairs (key, place) of each row of u32 keys in order, as an array with a last axis of 2."""
    out = device.empty((*keys.shape, 2), uint32)
    _sort(device, keys, out, "key", False, "sorted")
    return out


def _rows(device: GpuDevice, x: GpuArray, axis: int) -> tuple[GpuArray, Back]:
    """X with the axis last, dense, and how the result goes back."""
    last = len(x.shape) - 1

    def moved(array: GpuArray, source: int, target: int) -> GpuArray:
        order = [i for i in range(last + 1) if i != source]
        order.insert(target, source)
        shape, strides = (tuple(a[i] for i in order) for a in (array.shape, array.strides))
        return array.view(shape, strides, array.offset)

    rows = contiguous(device, moved(x, axis, last))
    return rows, lambda out: moved(out, last, axis)


def block_size(device: GpuDevice) -> tuple[int, int]:
    """Pairs that a workgroup sorts at once, and its threads."""
    if device.software:
        return 256, 64
    memory = device.limits["max-compute-workgroup-storage-size"]
    return (4096 if memory >= 4096 * _PAIR_BYTES else 2048), 256


def _sort(
    device: GpuDevice, x: GpuArray, out: GpuArray, stored: str, descending: bool, emit: Emit
) -> None:
    """Sort the rows of a dense x into out, as many rows at a time as one binding holds."""
    if not x.size:
        return
    length = x.shape[-1]
    rows, width = x.size // length, _width(length)
    at_once = max(1, device.max_binding_bytes // (width * _PAIR_BYTES))
    for first in range(0, rows, at_once):
        count = min(at_once, rows - first)
        part = x.view((count, length), (length, 1), x.offset + first * length)
        _sort_rows(device, part, out, first * length, stored, descending, emit)


def _width(length: int) -> int:
    """The power of two that a row is padded to."""
    return max(2, 1 << (length - 1).bit_length())


def _sort_rows(
    device: GpuDevice,
    x: GpuArray,
    out: GpuArray,
    out_offset: int,
    stored: str,
    descending: bool,
    emit: Emit,
) -> None:
    rows, length = x.shape
    block, threads = block_size(device)
    width = _width(length)
    groups = -(-rows * width // block)

    def blocks(load: bool, target: Emit, first: int, last: int, arrays: list[GpuArray]) -> None:
        spec = Sort(stored, descending, block, threads, load, target)
        inputs = [x] if load or target == "values" else []
        params = (x.offset, rows, length, width, groups, first, last, out_offset)
        device.launch((sort_source, spec), inputs, arrays, params, groups)

    if width <= block:
        blocks(True, emit, 2, width, [out])
        return
    pairs = device.empty((rows * width, 2), uint32)
    exchanges = rows * width // 2
    blocks(True, "pairs", 2, block, [pairs])
    stage = 2 * block
    while stage <= width:
        reach = stage // 2
        while reach >= block:
            params = (exchanges, width, stage, reach)
            device.launch((step_source,), [], [pairs], params, -(-exchanges // 256))
            reach //= 2
        if stage < width:
            blocks(False, "pairs", stage, stage, [pairs])
        else:
            blocks(False, emit, stage, stage, [pairs, out])
        stage *= 2


def searchsorted(device: GpuDevice, line: GpuArray, x: GpuArray, side: str) -> GpuArray:
    """Where the elements of x would go into a sorted line."""
    if not line.size or not x.size:
        return full(device, x.shape, 0, int32)
    out = device.empty(x.shape, int32)
    wanted = contiguous(device, x)
    params = (x.size, line.size, line.offset, line.strides[0], wanted.offset)
    device.launch(
        (search_source, x.wgsl, side == "right"), [line, wanted], [out], params, -(-x.size // 256)
    )
    return out


ENTRIES: Entries = {"argsort": argsort, "searchsorted": searchsorted, "sort": sort}
