"""Plans of matrix products on tensor cores, of float16 and of float32 by halves."""

from __future__ import annotations

import math

from .._launch import Launch
from .._layout import Shape
from .._runtime import GpuDevice
from ..wgsl import matmul as kernels
from ..wgsl.cooperative import Cooperative, cooperative_source
from ..wgsl.halves import line_scales, lines_of_group, scaled_sum
from .halves import Halves
from .plans import ENOUGH_GROUPS, Matrices, Plan, choose_tile, operand_of, plan_tiled, walk_of
from .tensor_cores import halves_tile, tile_of

_TURNED = 256  # how often an operand is read again before turning its squares costs more


def plan_cooperative(
    device: GpuDevice, found: Matrices, offsets: tuple[int, int], shape: Shape, bias: int | None
) -> Plan | None:
    """A plan for tensor cores; None where there are none, or not for this product."""
    m, n, k = found.m, found.n, found.k
    a = walk_of(found.a, found.a_batch, offsets[0], m, k)
    b = walk_of(found.b, found.b_batch, offsets[1], n, k)
    if not (a.vector and b.vector):
        return None
    chosen = tile_of(device, m, n, k, found.batches)
    if chosen is None:
        return None
    tile, partial = chosen
    copies = _turned(m, n, a, b)
    if copies:
        return Plan(shape, copies=copies)
    spec = Cooperative(
        tile,
        a.k_contiguous,
        b.k_contiguous,
        ragged=k % tile.depth > 0,
        whole=not (m % tile.rows or n % tile.columns),
        bias=bias is not None and not partial,
        partial=partial,
    )
    launch, parts = _cooperative_launch(device, found, spec, (a, b))
    place = () if bias is None else (bias,)
    return Plan(shape, launch=launch, bias=place, parts=parts, partial=partial)


def _turned(m: int, n: int, a: kernels.Reading, b: kernels.Reading) -> tuple[int, ...]:
    """The operands to copy: squares of turned ones come to subgroups at a third of the rate."""
    turned = (0, n, not a.k_contiguous), (1, m, b.k_contiguous)
    return tuple(i for i, reuse, across in turned if across and reuse >= _TURNED)


def _cooperative_launch(
    device: GpuDevice,
    found: Matrices,
    spec: Cooperative,
    walks: tuple[kernels.Reading, kernels.Reading],
) -> tuple[Launch, int]:
    """The launch of a product on tensor cores, and its number of parts."""
    tile, m, n, k = spec.tile, found.m, found.n, found.k
    cut, tiles = tile.cut(m, n), -(-k // tile.depth)
    groups = math.prod(cut) * found.batches
    parts = 1
    if spec.partial and groups < ENOUGH_GROUPS:
        parts = max(1, min(2 * ENOUGH_GROUPS // groups, tiles // 8))
    per_split = -(-tiles // parts)
    parts = -(-tiles // per_split)
    groups *= parts
    head = (groups, *cut, found.batches, tiles, per_split, m, n, k, found.inner)
    operands = (
        operand_of(walks[0], found.a, found.a_batch),
        operand_of(walks[1], found.b, found.b_batch),
    )
    return Launch.of(device, (cooperative_source, spec), groups, head, operands), parts


def plan_halves(
    device: GpuDevice, found: Matrices, offsets: tuple[int, int], shape: Shape, bias: int | None
) -> Plan | None:
    """A plan for float32 on tensor cores; None where there are none, or not for this product."""
    m, n, k, batches = found.m, found.n, found.k, found.batches
    a = walk_of(found.a, found.a_batch, offsets[0], m, k)
    b = walk_of(found.b, found.b_batch, offsets[1], n, k)
    tile = halves_tile(device, m, n, k, batches)
    if tile is None or not (a.vector and b.vector):
        return None
    copies = _turned(m, n, a, b)
    if copies:
        return Plan(shape, copies=copies)
    spec = Cooperative(
        tile,
        a.k_contiguous,
        b.k_contiguous,
        ragged=k % tile.depth > 0,
        whole=not (m % tile.rows or n % tile.columns),
        bias=False,
        partial=True,
        halves=True,
    )
    product, parts = _cooperative_launch(device, found, spec, (a, b))
    rows, columns = (
        count * own for count, own in zip(tile.cut(m, n), (tile.rows, tile.columns), strict=True)
    )
    size, part = m * n * batches, rows * columns * batches
    head = (size, m, n, rows, columns, parts, part)
    total = Launch.of(device, (scaled_sum, bias is not None), -(-size // 256), head)
    again, _ = choose_tile(device, m, n, k, batches)
    plain = plan_tiled(device, found, again, 1, "f32", offsets, shape, bias, unscaled=True)
    assert plain.launch is not None
    return Plan(
        shape,
        bias=plain.bias,
        halves=Halves(
            scales=(
                _scales(device, found, m, a, found.a, found.a_batch),
                _scales(device, found, n, b, found.b, found.b_batch),
            ),
            lines=(m * batches, n * batches),
            product=product,
            partial=part * parts,
            total=total,
            plain=plain.launch,
        ),
    )


def _scales(
    device: GpuDevice,
    found: Matrices,
    length: int,
    walk: kernels.Reading,
    strides: Shape,
    batch: Shape,
) -> Launch:
    """The launch that finds the scales of an operand of so many lines."""
    count, deep = length * found.batches, walk.k_contiguous
    groups = -(-count // lines_of_group(deep))
    head = (count, length, found.k, found.inner)
    operands = ((1, (*batch, *strides)),)
    return Launch.of(device, (line_scales, deep), groups, head, operands)
