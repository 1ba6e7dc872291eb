"""Running sums, also of exponentials, and the largest and the smallest element so far."""

from __future__ import annotations

import math
from collections.abc import Callable

from phlox_tensor import DType, float32, int32

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
    return _running(device, "a + b", x, axis)[0]


def logcumsumexp(device: GpuDevice, x: GpuArray, axis: int) -> GpuArray:
    """Ln of the sum of the exponentials so far along an axis."""
    return _running(device, kernels.LOG_SUM, x, axis)[0]


def _running(device: GpuDevice, joined: str, x: GpuArray, axis: int) -> list[GpuArray]:
    """What the elements so far come to, `joined`; the best and where, if that tells the better."""
    types = [x.dtype, int32] if joined in kernels.BETTER else [x.dtype]
    outs = [device.empty(x.shape, dtype) for dtype in types]
    if not x.size:
        return outs
    order = (*(i for i in range(len(x.shape)) if i != axis), axis)
    source = x.view(tuple(x.shape[i] for i in order), tuple(x.strides[i] for i in order), x.offset)
    strides = dense_strides(x.shape)
    targets = [out.view(source.shape, tuple(strides[i] for i in order), 0) for out in outs]
    # Neighboring threads should read neighboring elements: along rows together, or a column each.
    columns = any(
        abs(step) == 1 and n >= 16
        for n, step in zip(source.shape[:-1], source.strides[:-1], strict=True)
    )
    block = kernels.COLUMN_BLOCK if columns else kernels.BLOCK
    if x.shape[axis] <= block:
        _scan(device, joined, source, targets, [], block)
        return outs
    # What each block comes to, and the blocks so far, then every block with what came before it.
    types[0] = float32 if x.dtype.kind == "Float" else x.dtype
    shape = (*source.shape[:-1], -(-x.shape[axis] // block))
    totals = [device.empty(shape, dtype) for dtype in types]
    _scan(device, joined, source, totals, [], block, totals=True)
    carry = _running(device, joined, totals[0], len(order) - 1)
    _scan(device, joined, source, targets, [*carry, *totals[1:]], block)
    return outs


def _scan(
    device: GpuDevice,
    joined: str,
    x: GpuArray,
    outs: list[GpuArray],
    carry: list[GpuArray],
    block: int,
    *,
    totals: bool = False,
) -> None:
    """Scan every block of every row on its own; ``totals``: store only what each comes to."""
    length = x.shape[-1]
    blocks = -(-length // block)
    out = outs[0]
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
    alone = joined not in kernels.BETTER and not (serial or totals)
    near = x.strides[-1] == out.strides[-1] == 1
    fours = alone and near and not any(n % 4 for n in (length, x.offset, *read, *write))
    kernel = (
        kernels.running,
        joined,
        x.wgsl,
        accumulator,
        out.wgsl,
        rank,
        bool(carry),
        totals,
        serial,
        fours,
    )
    device.launch(
        kernel,
        [x, *carry],
        outs,
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


def _best(better: str) -> Callable[..., tuple[GpuArray, ...]]:
    def run(device: GpuDevice, x: GpuArray, axis: int) -> tuple[GpuArray, ...]:
        return tuple(_running(device, better, x, axis))

    return run


ENTRIES: Entries = {
    "cummax": _best(">="),
    "cummin": _best("<="),
    "cumsum": _cumsum,
    "logcumsumexp": logcumsumexp,
}
