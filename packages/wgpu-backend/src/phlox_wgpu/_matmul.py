"""Matrix products: choosing a kernel by size and layout, then launching it."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from phlox_tensor import Rejected, bool_, float32

from ._array import GpuArray
from ._copy import copy
from ._launch import LONGEST_LOOP, Launch, check_turns
from ._layout import Shape, broadcast_strides, merge_axes
from ._runtime import GpuDevice
from ._tensor_cores import tile_of
from .wgsl import matmul as kernels
from .wgsl import thin
from .wgsl.cooperative import Cooperative, cooperative_source
from .wgsl.tile import Tile

if TYPE_CHECKING:
    from ._table import Entries

LARGE, MEDIUM, SMALL = Tile(128, 128, 16, 8, 8), Tile(64, 64, 16, 8, 4), Tile(32, 32, 32, 4, 4)
WIDE, FLAT = Tile(64, 128, 16, 8, 8), Tile(32, 128, 16, 4, 8)  # for results of few rows
HALF = Tile(32, 64, 16, 4, 4)
# Multiplications in the same time, on an H200 that has enough tiles: 40 TFLOP/s are 1.
RATES = {WIDE: 1.0, MEDIUM: 0.97, LARGE: 0.96, FLAT: 0.9, HALF: 0.77, SMALL: 0.65}
_PARTIAL = 32  # multiplications in the time that an element of a part takes to be stored and added
_SECOND_PASS = 1 << 24  # and in that of one more kernel
ENOUGH_GROUPS = 128  # workgroups that keep a large GPU busy
_ENOUGH_THREADS = ENOUGH_GROUPS * LARGE.threads
# Multiplications on a software adapter from which a tile, three times as fast as the plain kernel
# on llvmpipe, is worth its second of compiling.
_SOFTWARE_FROM = 1 << 23
_THIN_SPLIT = 1024  # inner elements per part of a thin product, at least
_REUSE = 64  # how often an operand is read again before a dense copy pays
_TURNED = 256  # and one whose squares tensor cores would have to turn


@dataclass(frozen=True, slots=True)
class Matrices:
    """Batches of operands by their strides: a is (m, k), b is (n, k).

    One or two batch axes, the last one `inner`.
    """

    m: int
    n: int
    k: int
    batches: int
    inner: int
    a_batch: Shape
    b_batch: Shape
    a: Shape
    b: Shape


@dataclass(frozen=True, slots=True)
class Plan:
    """What a product needs beside its buffers and their offsets.

    ``copies``: the operands to make dense first, by position, over the whole batch if ``spread``
    gives it. ``order``: the positions of the operands as they are bound. ``bias``: what follows the
    offset of the bias, if there is one to add in the launch. ``partial``: it gives parts in float32
    to be added, though there may be one.
    """

    shape: Shape
    copies: tuple[int, ...] = ()
    spread: Shape | None = None
    launch: Launch | None = None
    order: tuple[int, int] = (0, 1)
    bias: tuple[int, ...] = ()
    parts: int = 1
    partial: bool = False


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


def _layout(x: GpuArray) -> tuple[Any, ...]:
    return (x.shape, x.strides, x.offset & 3)


def _product(device: GpuDevice, x1: GpuArray, x2: GpuArray, bias: GpuArray | None) -> GpuArray:
    step = None if bias is None else bias.strides[0]
    key = ("matmul", x1.dtype.name, *_layout(x1), *_layout(x2), step)
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
    assert plan.launch is not None
    inputs = [pair[i] for i in plan.order]
    if plan.parts == 1 and not plan.partial:
        place: Shape = ()
        if bias is not None:
            inputs.append(bias)
            place = (bias.offset, *plan.bias)
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
    if stored == "f16":
        plan = plan_cooperative(device, found, offsets, shape, bias)
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


def choose_tile(device: GpuDevice, m: int, n: int, k: int, batches: int) -> tuple[Tile, int]:
    """The tile that is done first, padding counted, and the number of parts of the inner dimension.

    Few tiles leave a part of the GPU without work.
    """
    if device.software:
        return MEDIUM, max(1, -(-k // (MEDIUM.depth * LONGEST_LOOP)))
    memory = device.limits["max-compute-workgroup-storage-size"]

    def parts(tile: Tile) -> int:
        groups = math.prod(tile.cut(m, n)) * batches
        if groups >= ENOUGH_GROUPS:
            return 1
        # At least four tiles of the inner dimension each.
        return max(1, min(2 * ENOUGH_GROUPS // groups, -(-k // tile.depth) // 4))

    def time(tile: Tile) -> float:
        groups = math.prod(tile.cut(m, n)) * batches
        busy = min(1.0, groups * parts(tile) * tile.threads / _ENOUGH_THREADS)
        first = groups * tile.rows * tile.columns * k / (RATES[tile] * busy)
        if parts(tile) == 1:
            return first
        return first + _PARTIAL * parts(tile) * m * n * batches + _SECOND_PASS

    tile = min((tile for tile in RATES if tile.workgroup_bytes <= memory), key=time)
    return tile, parts(tile)


def _walk(strides: Shape, batch: Shape, offset: int, length: int, k: int) -> kernels.Reading:
    """By vectors where the inner stride is 1 and all else are multiples of four."""
    outer, depth = strides
    contiguous = length == 1 or (k > 1 and abs(depth) <= abs(outer))
    near, far, count = (depth, outer, k) if contiguous else (outer, depth, length)
    fits = not any(step % 4 for step in (far, offset, count, *batch))
    return kernels.Reading(contiguous, near == 1 and fits)


def _operand(walk: kernels.Reading, strides: Shape, batch: Shape) -> tuple[int, Shape]:
    """What `Launch.operands` holds: strides in vectors where the operand is read by vectors."""
    divisor = 4 if walk.vector else 1
    outer, depth = (step // divisor for step in strides)
    return divisor, (*(step // divisor for step in batch), outer, depth)


def plan_tiled(
    device: GpuDevice,
    found: Matrices,
    tile: Tile,
    parts: int,
    stored: str,
    offsets: tuple[int, int],
    shape: Shape,
    bias: int | None,
) -> Plan:
    """A plan for a kernel with workgroup memory."""
    m, n, k = found.m, found.n, found.k
    a = _walk(found.a, found.a_batch, offsets[0], m, k)
    b = _walk(found.b, found.b_batch, offsets[1], n, k)
    cut = tile.cut(m, n)
    tiles = -(-k // tile.depth)
    per_split = -(-tiles // parts)
    parts = max(1, -(-tiles // max(per_split, 1)))
    split = parts > 1
    ragged = k % tile.depth > 0
    spec = kernels.Matmul(
        tile, stored, a, b, ragged, n % 4 == 0, bias is not None and not split, split
    )
    groups = math.prod(cut) * found.batches * parts
    head = (
        *(groups, *cut, found.batches, tiles, per_split),
        *(m, n, k, found.inner),
    )
    operands = _operand(a, found.a, found.a_batch), _operand(b, found.b, found.b_batch)
    return Plan(
        shape,
        launch=Launch.of(device, (kernels.matmul_source, spec), groups, head, operands),
        bias=() if bias is None else (bias,),
        parts=parts,
    )


def plan_cooperative(
    device: GpuDevice, found: Matrices, offsets: tuple[int, int], shape: Shape, bias: int | None
) -> Plan | None:
    """A plan for tensor cores; None where there are none, or not for this product."""
    m, n, k = found.m, found.n, found.k
    a = _walk(found.a, found.a_batch, offsets[0], m, k)
    b = _walk(found.b, found.b_batch, offsets[1], n, k)
    if not (a.vector and b.vector):
        return None
    chosen = tile_of(device, m, n, k, found.batches)
    if chosen is None:
        return None
    tile, partial = chosen
    # Squares of turned operands come to subgroups at a third of the rate of others.
    turned = (0, n, not a.k_contiguous), (1, m, b.k_contiguous)
    copies = tuple(i for i, reuse, across in turned if across and reuse >= _TURNED)
    if copies:
        return Plan(shape, copies=copies)
    cut, tiles = tile.cut(m, n), -(-k // tile.depth)
    ragged, whole = k % tile.depth > 0, not (m % tile.rows or n % tile.columns)
    groups = math.prod(cut) * found.batches
    parts = 1
    if partial and groups < ENOUGH_GROUPS:
        parts = max(1, min(2 * ENOUGH_GROUPS // groups, tiles // 8))
    per_split = -(-tiles // parts)
    parts = -(-tiles // per_split)
    groups *= parts
    with_bias = bias is not None and not partial
    spec = Cooperative(tile, a.k_contiguous, b.k_contiguous, ragged, whole, with_bias, partial)
    head = (groups, *cut, found.batches, tiles, per_split, m, n, k, found.inner)
    operands = _operand(a, found.a, found.a_batch), _operand(b, found.b, found.b_batch)
    return Plan(
        shape,
        launch=Launch.of(device, (cooperative_source, spec), groups, head, operands),
        bias=() if bias is None else (bias,),
        parts=parts,
        partial=partial,
    )


def plan_plain(
    device: GpuDevice, found: Matrices, stored: str, shape: Shape, bias: int | None
) -> Plan:
    """A plan for the kernel without workgroup memory."""
    spec = kernels.Plain(stored, bias is not None)
    row_tiles = -(-found.m // (4 * kernels.PLAIN_ROWS))
    column_tiles = -(-found.n // (16 * kernels.PLAIN_COLUMNS))
    groups = row_tiles * column_tiles * found.batches
    walk = kernels.Reading(k_contiguous=False, vector=False)
    head = (groups, row_tiles, column_tiles, found.m, found.n, found.k, found.inner)
    operands = _operand(walk, found.a, found.a_batch), _operand(walk, found.b, found.b_batch)
    return Plan(
        shape,
        launch=Launch.of(device, (kernels.plain_source, spec), groups, head, operands),
        bias=() if bias is None else (bias,),
    )


def plan_thin(
    device: GpuDevice,
    found: Matrices,
    stored: str,
    offsets: tuple[int, int],
    shape: Shape,
    bias: int | None,
) -> Plan:
    """A plan for at most four rows or columns."""
    rows = found.m <= found.n
    k, n, count = found.k, max(found.m, found.n), min(found.m, found.n)
    v, v_batch, w, w_batch = found.b, found.b_batch, found.a, found.a_batch
    if rows:
        v, v_batch, w, w_batch = w, w_batch, v, v_batch
    position = 1 if rows else 0
    walk = _walk(w, w_batch, offsets[position], n, k)
    spec = thin.Thin(count, stored, walk.k_contiguous, walk.vector, bias is not None, partial=False)
    column_tiles = -(-n // thin.columns(spec))
    groups = column_tiles * found.batches
    parts = max(1, min(2 * ENOUGH_GROUPS // groups, k // _THIN_SPLIT))
    per_split = -(-k // parts // 256) * 256
    parts = max(1, -(-k // per_split)) if per_split else 1
    if parts > 1:
        spec = replace(spec, bias=False, partial=True)
    out_t, out_n = (n, 1) if rows else (1, count)
    place: Shape = ()
    if spec.bias:
        place = (0, bias or 0) if rows else (bias or 0, 0)
    plain = kernels.Reading(k_contiguous=True, vector=False)
    size = count * n
    head = (groups * parts, column_tiles, found.batches, per_split, n, k, found.inner)
    operands = _operand(plain, v, v_batch), _operand(walk, w, w_batch)
    tail = (out_t, out_n, size, size * found.batches)
    return Plan(
        shape,
        launch=Launch.of(device, (thin.thin_source, spec), groups * parts, head, operands, tail),
        order=(1 - position, position),
        bias=place,
        parts=parts,
    )


ENTRIES: Entries = {"linear": linear, "matmul": matmul}
