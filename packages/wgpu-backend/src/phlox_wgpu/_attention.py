"""Attention by tiles of queries and keys, without scores in memory."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from phlox_tensor import float32

from ._array import GpuArray
from ._copy import contiguous, full
from ._kernel import Kernel
from ._launch import Launch
from ._layout import broadcast_strides, merge_axes
from ._runtime import GpuDevice
from .products.tensor_cores import has_tensor_cores
from .wgsl.attention import Attention, AttentionTile
from .wgsl.attention_backward import (
    attention_keys,
    attention_queries,
    attention_rows,
    backward_bytes,
)
from .wgsl.attention_few import FewQueries, few_queries_source
from .wgsl.attention_forward import ForwardTile, attention_source
from .wgsl.cooperative_attention import (
    LANES,
    CooperativeAttentionTile,
    cooperative_attention_source,
)
from .wgsl.cooperative_backward import (
    cooperative_backward_bytes,
    cooperative_keys,
    cooperative_queries,
    cooperative_rows,
)

if TYPE_CHECKING:
    from ._table import Entries

# By the widest head: 27, 33 and 26 TFLOP/s on an H200. Those that follow need less memory: 27 and
# 21 TFLOP/s for heads of 64.
_TILES = (
    (32, ForwardTile(64, 4, 8, 2, 16)),
    (64, ForwardTile(128, 8, 16, 2, 32)),
    (128, ForwardTile(64, 4, 16, 2, 16)),
    (math.inf, ForwardTile(64, 4, 8, 2, 16)),
    (math.inf, ForwardTile(32, 4, 8, 1, 16)),
)
_WIDEST = 64  # elements of a head: of 128, tiles reach 27 TFLOP/s, the formula 33
_WIDEST_CAUSAL = 128  # which is still faster than to compute what is hidden
# Of float16 on tensor cores, by the widest head: 116 and 144 TFLOP/s on an H200.
_COOPERATIVE = ((64, CooperativeAttentionTile(8, 16)), (128, CooperativeAttentionTile(8, 32)))
_BACKWARD = (AttentionTile(32, 32), AttentionTile(16, 32), AttentionTile(16, 16))
_COOPERATIVE_BACKWARD = (CooperativeAttentionTile(8, 16), CooperativeAttentionTile(4, 16))
_FEW = 16  # queries below which most of a tile would be padding
_BY_KEYS = FewQueries(256, 512)
_WIDEST_FEW = 256  # elements of a head, which a thread holds a part of
_MOST_KEYS = 4096  # of few queries: more are shared by too few workgroups


OfQueries = CooperativeAttentionTile | FewQueries | ForwardTile
Tile = AttentionTile | OfQueries
_SOURCES: dict[type[OfQueries], Callable[[Any], Kernel]] = {
    CooperativeAttentionTile: cooperative_attention_source,
    FewQueries: few_queries_source,
    ForwardTile: attention_source,
}
Kernels = tuple[Callable[[Any], Kernel], ...]


@dataclass(frozen=True, slots=True)
class Plan:
    """What is remembered of operands of one layout: launches, if there are some for it."""

    launches: tuple[Launch, ...]


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
    kernel = _SOURCES[type(tile)]
    given = [x for x in (mask, bias) if x is not None]
    heads, launches = _plan(device, (kernel,), tile, [query, key, value], mask, bias, scoring)
    if not launches:
        return formula(query, key, value, mask, bias, *scoring)
    out = device.empty(shape, query.dtype)
    launches[0].run(device, [*heads, *given], [out], (scale, softcap or 0.0))
    return out


def attention_backward(
    device: GpuDevice,
    formula: Callable[..., tuple[GpuArray, ...]],
    g: GpuArray,
    query: GpuArray,
    key: GpuArray,
    value: GpuArray,
    mask: GpuArray | None,
    bias: GpuArray | None,
    *scoring: Any,
) -> tuple[GpuArray, ...]:
    """Cotangents of attention; by the formula where no tile fits, or a bias wants all scores."""
    scale, softcap, is_causal = scoring
    tile = _backward_tile(device, query, key, value, is_causal) if bias is None else None
    if tile is None:
        return formula(g, query, key, value, mask, bias, *scoring)
    kernels: Kernels = (cooperative_rows, cooperative_queries, cooperative_keys)
    if type(tile) is AttentionTile:
        kernels = (attention_rows, attention_queries, attention_keys)
    heads, launches = _plan(device, kernels, tile, [query, key, value, g], mask, None, scoring)
    if not launches:
        return formula(g, query, key, value, mask, bias, *scoring)
    given = [*heads[:3], *([] if mask is None else [mask]), heads[3]]
    numbers = device.empty((*query.shape[:-1], 4), float32)
    dquery, dkey, dvalue = (device.empty(x.shape, x.dtype) for x in (query, key, value))
    more = (scale, softcap or 0.0)
    launches[0].run(device, given, [numbers], more)
    launches[1].run(device, [*given, numbers], [dquery], more)
    launches[2].run(device, [*given, numbers], [dkey, dvalue], more)
    return dquery, dkey, dvalue, device.empty((0,), query.dtype)


def _tile(
    device: GpuDevice, query: GpuArray, key: GpuArray, value: GpuArray, is_causal: bool
) -> OfQueries | None:
    depth, columns, widest = query.shape[-1], value.shape[-1], max(query.shape[-1], value.shape[-1])
    if device.software or key.dtype is not query.dtype or not depth:
        return None
    by_width: tuple[tuple[float, OfQueries], ...] = _TILES
    if query.shape[-2] < _FEW:
        if depth % 4 or columns % 4 or key.shape[-2] > _MOST_KEYS:
            return None
        by_width = ((_WIDEST_FEW, _BY_KEYS),)
    elif query.wgsl == "f16" and has_tensor_cores(device):
        if not _cooperates(device, depth, columns):
            return None
        by_width = _COOPERATIVE
    else:
        slow = widest > (_WIDEST_CAUSAL if is_causal else _WIDEST)
        if depth % 4 or columns % 4 or (slow and _holds_scores(device, query, key)):
            return None
    memory = device.limits["max-compute-workgroup-storage-size"]
    tiles = (tile for width, tile in by_width if widest <= width)
    return next((x for x in tiles if x.workgroup_bytes(depth, columns) <= memory), None)


def _backward_tile(
    device: GpuDevice, query: GpuArray, key: GpuArray, value: GpuArray, is_causal: bool
) -> Tile | None:
    """The tile of the kernels for cotangents; None where the formula is faster.

    Tiles make scores twice more. In float32 that pays where most are hidden, on an H200: 5.0 ms
    for 6.8 of causal heads of 64, 9.4 for 3.2 of others; or where scores would not fit a binding.
    """
    depth, columns = query.shape[-1], value.shape[-1]
    rows = min(query.shape[-2], key.shape[-2])
    nothing = not math.prod((*query.shape, *key.shape, columns))
    if device.software or nothing or rows < _FEW or key.dtype is not query.dtype:
        return None
    memory = device.limits["max-compute-workgroup-storage-size"]
    if query.wgsl == "f16" and has_tensor_cores(device):
        if not _cooperates(device, depth, columns):
            return None
        cooperative = (
            tile
            for tile in _COOPERATIVE_BACKWARD
            if cooperative_backward_bytes(tile, depth, columns) <= memory
        )
        return next(cooperative, None)
    faster = is_causal and max(depth, columns) <= _WIDEST
    if depth % 4 or columns % 4 or (_holds_scores(device, query, key) and not faster):
        return None
    fits = (tile for tile in _BACKWARD if backward_bytes(tile, depth, columns) <= memory)
    return next(fits, None)


def _holds_scores(device: GpuDevice, query: GpuArray, key: GpuArray) -> bool:
    """Whether the formula's scores of float32 fit a binding."""
    return 4 * math.prod(query.shape[:-1]) * key.shape[-2] <= device.max_binding_bytes


