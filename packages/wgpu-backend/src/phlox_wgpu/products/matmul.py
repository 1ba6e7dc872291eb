"""Matrix products: choosing a kernel by size and layout, then launching it."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from phlox_tensor import Rejected, bool_, float32

from .._array import GpuArray
from .._copy import copy
from .._launch import LONGEST_LOOP, check_turns
from .._layout import Shape, broadcast_strides, merge_axes
from .._runtime import GpuDevice
from ..wgsl import matmul as kernels
from ..wgsl import thin
from .plans import Matrices, Plan, choose_tile, plan_plain, plan_thin, plan_tiled
from .tensor_plans import plan_cooperative, plan_halves

if TYPE_CHECKING:
    from .._table import Entries

# Multiplications on a software adapter from which a tile, three times as fast as the plain kernel
# on llvmpipe, is worth its second of compiling.
_SOFTWARE_FROM = 1 << 23
_REUSE = 64  # how often an operand is read again before a dense copy pays


def matmul(device: GpuDevice, x1: Any, x2: Any) -> GpuArray:
    """Product of matrices over batches that broadcast.

    A vector is a row on the left, a column on the right.

    Raises:
        Rejected: the operands are not two arrays of one number type that fit.
    """
    if type(x1) is not GpuArray or type(x2) is not GpuArray:
        raise Rejected
    if x1.dtype is not x2.dtype or x1.dtype is bool_:
        raise Rejected
    if x1.dtype.kind == "Int":
        check_turns(device, "matmul", math.prod(x1.shape[-1:]))
    return _product(device, x1, x2, None)


def linear(device: GpuDevice, x: Any, weight: Any, bias: Any) -> GpuArray:
    """``x @ weight + bias`` in one kernel.

    Raises:
        Rejected: the operands are not arrays of one float type that fit.
    """
    given = (x, weight) if bias is None else (x, weight, bias)
    if any(type(operand) is not GpuArray for operand in given):
        raise Rejected
    if x.dtype.kind != "Float" or any(operand.dtype is not x.dtype for operand in given):
        raise Rejected
    if len(weight.shape) != 2 or (bias is not None and bias.shape != weight.shape[1:]):
        raise Rejected
    return _product(device, x, weight, bias)


def _product(device: GpuDevice, x1: GpuArray, x2: GpuArray, bias: GpuArray | None) -> GpuArray:
    step = None if bias is None else bias.strides[0]
    key = ("matmul", x1.layout, x2.layout, step)
    plan: Plan = device.plans.get(key) or device.plans.find(
        key, lambda: _plan(device, x1, x2, step)
    )
    if plan.copies:
        pair = [x1, x2]
        for i in plan.copies:
            pair[i] = _dense(device, pair[i], plan.spread)
        return _product(device, pair[0], pair[1], bias)
    return _run(device, plan, (x1, x2), bias)


def _dense(device: GpuDevice, x: GpuArray, spread: Shape | None) -> GpuArray:
    """A dense copy, over the whole batch where `spread` gives it."""
    if spread is not None:
        outer = broadcast_strides(x.shape[:-2], x.strides[:-2], spread)
        x = x.view((*spread, *x.shape[-2:]), (*outer, *x.strides[-2:]), x.offset)
    return copy(device, x)


def _run(
    device: GpuDevice, plan: Plan, pair: tuple[GpuArray, GpuArray], bias: GpuArray | None
) -> GpuArray:
    out = device.empty(plan.shape, pair[0].dtype)
    if not out.size:
        return out
    place: Shape = () if bias is None else (bias.offset, *plan.bias)
    if plan.halves is not None:
        plan.halves.run(device, pair, out, bias, place)
        return out
    assert plan.launch is not None
    inputs = [pair[i] for i in plan.order]
    if plan.parts == 1 and not plan.partial:
        if bias is not None:
            inputs.append(bias)
        plan.launch.run(device, inputs, [out], place)
        return out
    partial = device.empty((plan.parts, *plan.shape), float32)
    plan.launch.run(device, inputs, [partial])
    add_parts(device, partial, out, bias, 1)
    return out


def add_parts(
    device: GpuDevice, partial: GpuArray, out: GpuArray, bias: GpuArray | None, inner: int
) -> None:
    """Add up the parts of a split in order, and a bias with a value per `inner` elements."""
    stored, with_bias = out.wgsl, bias is not None
    inputs = [partial]
    params = [out.size, partial.shape[0]]
    if bias is not None:
        inputs.append(bias)
        params += [inner, bias.shape[0], bias.offset, bias.strides[0]]
    device.launch(
        (kernels.sum_parts, stored, with_bias), inputs, [out], params, -(-out.size // 256)
    )


def _plan(device: GpuDevice, x1: GpuArray, x2: GpuArray, bias: int | None) -> Plan:
    if not _fits(x1.shape, x2.shape):
        raise Rejected
    rows = x1.shape[-2:-1]
    columns = x2.shape[-1:] if len(x2.shape) > 1 else ()
    batch = np.broadcast_shapes(x1.shape[:-2], x2.shape[:-2])
    shape = (*batch, *rows, *columns)
    if not math.prod(shape):
        return Plan(shape)
    found = _matrices(x1, x2, batch)
    if found is None:
        return Plan(shape, copies=(0, 1), spread=batch)
    copies = tuple(
        i
        for i, (strides, outer, reuse) in enumerate(
            ((found.a, found.m, found.n), (found.b, found.n, found.m))
        )
        if min(map(abs, strides)) > 1 and min(outer, found.k) > 1 and reuse > _REUSE
    )
    if copies:
        return Plan(shape, copies=copies)
    stored, offsets = x1.wgsl, (x1.offset, x2.offset)
    software = device.software
    work = found.m * found.n * found.k * found.batches
    small = software and work < _SOFTWARE_FROM and found.k <= LONGEST_LOOP
    if stored not in ("f32", "f16") or small:
        return plan_plain(device, found, stored, shape, bias)
    if min(found.m, found.n) <= thin.THICKNESS and not software:
        return plan_thin(device, found, stored, offsets, shape, bias)
    plan_tensor = plan_cooperative if stored == "f16" else plan_halves
    plan = plan_tensor(device, found, offsets, shape, bias)
    if plan is not None:
        return plan
    tile, parts = choose_tile(device, found.m, found.n, found.k, found.batches)
    return plan_tiled(device, found, tile, parts, stored, offsets, shape, bias)


def _fits(a: Shape, b: Shape) -> bool:
    """NumPy's rule: the inner lengths are equal, the batches broadcast."""
    if not a or not b or a[-1] != b[-2 if len(b) > 1 else -1]:
        return False
    pairs = zip(reversed(a[:-2]), reversed(b[:-2]), strict=False)
    return all(m == n or 1 in (m, n) for m, n in pairs)


