"""Convolutions: tables of windows, choosing a kernel by size, launching it."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from phlox_tensor import float32

from ._array import GpuArray, dense_strides
from ._copy import contiguous, copy
from ._launch import LONGEST_LOOP
from ._layout import Shape
from ._runtime import GpuDevice
from .convolutions.tensor import plan_tensor, plan_weight_tensor
from .convolutions.windows import (
    Axis,
    Pair,
    Plan,
    Sides,
    axes_of,
    dealt,
    image_of,
    result_of,
    table_of,
)
from .products.matmul import add_parts, matmul
from .products.plans import ENOUGH_GROUPS, choose_tile
from .wgsl import conv as kernels
from .wgsl.tile import Tile

if TYPE_CHECKING:
    from ._table import Entries

# Multiplications on a software adapter from which a tiled kernel is worth compiling.
_SOFTWARE_FROM = 1 << 26
_FEW_ROWS = 4  # channels per group below which most of a tile would be wasted
_PLAIN_ROWS = 8  # channels per thread without tiles, where there are more; a third faster than 4
_DEEP = 8  # tiles of positions per part of a weight's cotangent, at least


def _readable(device: GpuDevice, x: GpuArray) -> GpuArray:
    """Neighbours along the last axis lie together."""
    return x if x.strides[3] == 1 or x.shape[3] == 1 else copy(device, x)


def conv2d(
    device: GpuDevice,
    x: GpuArray,
    weight: GpuArray,
    bias: GpuArray | None,
    stride: Pair,
    padding: Sides,
    dilation: Pair,
    groups: int,
) -> GpuArray:
    """Cross-correlation of images (N, C, H, W) with weight (out, C / groups, kh, kw)."""
    count = [
        (n + a + b - d * (k - 1) - 1) // s + 1
        for n, k, s, (a, b), d in zip(
            x.shape[2:], weight.shape[2:], stride, padding, dilation, strict=True
        )
    ]
    out = device.empty((x.shape[0], weight.shape[0], *count), x.dtype)
    if not out.size:
        return out
    if bias is None and weight.shape[2:] == (1, 1) and _is_plain(stride, padding):
        return _pointwise(device, x, weight, groups)
    axes = axes_of(x.shape, count, weight.shape, stride, padding, dilation)
    x, weight = _readable(device, x), contiguous(device, weight)
    shape = (groups, weight.shape[0] // groups, math.prod(weight.shape[1:]))
    _correlate(device, x, weight.view(shape, dense_strides(shape), weight.offset), bias, out, axes)
    return out


def _is_plain(stride: Pair, padding: Sides) -> bool:
    return stride == (1, 1) and padding == ((0, 0), (0, 0))


def _pointwise(device: GpuDevice, x: GpuArray, weight: GpuArray, groups: int) -> GpuArray:
    """A 1x1 convolution is a product of matrices, one per image and group."""
    n, c, h, w = x.shape
    x = contiguous(device, x)
    images = x.view(
        (n, groups, c // groups, h * w), dense_strides((n, groups, c // groups, h * w)), x.offset
    )
    o = weight.shape[0] // groups
    steps = weight.strides
    matrix = weight.view((groups, o, c // groups), (o * steps[0], *steps[:2]), weight.offset)
    out = matmul(device, matrix, images)
    shape = (n, groups * o, h, w)
    return out.view(shape, dense_strides(shape), out.offset)


def _correlate(
    device: GpuDevice,
    x: GpuArray,
    weight: GpuArray,
    bias: GpuArray | None,
    out: GpuArray,
    axes: tuple[Axis, Axis],
    *,
    split: bool = True,
    padded: bool = True,
) -> None:
    """Windows of x times weight (group, channel, inner), dense, into positions of out."""
    key = (
        *("conv", x.layout, weight.layout, out.shape),
        *(axes, bias is None, split, padded),
    )
    plan: Plan = device.plans.get(key) or device.plans.find(
        key, lambda: _plan(device, x, weight, bias is not None, out, axes, split, padded)
    )
    inputs = [weight, x, plan.table]
    place: Shape = ()
    if bias is not None and plan.parts == 1:
        inputs.append(bias)
        place = (bias.offset, bias.strides[0])
    target = out if plan.parts == 1 else device.empty((plan.parts, *out.shape), float32)
    plan.launch.run(device, inputs, [target], place)
    if plan.parts > 1:
        add_parts(device, target, out, bias, math.prod(out.shape[2:]))


def _plan(
    device: GpuDevice,
    x: GpuArray,
    weight: GpuArray,
    bias: bool,
    out: GpuArray,
    axes: tuple[Axis, Axis],
    split: bool,
    padded: bool,
) -> Plan:
    groups, m, k = weight.shape
    n = x.shape[0] * axes[0].count * axes[1].count
    table = table_of(device, x.shape[1] // groups, x.strides[1:], axes)
    software = device.software
    small = m <= _FEW_ROWS or (software and groups * m * n * k < _SOFTWARE_FROM)
    if small and not (software and k > LONGEST_LOOP):
        return plan_plain(device, x, weight, bias, out, axes, table, padded=padded)
    plan = plan_tensor(device, x, weight, bias, out, axes, table)
    if plan is not None:
        return plan
    tile, parts = choose_tile(device, m, n, k, groups)
    return plan_tiled(device, x, weight, bias, out, axes, table, tile, parts if split else 1)


def plan_plain(
    device: GpuDevice,
    x: GpuArray,
    weight: GpuArray,
    bias: bool,
    out: GpuArray,
    axes: tuple[Axis, Axis],
    table: GpuArray,
    *,
    padded: bool = True,
) -> Plan:
    """A plan for the kernel without workgroup memory."""
    groups, m, k = weight.shape
    n = x.shape[0] * axes[0].count * axes[1].count
    spec = kernels.ConvPlain(x.wgsl, m if m <= _FEW_ROWS else _PLAIN_ROWS, bias, padded)
    tiles, walk = (-(-m // spec.rows), -(-n // 64)), result_of(out, groups, axes)
    operands = (1, (m * k, k, 1)), (1, (*image_of(x, groups, axes), *walk))
    kernel = kernels.conv_plain, spec
    return Plan(dealt(device, kernel, tiles, groups, (0, 0, m, n, k), operands), table)


def plan_tiled(
    device: GpuDevice,
    x: GpuArray,
    weight: GpuArray,
    bias: bool,
    out: GpuArray,
    axes: tuple[Axis, Axis],
    table: GpuArray,
    tile: Tile,
    parts: int,
) -> Plan:
    """A plan for the kernel with workgroup memory."""
    groups, m, k = weight.shape
    n = x.shape[0] * axes[0].count * axes[1].count
    positions = axes[0].count * axes[1].count
    dense = all(axis.every == 1 for axis in axes)
    tiles = -(-k // tile.depth)
    per_split = -(-tiles // parts)
    parts = max(1, -(-tiles // max(per_split, 1)))
    spec = kernels.Conv(
        tile=tile,
        stored=x.wgsl,
        ragged=k % tile.depth > 0,
        dense=dense,
        vector=dense and positions % 4 == 0,
        bias=bias and parts == 1,
        partial=parts > 1,
    )
    cut, walk = tile.cut(m, n), result_of(out, groups, axes)
    operands = (1, (m * k, k, 1)), (1, (*image_of(x, groups, axes), *walk))
    kernel, rest = (kernels.conv_source, spec), (tiles, per_split, m, n, k)
    return Plan(dealt(device, kernel, cut, groups, rest, operands, parts), table, parts)


def conv2d_input_grad(
    device: GpuDevice,
    g: GpuArray,
    weight: GpuArray,
    input_shape: Shape,
    stride: Pair,
    padding: Sides,
    dilation: Pair,
    groups: int,
) -> GpuArray:
    """Cotangent of `conv2d` for its input.

    Pixels that a stride apart are met by the same taps: each such set is a convolution of its own,
    with no multiplication by zero, into every stride-th pixel.
    """
    out = device.empty(input_shape, g.dtype)
    if not out.size:
        return out
    if weight.shape[2:] == (1, 1) and _is_plain(stride, padding):
        turned = weight.view(
            (groups, weight.shape[1], weight.shape[0] // groups),
            (weight.shape[0] // groups * weight.strides[0], weight.strides[1], weight.strides[0]),
            weight.offset,
        )
        flat = (groups * weight.shape[1], weight.shape[0] // groups, 1, 1)
        dense = contiguous(device, turned)
        return _pointwise(device, g, dense.view(flat, dense_strides(flat), dense.offset), groups)
    g = _readable(device, g)
    geometry = (input_shape[2:], g.shape[2:], weight.shape[2:], stride)
    before = (padding[0][0], padding[1][0])
    key = ("phases", *geometry, before, dilation)
    sides: list[list[tuple[Axis, int, int]]] = device.plans.get(key) or device.plans.find(
        key, lambda: [_phases(*each) for each in zip(*geometry, before, dilation, strict=True)]
    )
    single = len(sides[0]) * len(sides[1]) == 1
    for down, first_y, step_y in sides[0]:
        for right, first_x, step_x in sides[1]:
            taps = (first_y, step_y, down.taps), (first_x, step_x, right.taps)
            matrix = _turned(device, weight, groups, taps)
            _correlate(device, g, matrix, None, out, (down, right), split=single, padded=False)
    return out


def _phases(
    size: int, count: int, taps: int, stride: int, before: int, dilation: int
) -> list[tuple[Axis, int, int]]:
    """The walks of one direction of an input's cotangent, each with first tap and step."""
    found = []
    every = stride // math.gcd(stride, dilation)
    for phase in range(min(stride, size)):
        pixels = -(-(size - phase) // stride)
        hits = [j for j in range(min(every, taps)) if (phase + before - j * dilation) % stride == 0]
        if not hits:
            found.append((Axis(count, pixels, 0, 1, 0, 0, stride, phase), 0, 1))
            continue
        first = hits[0]
        start = (phase + before - first * dilation) // stride
        used = -(-(taps - first) // every)
        axis = Axis(count, pixels, used, 1, start, -(every * dilation // stride), stride, phase)
        found.append((axis, first, every))
    return found


def _turned(
    device: GpuDevice, weight: GpuArray, groups: int, taps: tuple[tuple[int, int, int], ...]
) -> GpuArray:
    """Some taps as dense weights (group, channel of the input, channel of the result and tap)."""
    outer, channels = weight.shape[0] // groups, weight.shape[1]
    steps = weight.strides
    (first_y, step_y, count_y), (first_x, step_x, count_x) = taps
    shape = (groups, channels, outer * count_y * count_x)
    some = weight.view(
        (groups, channels, outer, count_y, count_x),
        (outer * steps[0], steps[1], steps[0], step_y * steps[2], step_x * steps[3]),
        weight.offset + first_y * steps[2] + first_x * steps[3],
    )
    dense = copy(device, some)
    return dense.view(shape, dense_strides(shape), dense.offset)


def conv2d_weight_grad(
    device: GpuDevice,
    g: GpuArray,
    x: GpuArray,
    weight_shape: Shape,
    stride: Pair,
    padding: Sides,
    dilation: Pair,
    groups: int,
) -> GpuArray:
    """Cotangent of `conv2d` for its weight.

    A sum over all positions, cut into parts that are added in order.
    """
    out = device.empty(weight_shape, g.dtype)
    if not out.size:
        return out
    g, x = contiguous(device, g), _readable(device, x)
    key = (
        *("weight-grad", x.layout, g.layout, weight_shape),
        *(stride, padding, dilation, groups),
    )
    plan: Plan = device.plans.get(key) or device.plans.find(
        key, lambda: _plan_weight(device, g, x, weight_shape, (stride, padding, dilation), groups)
    )
    target = device.empty((plan.parts, *out.shape), float32) if plan.partial else out
    plan.launch.run(device, [g, x, plan.table], [target])
    if plan.partial:
        add_parts(device, target, out, None, 1)
    return out


def _plan_weight(
    device: GpuDevice,
    g: GpuArray,
    x: GpuArray,
    weight_shape: Shape,
    window: tuple[Pair, Sides, Pair],
    groups: int,
) -> Plan:
    axes = axes_of(x.shape, g.shape[2:], weight_shape, *window)
    table = table_of(device, weight_shape[1], x.strides[1:], axes)
    m, n = weight_shape[0] // groups, math.prod(weight_shape[1:])
    work = g.size * n
    positions = g.size // g.shape[1]
    longest = 64 * LONGEST_LOOP if device.software else positions
    small = m <= _FEW_ROWS or (device.software and work < _SOFTWARE_FROM)
    if small and positions <= longest:
        return plan_weight_plain(device, g, x, weight_shape, axes, groups, table)
    plan = plan_weight_tensor(device, g, x, weight_shape, axes, groups, table)
    if plan is not None:
        return plan
    parts = max(1, positions // (16 * _DEEP))  # as many as there may be, each like a batch
    tile, _ = choose_tile(device, m, n, 1, groups * parts)
    count = math.prod(tile.cut(m, n)) * groups
    tiles = g.shape[0] * -(-math.prod(g.shape[2:]) // tile.depth)
    parts = max(1, min(2 * ENOUGH_GROUPS // count, tiles // _DEEP), -(-tiles // longest))
    return plan_weight_tiled(device, g, x, weight_shape, axes, groups, table, tile, parts)


def plan_weight_plain(
    device: GpuDevice,
    g: GpuArray,
    x: GpuArray,
    weight_shape: Shape,
    axes: tuple[Axis, Axis],
    groups: int,
    table: GpuArray,
) -> Plan:
    """A plan for the kernel whose workgroups share a few sums."""
    m, n = weight_shape[0] // groups, math.prod(weight_shape[1:])
    positions = math.prod(g.shape[2:])
    spec = kernels.WeightPlain(x.wgsl, min(m, _FEW_ROWS))
    tiles, steps = (-(-m // spec.rows), -(-n // 4)), (g.shape[1] * positions, m * positions)
    operands = (1, (*steps, positions, 0)), (1, image_of(x, groups, axes))
    kernel, rest = (kernels.weight_plain, spec), (0, 0, m, n, g.shape[0] * positions)
    return Plan(dealt(device, kernel, tiles, groups, rest, operands), table)


def plan_weight_tiled(
    device: GpuDevice,
    g: GpuArray,
    x: GpuArray,
    weight_shape: Shape,
    axes: tuple[Axis, Axis],
    groups: int,
    table: GpuArray,
    tile: Tile,
    parts: int,
) -> Plan:
    """A plan for the kernel with workgroup memory."""
    m, n = weight_shape[0] // groups, math.prod(weight_shape[1:])
    positions = math.prod(g.shape[2:])
    image_tiles = -(-positions // tile.depth)
    tiles = g.shape[0] * image_tiles
    per_split = -(-tiles // parts)
    parts = max(1, -(-tiles // max(per_split, 1)))
    spec = kernels.WeightGrad(tile, x.wgsl, n % 4 == 0, parts > 1)
    behind = (g.shape[1] * positions, m * positions, positions, image_tiles)
    operands = (1, behind), (1, image_of(x, groups, axes))
    kernel, rest = (kernels.weight_source, spec), (tiles, per_split, m, n, positions)
    launch = dealt(device, kernel, tile.cut(m, n), groups, rest, operands, parts)
    return Plan(launch, table, parts, parts > 1)


ENTRIES: Entries = {
    "conv2d": conv2d,
    "conv2d_input_grad": conv2d_input_grad,
    "conv2d_weight_grad": conv2d_weight_grad,
}
