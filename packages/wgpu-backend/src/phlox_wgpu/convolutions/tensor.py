"""Plans of convolutions of float16 on tensor cores."""

from __future__ import annotations

import math

from .._array import GpuArray
from .._layout import Shape
from .._runtime import GpuDevice
from ..products.plans import ENOUGH_GROUPS
from ..products.tensor_cores import lanes_of
from ..wgsl.cooperative import SQUARE, CooperativeTile
from ..wgsl.cooperative_conv import CooperativeConv, cooperative_conv, cooperative_weight
from .windows import Axis, Plan, dealt, image_of, result_of

# Rows, columns and depth of a tile; rows and columns of a subgroup. Which of two for so many
# channels depends on how images are read: by windows, or by positions for the weight.
_FEW, _FEW_WEIGHT, _MANY = (64, 128, 16, 32, 64), (64, 64, 32, 32, 32), (128, 64, 32, 64, 32)
_LEAST = 33  # channels below which float32 is as fast: tiles are half padding
_DEEP = 8  # tiles of positions per part of a weight's cotangent, at least


def tile_of(
    device: GpuDevice, m: int, few: tuple[int, int, int, int, int]
) -> CooperativeTile | None:
    """The tile for so many channels of the result; None where there is none."""
    if m < _LEAST or not lanes_of(device):
        return None
    padded = -(-m // _MANY[0]) * _MANY[0] - m
    shape = _MANY if padded < _FEW[0] else few
    tile = CooperativeTile(*shape, device.tensor_lanes or 0)
    memory = device.limits["max-compute-workgroup-storage-size"]
    return tile if tile.workgroup_bytes(partial=False) <= memory else None


def plan_tensor(
    device: GpuDevice,
    x: GpuArray,
    weight: GpuArray,
    bias: bool,
    out: GpuArray,
    axes: tuple[Axis, Axis],
    table: GpuArray,
) -> Plan | None:
    """A plan for tensor cores; None where there are none, or not for this convolution."""
    groups, m, k = weight.shape
    if x.wgsl != "f16" or k % 4 or k < SQUARE or weight.offset % 4:
        return None
    tile = tile_of(device, m, _FEW)
    if tile is None:
        return None
    positions = axes[0].count * axes[1].count
    n = x.shape[0] * positions
    dense = all(axis.every == 1 for axis in axes)
    vector = dense and positions % 4 == 0
    spec = CooperativeConv(tile, k % tile.depth > 0, dense, vector, bias)
    tiles = -(-k // tile.depth)
    walk = result_of(out, groups, axes)
    operands = (4, (m * k // 4, k // 4, 1)), (1, (*image_of(x, groups, axes), *walk))
    kernel, rest = (cooperative_conv, spec), (tiles, tiles, m, n, k)
    return Plan(dealt(device, kernel, tile.cut(m, n), groups, rest, operands), table)


def plan_weight_tensor(
    device: GpuDevice,
    g: GpuArray,
    x: GpuArray,
    weight_shape: Shape,
    axes: tuple[Axis, Axis],
    groups: int,
    table: GpuArray,
) -> Plan | None:
    """A plan for tensor cores; None where there are none, or not for this cotangent."""
    m, n = weight_shape[0] // groups, math.prod(weight_shape[1:])
    positions = math.prod(g.shape[2:])
    if x.wgsl != "f16" or positions % 4 or g.offset % 4:
        return None
    tile = tile_of(device, m, _FEW_WEIGHT)
    if tile is None:
        return None
    image_tiles = -(-positions // tile.depth)
    tiles = g.shape[0] * image_tiles
    cut = tile.cut(m, n)
    parts = max(1, min(4 * ENOUGH_GROUPS // (math.prod(cut) * groups), tiles // _DEEP))
    per_split = -(-tiles // parts)
    parts = -(-tiles // per_split)
    steps = (g.shape[1] * positions, m * positions, positions)
    behind = *(step // 4 for step in steps), image_tiles
    operands = (4, behind), (1, image_of(x, groups, axes))
    kernel, rest = (cooperative_weight, tile), (tiles, per_split, m, n, positions)
    launch = dealt(device, kernel, cut, groups, rest, operands, parts)
    return Plan(launch, table, parts, partial=True)
