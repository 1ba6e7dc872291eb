"""Running sums."""

from __future__ import annotations

import math

from phlox_tensor import DType, float32

from ._array import GpuArray, dense_strides
from ._elementwise import ENTRIES as ELEMENTWISE
from ._elementwise import cast
from ._layout import merge_axes
from ._runtime import GpuDevice
from ._table import Entries
from .wgsl import scan as kernels
from .wgsl.walk import WORKGROUP

_COUNTING = ("add", "multiply", "round", "subtract")


def cumsum(device: GpuDevice, x: GpuArray, axis: int) -> GpuArray:
    """Sum up along an axis, in order; float16 accumulates in float32."""
    out = device.empty(x.shape, x.dtype)
    if not x.size:
        return out
    order = (*(i for i in range(len(x.shape)) if i != axis), axis)
    source = x.view(tuple(x.shape[i] for i in order), tuple(x.strides[i] for i in order), x.offset)
    strides = dense_strides(x.shape)
    target = out.view(source.shape, tuple(strides[i] for i in order), 0)
    # Neighboring threads should read neighboring elements: along rows together, or a column each.
    columns = any(
        abs(step) == 1 and n >= 16
        for n, step in zip(source.shape[:-1], source.strides[:-1], strict=True)
    )
    block = kernels.COLUMN_BLOCK if columns else kernels.BLOCK
    if x.shape[axis] <= block:
        _scan(device, source, target, None, block)
        return out
    # The sums of the blocks, their running sum, then every block with what came before it.
    wide = float32 if x.dtype.kind == "Float" else x.dtype
    totals = device.empty((*source.shape[:-1], -(-x.shape[axis] // block)), wide)
    _scan(device, source, totals, None, block, totals=True)
    _scan(device, source, target, cumsum(device, totals, len(order) - 1), block)
    return out


def _scan(
    device: GpuDevice,
    x: GpuArray,
    out: GpuArray,
    carry: GpuArray | None,
    block: int,
    *,
    totals: bool = False,
) -> None:
    """Scan every block of every row on its own; ``totals``: store the sum of each block alone."""
    length = x.shape[-1]
    blocks = -(-length // block)
    lengths, (read, write) = merge_axes(x.shape[:-1], [x.strides[:-1], out.strides[:-1]])
    rank = len(lengths)
    rows = math.prod(lengths)
    params = (
        *(x.offset, out.offset, rows, length, blocks),
        *(x.strides[-1], out.strides[-1]),
        *lengths[1:],
        *read,
        *write,
    )
    accumulator = "f32" if x.dtype.kind == "Float" else x.wgsl
    serial = block == kernels.COLUMN_BLOCK
    key = (x.wgsl, accumulator, out.wgsl, rank, carry is not None, totals, serial)
    device.launch(
        ("cumsum", *key),
        lambda: kernels.running_sum(*key),
        [x] if carry is None else [x, carry],
        [out],
        params,
        -(-rows * blocks // WORKGROUP) if serial else rows * blocks,
    )


def _of_integers(device: GpuDevice, x: GpuArray, axis: int) -> GpuArray:
    """Sums of integers in float32, rounded once.

    Whole sums wrap at 2**32; how often they did is told by those of float32, which come near.
    """
    add, multiply, whole, subtract = (ELEMENTWISE[name] for name in _COUNTING)
    rest = cast(device, cumsum(device, x, axis), float32)
    near = cumsum(device, cast(device, x, float32), axis)
    turns = whole(device, multiply(device, subtract(device, near, rest), 2.0**-32))
    return add(device, rest, multiply(device, turns, 2.0**32))


def _cumsum(device: GpuDevice, x: GpuArray, axis: int, dtype: DType) -> GpuArray:
    """Sum up along an axis in a type: the wider of the two floats, where both are."""
    if x.dtype.kind == "Int" and dtype.kind == "Float":
        return cast(device, _of_integers(device, x, axis), dtype)
    if x.dtype.kind == "Float" and x.dtype.itemsize > dtype.itemsize:
        return cast(device, cumsum(device, x, axis), dtype)
    return cumsum(device, x if x.dtype is dtype else cast(device, x, dtype), axis)


ENTRIES: Entries = {"cumsum": _cumsum}
