"""Plans of matrix products: a kernel, a tile and a grid for sizes and layouts."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from .._launch import LONGEST_LOOP, Launch
from .._layout import Shape
from .._runtime import GpuDevice
from ..wgsl import matmul as kernels
from ..wgsl import thin
from ..wgsl.tile import Tile
from .halves import Halves

LARGE, MEDIUM, SMALL = Tile(128, 128, 16, 8, 8), Tile(64, 64, 16, 8, 4), Tile(32, 32, 32, 4, 4)
WIDE, FLAT = Tile(64, 128, 16, 8, 8), Tile(32, 128, 16, 4, 8)  # for results of few rows
HALF = Tile(32, 64, 16, 4, 4)
# Multiplications in the same time, on an H200 that has enough tiles: 40 TFLOP/s are 1.
RATES = {WIDE: 1.0, MEDIUM: 0.97, LARGE: 0.96, FLAT: 0.9, HALF: 0.77, SMALL: 0.65}
_PARTIAL = 32  # multiplications in the time that an element of a part takes to be stored and added
_SECOND_PASS = 1 << 24  # and in that of one more kernel
ENOUGH_GROUPS = 128  # workgroups that keep a large GPU busy
_ENOUGH_THREADS = ENOUGH_GROUPS * LARGE.threads
_THIN_SPLIT = 512  # inner elements per part of a thin product, at least
_THIN_WORTH = 1 << 22  # elements of the matrix from which a second kernel may add up parts
_THIN_GROUPS = 512  # workgroups that read as fast as memory gives
# Of the inner dimension and of bytes, what narrow workgroups read whole in less time than wide ones
# in parts, which one more kernel adds: 9.1 us for 11.4 of float16 2048x2048 on an H200.
_THIN_DEPTH, _THIN_BYTES = 2048, 24_000_000


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
    """What a product needs in addition to its buffers and their offsets.

    ``copies``: the operands to make dense first, by position, over the whole batch if ``spread``
    gives it. ``order``: the positions of the operands as they are bound. ``bias``: what follows the
    offset of the bias, if there is one to add in the launch. ``partial``: it gives parts in float32
    to be added, though there may be one. ``halves``: what runs in place of the launch.
    """

    shape: Shape
    copies: tuple[int, ...] = ()
    spread: Shape | None = None
    launch: Launch | None = None
    order: tuple[int, int] = (0, 1)
    bias: tuple[int, ...] = ()
    parts: int = 1
    partial: bool = False
    halves: Halves | None = None


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


def walk_of(strides: Shape, batch: Shape, offset: int, length: int, k: int) -> kernels.Reading:
    """By vectors where the inner stride is 1 and all else are multiples of four."""
    outer, depth = strides
    contiguous = length == 1 or (k > 1 and abs(depth) <= abs(outer))
    near, far, count = (depth, outer, k) if contiguous else (outer, depth, length)
    fits = not any(step % 4 for step in (far, offset, count, *batch))
    return kernels.Reading(contiguous, near == 1 and fits)


def operand_of(walk: kernels.Reading, strides: Shape, batch: Shape) -> tuple[int, Shape]:
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
    *,
    unscaled: bool = False,
) -> Plan:
    """A plan for a kernel with workgroup memory; `unscaled`: what `plan_halves` leaves to it."""
    m, n, k = found.m, found.n, found.k
    # Workgroup memory has vectors only along rows and columns.
    a, b = (
        replace(walk, vector=walk.vector and not walk.k_contiguous)
        for walk in (
            walk_of(found.a, found.a_batch, offsets[0], m, k),
            walk_of(found.b, found.b_batch, offsets[1], n, k),
        )
    )
    cut = tile.cut(m, n)
    tiles = -(-k // tile.depth)
    per_split = -(-tiles // parts)
    parts = max(1, -(-tiles // max(per_split, 1)))
    split = parts > 1
    ragged = k % tile.depth > 0
    with_bias = bias is not None and not split
    spec = kernels.Matmul(tile, stored, a, b, ragged, n % 4 == 0, with_bias, split, unscaled)
    groups = math.prod(cut) * found.batches * parts
    head = (
        *(groups, *cut, found.batches, tiles, per_split),
        *(m, n, k, found.inner),
    )
    operands = operand_of(a, found.a, found.a_batch), operand_of(b, found.b, found.b_batch)
    return Plan(
        shape,
        launch=Launch.of(device, (kernels.matmul_source, spec), groups, head, operands),
        bias=() if bias is None else (bias,),
        parts=parts,
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
    operands = operand_of(walk, found.a, found.a_batch), operand_of(walk, found.b, found.b_batch)
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
    walk = walk_of(w, w_batch, offsets[position], n, k)
    way = walk.k_contiguous, walk.vector, bias is not None, False
    nbytes = k * n * (2 if stored == "f16" else 4)
    large = k * n >= _THIN_WORTH
    whole = large and k <= _THIN_DEPTH and nbytes <= _THIN_BYTES
    wide = n >= (32 if whole else 4) * _THIN_GROUPS
    spec = thin.Thin(count, stored, *way, across=16 if wide else 4)
    column_tiles = -(-n // thin.columns(spec))
    groups = column_tiles * found.batches
    parts = 1
    if large and not whole and groups < _THIN_GROUPS // 2:
        parts = max(1, min(_THIN_GROUPS // groups, k // _THIN_SPLIT))
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
    operands = operand_of(plain, v, v_batch), operand_of(walk, w, w_batch)
    tail = (out_t, out_n, size, size * found.batches)
    return Plan(
        shape,
        launch=Launch.of(device, (thin.thin_source, spec), groups * parts, head, operands, tail),
        order=(1 - position, position),
        bias=place,
        parts=parts,
    )
