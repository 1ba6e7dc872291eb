"""Attention by tiles of queries and keys, without scores in memory."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ._array import GpuArray
from ._copy import contiguous, full
from ._launch import Launch
from ._layout import broadcast_strides, merge_axes
from ._runtime import GpuDevice
from .products.tensor_cores import has_tensor_cores
from .wgsl.attention import Attention, AttentionTile, attention_source
from .wgsl.cooperative_attention import (
    LANES,
    CooperativeAttentionTile,
    cooperative_attention_source,
)

if TYPE_CHECKING:
    from ._table import Entries

# The fastest first, on an H200: 24, 21 and 20 TFLOP/s for heads of 64.
_TILES = (AttentionTile(128, 16), AttentionTile(64, 32), AttentionTile(32, 32))
_WIDEST = 64  # elements of a head: of 128, sums leave the registers (12 TFLOP/s, the formula 32)
_WIDEST_CAUSAL = 128  # which is still faster than to compute what is hidden
# Of float16 on tensor cores, by the widest head: 116 and 144 TFLOP/s on an H200.
_COOPERATIVE = {64: CooperativeAttentionTile(8, 16), 128: CooperativeAttentionTile(8, 32)}
_FEW = 16  # queries below which most of a tile would be padding


@dataclass(frozen=True, slots=True)
class Plan:
    """What is remembered of operands of one layout."""

    launch: Launch | None


def attention(
    device: GpuDevice,
    formula: Callable[..., GpuArray],
    query: GpuArray,
    key: GpuArray,
    value: GpuArray,
    mask: GpuArray | None,
    bias: GpuArray | None,
    *scoring: Any,
) -> GpuArray:
    """Scaled dot-product attention; by the formula where no tile fits."""
    scale, softcap, is_causal = scoring
    shape = (*query.shape[:-1], value.shape[-1])
    if not math.prod(shape) or not key.shape[-2]:
        return full(device, shape, 0.0, query.dtype)
    tile = _tile(device, query, key, value, is_causal)
    if tile is None:
        return formula(query, key, value, mask, bias, *scoring)
    together = 4 if type(tile) is AttentionTile else 8  # products load sixteen bytes
    heads = [x if _by(together, x) else contiguous(device, x) for x in (query, key, value)]
    given = [x for x in (mask, bias) if x is not None]
    spec: Attention[Any] = Attention(
        tile,
        query.wgsl,
        query.shape[-1],
        value.shape[-1],
        is_causal,
        mask is not None,
        bias is not None,
        softcap is not None,
    )
    at = (spec, *((x.shape, x.strides) for x in (*heads, *given)))
    found: Plan = device.plans.get(at) or device.plans.find(
        at, lambda: Plan(_launch(device, spec, heads, given))
    )
    if found.launch is None:
        return formula(query, key, value, mask, bias, *scoring)
    out = device.empty(shape, query.dtype)
    found.launch.run(device, [*heads, *given], [out], (scale, softcap or 0.0))
    return out


def _tile(
    device: GpuDevice, query: GpuArray, key: GpuArray, value: GpuArray, is_causal: bool
) -> AttentionTile | CooperativeAttentionTile | None:
    depth, columns, widest = query.shape[-1], value.shape[-1], max(query.shape[-1], value.shape[-1])
    if device.software or query.shape[-2] < _FEW or key.dtype is not query.dtype or not depth:
        return None
    tiles: tuple[AttentionTile | CooperativeAttentionTile, ...] = _TILES
    if query.wgsl == "f16" and has_tensor_cores(device):
        # Without a kernel of their own, products with scores in memory are faster than tiles.
        features = {"subgroup", "subgroup-barrier"} <= device.features
        if not features or device.tensor_lanes != LANES or depth % 16 or columns % 16:
            return None
        tiles = tuple(tile for width, tile in _COOPERATIVE.items() if widest <= width)
    elif depth % 4 or columns % 4 or widest > (_WIDEST_CAUSAL if is_causal else _WIDEST):
        return None
    memory = device.limits["max-compute-workgroup-storage-size"]
    fits = (tile for tile in tiles if tile.workgroup_bytes(depth, columns) <= memory)
    return next(fits, None)


def _by(count: int, x: GpuArray) -> bool:
    """Whether rows of an array lie at multiples of a count."""
    return x.strides[-1] == 1 and not any(at % count for at in (x.offset, *x.strides[:-1]))


def _launch(
    device: GpuDevice, spec: Attention[Any], heads: list[GpuArray], given: list[GpuArray]
) -> Launch | None:
    """The launch; None where batches take more than one stride."""
    query, key, _ = heads
    scores = (*query.shape[:-1], key.shape[-2])
    steps = [broadcast_strides(x.shape, x.strides, scores) for x in given]
    outer = len(scores) - 3
    lengths, batches = merge_axes(
        scores[:outer], [x.strides[:outer] for x in heads] + [own[:outer] for own in steps]
    )
    if len(lengths) > 1:
        return None
    batch = [own[0] if own else 0 for own in batches]
    tiles = -(-scores[-2] // spec.tile.own)
    groups = tiles * math.prod(scores[:-2])
    tail: list[float] = [groups, tiles, scores[-3], scores[-3] // key.shape[-3], *scores[-2:]]
    for x, own in zip(heads, batch, strict=False):
        tail += [own // 4, x.strides[-3] // 4, x.strides[-2] // 4]
    for strides, own in zip(steps, batch[3:], strict=True):
        tail += [own, *strides[-3:]]
    operands = (((4, ()),) * 3) + ((1, ()),) * len(given)
    tiled = type(spec.tile) is AttentionTile
    kernel = (attention_source if tiled else cooperative_attention_source, spec)
    return Launch.of(device, kernel, groups, (), operands, tuple(tail))


PARTIAL: Entries = {"attention": attention}