def _cooperates(device: GpuDevice, depth: int, columns: int) -> bool:
    """Whether heads fit the kernels on tensor cores.

    Without these, products with scores in memory are faster than tiles.
    """
    features = {"subgroup", "subgroup-barrier"} <= device.features
    return features and device.tensor_lanes == LANES and not (depth % 16 or columns % 16)


def _plan(
    device: GpuDevice,
    kernels: Kernels,
    tile: Tile,
    heads: list[GpuArray],
    mask: GpuArray | None,
    bias: GpuArray | None,
    scoring: Any,
) -> tuple[list[GpuArray], tuple[Launch, ...]]:
    """Heads that can be read by vectors, and the launches there are for them."""
    _, softcap, is_causal = scoring
    together = 8 if type(tile) is CooperativeAttentionTile else 4  # products load sixteen bytes
    heads = [x if _by(together, x) else contiguous(device, x) for x in heads]
    given = [x for x in (mask, bias) if x is not None]
    query, _, value, *_ = heads
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
    at = (kernels, spec, *((x.shape, x.strides) for x in (*heads, *given)))
    found: Plan = device.plans.get(at) or device.plans.find(
        at, lambda: Plan(_launches(device, kernels, spec, heads, given))
    )
    return heads, found.launches


def _by(count: int, x: GpuArray) -> bool:
    """Whether rows of an array lie at multiples of a count."""
    return x.strides[-1] == 1 and not any(at % count for at in (x.offset, *x.strides[:-1]))


def _launches(
    device: GpuDevice,
    kernels: Kernels,
    spec: Attention[Any],
    heads: list[GpuArray],
    given: list[GpuArray],
) -> tuple[Launch, ...]:
    """The launches; none where batches take more than one stride."""
    query, key, *_ = heads
    scores = (*query.shape[:-1], key.shape[-2])
    steps = [broadcast_strides(x.shape, x.strides, scores) for x in given]
    outer = len(scores) - 3
    lengths, batches = merge_axes(
        scores[:outer], [x.strides[:outer] for x in heads] + [own[:outer] for own in steps]
    )
    if len(lengths) > 1:
        return ()
    batch = [own[0] if own else 0 for own in batches]
    operands = ((4, ()),) * 3 + ((1, ()),) * len(given) + ((4, ()),) * (len(heads) - 3)
    launches = []
    for kernel in kernels:
        lines = key if kernel in (attention_keys, cooperative_keys) else query
        tiles = -(-lines.shape[-2] // spec.tile.own)
        groups = tiles * math.prod(lines.shape[:-2])
        tail: list[float] = [groups, tiles, scores[-3], scores[-3] // key.shape[-3], *scores[-2:]]
        for x, own in zip(heads, batch, strict=False):
            tail += [own // 4, x.strides[-3] // 4, x.strides[-2] // 4]
        for strides, own in zip(steps, batch[len(heads) :], strict=True):
            tail += [own, *strides[-3:]]
        launches.append(Launch.of(device, (kernel, spec), groups, (), operands, tuple(tail)))
    return tuple(launches)


PARTIAL: Entries = {"attention": attention, "attention_backward": attention_backward}
