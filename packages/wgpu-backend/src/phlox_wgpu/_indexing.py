"""Reading and writing at indices along an axis."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from phlox_tensor import float16, float32, int32, uint32

from ._array import GpuArray, dense_strides
from ._copy import copy, full
from ._elementwise import cast
from ._launch import Launch, check_turns
from ._layout import Shape, merge_axes
from ._runtime import GpuDevice
from ._scan import cumsum
from ._sort import sort_keys
from .wgsl import gather as gathers
from .wgsl import scatter as kernels
from .wgsl.walk import WORKGROUP

if TYPE_CHECKING:
    from ._table import Entries


_SCAN_WORK = 1 << 22  # comparisons below which looking at all indices beats sorting them


def walk(shape: Shape, strides: list[Shape]) -> tuple[int, tuple[int, ...]]:
    """The rank after merging, and the parameters that a walk starts with."""
    lengths, merged = merge_axes(shape, strides)
    return _params(lengths, merged)


def _params(lengths: Shape, strides: list[Shape]) -> tuple[int, tuple[int, ...]]:
    if not lengths:
        lengths, strides = (1,), [(0,) for _ in strides]
    steps = [step for own in strides for step in own]
    return len(lengths), (math.prod(lengths), *lengths[1:], *steps)


def _vectors(lengths: Shape, strides: list[Shape], moving: set[int], multiples: Shape) -> bool:
    """Whether the last axis can go by fours: arrays `moving` step by one there, the others stay."""
    if not lengths or lengths[-1] % 4 or any(m % 4 for m in multiples):
        return False
    return all(
        own[-1] == (1 if i in moving else 0)
        and (i not in moving or not any(step % 4 for step in own[:-1]))
        for i, own in enumerate(strides)
    )


def _by_fours(lengths: Shape, strides: list[Shape], moving: set[int]) -> tuple[Shape, list[Shape]]:
    fewer = [
        (*(step // 4 for step in own[:-1]), 1) if i in moving else own
        for i, own in enumerate(strides)
    ]
    return (*lengths[:-1], lengths[-1] // 4), fewer


def _without(strides: Shape, axis: int) -> Shape:
    return (*strides[:axis], 0, *strides[axis + 1 :])


def groups_of(size: int) -> int:
    return -(-size // WORKGROUP)


def _word(x: GpuArray) -> str:
    """Elements that are only moved go as words, bit for bit."""
    return "u32" if x.item_bytes == 4 else "f16"


def take(device: GpuDevice, x: GpuArray, indices: GpuArray, axis: int) -> GpuArray:
    """Elements or slices at indices along an axis; out of range is raised by the next read."""
    return _gather(device, "take", x, indices, axis)


def take_along_axis(device: GpuDevice, x: GpuArray, indices: GpuArray, axis: int) -> GpuArray:
    """One element per index along an axis; out of range is raised by the next read."""
    return _gather(device, "take_along_axis", x, indices, axis)


def _gather(device: GpuDevice, op: str, x: GpuArray, indices: GpuArray, axis: int) -> GpuArray:
    key = (op, x.layout, indices.layout, axis)
    plan: tuple[Shape, Launch] = device.plans.get(key) or device.plans.find(
        key, lambda: _plan_gather(device, op, x, indices, axis)
    )
    shape, launch = plan
    out = device.empty(shape, x.dtype)
    launch.run(device, [x, indices], [out])
    return out


_Steps = tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]]


def _across(x: GpuArray, indices: GpuArray, axis: int) -> _Steps:
    """The result's shape and the steps of both operands: every index at every place of x."""
    before, after = x.strides[:axis], x.strides[axis + 1 :]
    shape = (*x.shape[:axis], *indices.shape, *x.shape[axis + 1 :])
    x_steps = (*before, *(0 for _ in indices.shape), *after)
    return shape, x_steps, (*(0 for _ in before), *indices.strides, *(0 for _ in after))


def _in_line(x: GpuArray, indices: GpuArray, axis: int) -> _Steps:
    """The same for indices that line up with x."""
    return indices.shape, _without(x.strides, axis), indices.strides


_WALKS = {"take": _across, "take_along_axis": _in_line}