def _matrices(x1: GpuArray, x2: GpuArray, batch: Shape) -> Matrices | None:
    """The product by its strides; None where the batch takes more than two axes to walk."""
    k = x1.shape[-1]
    m, a_row = (x1.shape[-2], x1.strides[-2]) if len(x1.shape) > 1 else (1, 0)
    n, b_column = (x2.shape[-1], x2.strides[-1]) if len(x2.shape) > 1 else (1, 0)
    b_depth = x2.strides[-2] if len(x2.shape) > 1 else x2.strides[-1]
    steps = [broadcast_strides(x.shape[:-2], x.strides[:-2], batch) for x in (x1, x2)]
    a, b = (a_row, x1.strides[-1]), (b_column, b_depth)
    if not any(steps[1]):
        lengths, (rows,) = merge_axes((*batch, m), [(*steps[0], a_row)])
        if len(lengths) == 1:
            return Matrices(lengths[0], n, k, 1, 1, (0, 0), (0, 0), (rows[0], a[1]), b)
    lengths, (first, second) = merge_axes(batch, steps)
    if len(lengths) > 2:
        return None
    missing = (0,) * (2 - len(lengths))
    inner = lengths[-1] if lengths else 1
    return Matrices(
        m, n, k, math.prod(lengths), inner, (*missing, *first), (*missing, *second), a, b
    )


ENTRIES: Entries = {"linear": linear, "matmul": matmul}