def _plan_gather(
    device: GpuDevice, op: str, x: GpuArray, indices: GpuArray, axis: int
) -> tuple[Shape, Launch]:
    shape, x_steps, i_steps = _WALKS[op](x, indices, axis)
    lengths, strides = merge_axes(shape, [x_steps, i_steps])
    word, index, step, four = _word(x), indices.wgsl, x.strides[axis], 1
    if _vectors(lengths, strides, {0}, (step, x.offset)):
        lengths, strides = _by_fours(lengths, strides, {0})
        word, step, four = f"vec4<{word}>", step // 4, 4
    rank, walk = _params(lengths, strides)
    groups, operands = groups_of(math.prod(lengths)), ((four, ()), (1, ()))
    kernel, tail = (gathers.gather, op, word, index, rank), (x.shape[axis], step)
    return shape, Launch.of(device, kernel, groups, walk, operands, tail)


def nonzero(device: GpuDevice, mask: GpuArray) -> GpuArray:
    """Positions of True in a 1-d mask; reads their count, so it waits."""
    blocks = -(-mask.size // gathers.MASK_BLOCK)
    if not blocks:
        return device.empty((0,), int32)
    counts = device.empty((blocks,), uint32)
    params = (mask.size, mask.offset, mask.strides[0], blocks)
    device.launch((gathers.count_true,), [mask], [counts], params, blocks)
    sums = cumsum(device, counts, 0) if blocks > 1 else counts
    count = int(device.read(sums.view((), (), sums.offset + blocks - 1)))
    out = device.empty((count,), int32)
    if count:
        device.launch((gathers.write_true,), [mask, sums], [out], params, blocks)
    return out


def scatter(
    device: GpuDevice, x: GpuArray, indices: GpuArray, values: GpuArray, axis: int, update: str
) -> GpuArray:
    """A copy of x updated at indices along an axis: set (the last stays), add, mul, min or max."""
    return _scatter(device, "scatter", x, indices, values, axis, update)


def index_add(
    device: GpuDevice, x: GpuArray, indices: GpuArray, values: GpuArray, axis: int
) -> GpuArray:
    """A copy of x to which slices of values are added at indices along an axis."""
    steps = (*(0 for _ in values.shape[:axis]), indices.strides[0])
    steps += tuple(0 for _ in values.shape[axis + 1 :])
    spread = indices.view(values.shape, steps, indices.offset)
    if indices.size and not spread.size:  # no value to add, but indices that may be wrong
        _check(device, "index_add", indices, x.shape[axis])
    return _scatter(device, "index_add", x, spread, values, axis, "add")


# What updates of bools mean on their words 0 and 1.
_BOOL = {"add": "max", "mul": "min"}


def _scatter(
    device: GpuDevice,
    op: str,
    x: GpuArray,
    indices: GpuArray,
    values: GpuArray,
    axis: int,
    update: str,
) -> GpuArray:
    if not indices.size:
        return x
    if not x.size:
        _check(device, op, indices, x.shape[axis])
        return x
    kind = x.dtype.kind
    if kind == "Bool":
        update = _BOOL.get(update, update)
    if update == "set":
        return _set(device, x, indices, values, axis)
    if kind == "Float" and update in ("add", "mul"):
        check_turns(device, op, indices.shape[axis])
        if x.size * indices.shape[axis] <= _SCAN_WORK:
            return _add_by_scan(device, op, x, indices, values, axis, update)
        return _add_by_sort(device, op, x, indices, values, axis, update)
    if x.dtype is float16:
        wide = _scatter(
            device,
            op,
            cast(device, x, float32),
            indices,
            cast(device, values, float32),
            axis,
            update,
        )
        return cast(device, wide, float16)
    return _atomic(device, op, x, indices, values, axis, update)


def _check(device: GpuDevice, op: str, indices: GpuArray, length: int) -> GpuArray:
    """The indices counted from the front; the next read raises for those out of range."""
    out = device.empty(indices.shape, uint32)
    rank, params = walk(indices.shape, [indices.strides])
    index = indices.wgsl
    device.launch(
        (kernels.index_keys, op, index, rank),
        [indices],
        [out],
        (*params, indices.offset, length),
        groups_of(indices.size),
    )
    return out


def _set(
    device: GpuDevice, x: GpuArray, indices: GpuArray, values: GpuArray, axis: int
) -> GpuArray:
    owners = full(device, x.shape, 0, uint32)
    steps = dense_strides(x.shape)
    rank, params = walk(
        indices.shape, [indices.strides, _without(steps, axis), _along(indices.shape, axis)]
    )
    index = indices.wgsl
    device.launch(
        (kernels.claim, index, rank),
        [indices],
        [owners],
        (*params, indices.offset, x.shape[axis], steps[axis]),
        groups_of(indices.size),
    )
    out = device.empty(x.shape, x.dtype)
    rank, params = walk(x.shape, [x.strides, _without(values.strides, axis)])
    word = _word(x)
    device.launch(
        (kernels.keep, word, rank),
        [x, values, owners],
        [out],
        (*params, x.offset, values.offset, values.strides[axis]),
        groups_of(out.size),
    )
    return out


def _atomic(
    device: GpuDevice,
    op: str,
    x: GpuArray,
    indices: GpuArray,
    values: GpuArray,
    axis: int,
    update: str,
) -> GpuArray:
    if x.dtype.kind != "Float":
        out = copy(device, x)
        _atomic_update(device, op, out, indices, values, axis, update)
        return out
    keys = _keys(device, x, update, back=False)
    _atomic_update(
        device, op, keys, indices, _keys(device, values, update, back=False), axis, update
    )
    return _keys(device, keys, update, back=True)


def _keys(device: GpuDevice, x: GpuArray, update: str, *, back: bool) -> GpuArray:
    out = device.empty(x.shape, float32 if back else uint32)
    rank, params = walk(x.shape, [x.strides])
    device.launch(
        (kernels.keys, update, back, rank), [x], [out], (*params, x.offset), groups_of(x.size)
    )
    return out


def _atomic_update(
    device: GpuDevice,
    op: str,
    out: GpuArray,
    indices: GpuArray,
    values: GpuArray,
    axis: int,
    update: str,
) -> None:
    """Update a dense array of integers in place."""
    steps = dense_strides(out.shape)
    rank, params = walk(indices.shape, [indices.strides, values.strides, _without(steps, axis)])
    word, index = out.wgsl, indices.wgsl
    device.launch(
        (kernels.atomic, op, update, word, index, rank),
        [indices, values],
        [out],
        (*params, indices.offset, out.shape[axis], values.offset, steps[axis]),
        groups_of(indices.size),
    )


def _along(shape: Shape, axis: int) -> Shape:
    """Strides whose walk gives the coordinate along an axis."""
    return tuple(int(i == axis) for i in range(len(shape)))


def _add_by_scan(
    device: GpuDevice,
    op: str,
    x: GpuArray,
    indices: GpuArray,
    values: GpuArray,
    axis: int,
    update: str,
) -> GpuArray:
    out = device.empty(x.shape, x.dtype)
    others = [_without(a.strides, axis) for a in (indices, values)]
    rank, params = walk(x.shape, [x.strides, *others, _along(x.shape, axis)])
    stored, index = x.wgsl, indices.wgsl
    offsets = (indices.offset, x.shape[axis], x.offset, values.offset)
    steps = (indices.strides[axis], values.strides[axis])
    device.launch(
        (kernels.scan, op, update, stored, index, rank),
        [x, indices, values],
        [out],
        (*params, *offsets, indices.shape[axis], *steps),
        groups_of(out.size),
    )
    return out


def _add_by_sort(
    device: GpuDevice,
    op: str,
    x: GpuArray,
    indices: GpuArray,
    values: GpuArray,
    axis: int,
    update: str,
) -> GpuArray:
    # Where the indices repeat along an axis (all of them in index_add), one list serves it.
    lists = tuple(
        1 if s == 0 and i != axis else n
        for i, (n, s) in enumerate(zip(indices.shape, indices.strides, strict=True))
    )
    order = [*(i for i in range(len(lists)) if i != axis), axis]
    one = indices.view(
        tuple(lists[i] for i in order), tuple(indices.strides[i] for i in order), indices.offset
    )
    pairs = sort_keys(device, _check(device, op, one, x.shape[axis]))
    steps = [0] * len(lists)
    for position, i in enumerate(order[:-1]):
        if lists[i] > 1:
            steps[i] = dense_strides(one.shape)[position]
    out = device.empty(x.shape, x.dtype)
    lengths, strides = merge_axes(
        x.shape, [x.strides, tuple(steps), _without(values.strides, axis), _along(x.shape, axis)]
    )
    x_offset, v_offset, v_step = x.offset, values.offset, values.strides[axis]
    vector = _vectors(lengths, strides, {0, 2}, (x_offset, v_offset, v_step))
    if vector:
        lengths, strides = _by_fours(lengths, strides, {0, 2})
        x_offset, v_offset, v_step = x_offset // 4, v_offset // 4, v_step // 4
    rank, params = _params(lengths, strides)
    stored = x.wgsl
    device.launch(
        (kernels.runs, update, stored, vector, rank),
        [x, pairs, values],
        [out],
        (*params, x_offset, v_offset, one.shape[-1], v_step),
        groups_of(params[0]),
    )
    return out


ENTRIES: Entries = {
    "index_add": index_add,
    "nonzero": nonzero,
    "scatter": scatter,
    "take": take,
    "take_along_axis": take_along_axis,
}
