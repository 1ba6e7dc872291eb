"""Images and volumes read at places between the pixels: grids, regions, deformed windows; boxes."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from itertools import product
from math import prod
from operator import add
from typing import Any, NamedTuple

import numpy as np

from .._data.conversion import asarray
from .._errors.classes import ArgumentError, IndexOutOfRangeError, ShapeError
from .._op.records import Given, case, refusal
from .._values.kinds import Bool, Int
from .._values.tensor import Tensor
from ..reference import sampling as ref
from ..shapes import sampling as shapes
from ..shapes._window import window_sizes
from . import movement
from ._counts import held
from ._expansion import one_kernel
from ._families import contraction, indexing, window

# The constant of Keys' cubic convolution that PyTorch uses.
_CUBIC = -0.75
Tap = tuple[Tensor, Tensor]  # a whole position, and its weight


class _Found(NamedTuple):
    """Places along an axis as indices, -1 of those outside, and their weights."""

    place: Tensor[Int]
    weight: Tensor


def _linspace(n: int, align_corners: bool, like: Tensor) -> Tensor:
    """The middles of n pixels from -1 to 1, or with their corners there."""
    return asarray(shapes.middles(n, align_corners), dtype=like.dtype, device=like.device)


@contraction.formula(
    "theta: Float; size: Shape, align_corners: bool = False -> Float",
    numpy=ref.affine_grid,
    shape=shapes.affine_grid,
    linear=True,
    ulp=8,
    atol=8,
    cases=(
        case((2, 2, 3), size=(2, 1, 3, 2)),
        case((1, 2, 3), size=(1, 1, 2, 3), align_corners=True),
        case((1, 3, 4), size=(1, 1, 2, 1, 3)),
    ),
    refuses=(refusal(ShapeError, (1, 2, 2), size=(1, 1, 2, 2)),),
    method=False,
    example="pt.affine_grid(pt.asarray([[[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]]]), (1, 1, 2, 2))",
    doc="Where ``grid_sample`` reads images of ``size`` (N, C, H, W) under the maps "
    "theta (N, 2, 3): places (N, H, W, 2), x before y; of volumes (N, C, D, H, W) under theta "
    "(N, 3, 4) places (N, D, H, W, 3). Jaderberg et al., 2015.",
)
def affine_grid(theta: Tensor, size: Sequence[int], align_corners: bool) -> Tensor:
    wide = theta.to_full_precision()
    axes = size[2:]
    rank = len(axes)
    lines = [
        _linspace(n, align_corners, wide).reshape(tuple(n if j == i else 1 for j in range(rank)))
        for i, n in enumerate(axes)
    ]
    points = [line.broadcast_to(tuple(axes)) for line in reversed(lines)]
    base = movement.stack([*points, points[0].zeros() + 1], axis=-1).reshape((-1, rank + 1))
    grid = base @ wide.mT
    return grid.reshape((size[0], *axes, rank)).astype(theta.dtype)


def _mirrored(at: Tensor, n: int, align_corners: bool) -> Tensor:
    """Positions reflected at the edges until they are inside."""
    low, span = (0.0, float(n - 1)) if align_corners else (-0.5, float(n))
    if span == 0:
        return at * 0.0
    off = (at - low).abs()
    turns = (off / span).detach().floor()
    rest = off - turns * span
    even = turns - 2 * (turns * 0.5).floor() == 0
    return (even.where(rest, span - rest) + low).clip(0.0, n - 1.0)


def _inside(at: Tensor, n: int, padding_mode: str, align_corners: bool) -> Tensor:
    """Positions moved inside; those that no move brings there become 0, as in PyTorch."""
    if padding_mode == "border":
        return at.isnan().where(0.0, at).clip(0.0, n - 1.0)
    if padding_mode == "reflection":
        return _mirrored(at.isfinite().where(at, 0.0), n, align_corners)
    return at


def _far(t: Tensor) -> Tensor:
    return ((t - 5) * t + 8) * t * _CUBIC - 4 * _CUBIC


def _near(t: Tensor) -> Tensor:
    return ((_CUBIC + 2) * t - (_CUBIC + 3)) * t * t + 1


def _taps(at: Tensor, n: int, mode: str, padding_mode: str, align_corners: bool) -> list[Tap]:
    """Whole positions around places along an axis of n, and their weights."""
    if mode == "bicubic":
        first = at.detach().floor()
        t = at - first
        weights = [_far(1 + t), _near(t), _near(1 - t), _far(2 - t)]
        places = [_inside(first + i, n, padding_mode, align_corners) for i in (-1, 0, 1, 2)]
        return list(zip(places, weights, strict=True))
    at = _inside(at, n, padding_mode, align_corners)
    if mode == "nearest":
        return [(at.detach().round(), at.zeros() + 1)]
    first = at.detach().floor()
    t = at - first
    return [(first, 1 - t), (first + 1, t)]


def _placed(rows: Tensor, columns: Tensor, size: Sequence[int]) -> tuple[Tensor[Int], Tensor[Bool]]:
    """Numbers of pixels at whole places, 0 of those outside, and which are inside."""
    height, width = size
    inside = (rows >= 0) & (rows <= height - 1) & (columns >= 0) & (columns <= width - 1)
    place = inside.where(rows * width + columns, 0.0).astype(rows.device.default_int)
    return place, inside


@one_kernel
def _index(at: Tensor, n: int) -> Tensor[Int]:
    """Whole places as indices, -1 of those outside."""
    return ((at >= 0) & (at <= n - 1)).where(at, -1.0).astype(at.device.default_int)


@one_kernel
def _pixel(row: Tensor[Int], column: Tensor[Int], n: int) -> Tensor[Int]:
    """The numbers of pixels in lines of n, -1 of those outside."""
    return ((row >= 0) & (column >= 0)).where(row * n + column, -1)


@one_kernel
def _added(place: Tensor[Int], read: Tensor, *others: Tensor) -> Tensor:
    """What is read, 0 outside, times weights; with what is in front of these, added to it."""
    *before, weight = others
    part = (place >= 0).where(read, 0.0) * weight
    return before[0] + part if before else part


def _sampled(x: Tensor, lines: Sequence[list[Tap]]) -> Tensor:
    """The weighted sum of pixels of x (N, C, *sizes) at places (N, L), by axis: (N, C, L)."""
    sizes = x.shape[2:]
    flat = x.reshape((*x.shape[:2], prod(sizes)))
    found = [
        [_Found(_index(at.detach(), n), weight) for at, weight in taps]
        for taps, n in zip(lines, sizes, strict=True)
    ]
    out: list[Tensor] = []
    for taps in product(*found):
        place, weight = taps[0]
        for tap, n in zip(taps[1:], sizes[1:], strict=True):
            place, weight = _pixel(place, tap.place, n), weight * tap.weight
        place, weight = place.expand_dims(axis=1), weight.expand_dims(axis=1)
        # Where a place is outside, the last pixel is read for nothing.
        read = flat.take_along_axis(place.broadcast_to((*flat.shape[:2], place.shape[2])), axis=2)
        out = [_added(place, read, *out, weight)]
    return out[0]


@one_kernel
def _unscaled(one: Tensor, count: int, align_corners: bool) -> Tensor:
    """Places from -1 to 1 as those of pixels."""
    return (one + 1) * ((count - 1) / 2) if align_corners else ((one + 1) * count - 1) * 0.5


@window.formula(
    "x: Float, grid: Float; mode: str = 'bilinear', padding_mode: str = 'zeros', "
    "align_corners: bool = False -> Float",
    numpy=ref.grid_sample,
    shape=shapes.grid_sample,
    domain={"grid": (-1.3, 1.3)},
    ulp=64,
    atol=64,
    cases=(
        case((1, 2, 2, 3), (1, 2, 1, 2)),
        case((2, 1, 2, 2), (2, 1, 1, 2), padding_mode="border", align_corners=True),
        case((1, 1, 2, 3), (1, 1, 1, 2), padding_mode="reflection"),
        case((1, 1, 3, 2), (1, 1, 1, 2), padding_mode="reflection", align_corners=True),
        case((1, 1, 2, 3), (1, 1, 2, 2), mode="nearest"),
        case((1, 1, 3, 2), (1, 1, 1, 2), mode="bicubic"),
        case((1, 2, 2, 1, 3), (1, 1, 2, 1, 3)),
        case((1, 1, 2, 2, 2), (1, 1, 1, 2, 3), padding_mode="reflection", align_corners=True),
        case((2, 1, 2, 3, 1), (2, 1, 1, 1, 3), mode="nearest", padding_mode="border"),
    ),
    refuses=(
        refusal(ShapeError, (1, 1, 2, 2), (2, 1, 1, 2)),
        refusal(ShapeError, (1, 1, 2, 2, 2), (1, 1, 1, 1, 2)),
        refusal(ShapeError, (1, 2, 2), (1, 1, 2)),
        refusal(ArgumentError, (1, 1, 2, 2, 2), (1, 1, 1, 1, 3), mode="bicubic"),
        refusal(ArgumentError, (1, 1, 2, 2), (1, 1, 1, 2), mode="round"),
        refusal(ArgumentError, (1, 1, 2, 2), (1, 1, 1, 2), padding_mode="edge"),
    ),
    method=False,
    example=(
        "pt.grid_sample(pt.asarray([[[[1.0, 2.0], [3.0, 4.0]]]]), pt.asarray([[[[0.0, "
        "0.0], [1.0, 1.0]]]]), align_corners=True)"
    ),
    doc="Images (N, C, H, W) read at places (N, H', W', 2), x before y, -1 and 1 at the edges; "
    "volumes (N, C, D, H, W) at places (N, D', H', W', 3), depth last. ``mode``: bilinear (of "
    "volumes trilinear), nearest or, of images, bicubic; ``padding_mode`` for places outside: "
    "zeros, border or reflection. Sampling is as in PyTorch: with border and reflection a nan "
    "reads the first pixel, but bicubic, and so does an infinity that would be reflected. Of "
    "volumes PyTorch reads the last there, and 0 where a bilinear place that is not finite gives "
    "nan here. Jaderberg et al., 2015.",
)
def grid_sample(
    x: Tensor, grid: Tensor, mode: str, padding_mode: str, align_corners: bool
) -> Tensor:
    n, *size, axes = grid.shape
    wide = grid.to_full_precision().reshape((n, prod(size), axes))
    lines = []
    for axis, count in enumerate(x.shape[2:]):
        one = wide[..., axes - 1 - axis]
        at = _unscaled(one, count, align_corners)
        lines.append(_taps(at, count, mode, padding_mode, align_corners))
    out = _sampled(x.to_full_precision(), lines)
    return out.reshape((n, x.shape[1], *size)).astype(x.dtype)


@window.formula(
    "x: Float, offset: Float, weight: Float, mask: Float?, bias: Float?; stride: Pair = 1, "
    "padding: Sides = 0, dilation: Pair = 1, groups: int = 1 -> Float",
    numpy=ref.deform_conv2d,
    shape=shapes.deform_conv2d,
    domain={"offset": (-0.9, 0.9)},
    ulp=64,
    atol=128,
    cases=(
        case((1, 2, 2, 3), (1, 8, 1, 2), (1, 2, 2, 2), (1, 4, 1, 2), (1,)),
        case((1, 2, 3, 2), (1, 4, 3, 2), (2, 1, 1, 2), None, None, stride=2, padding=1, groups=2),
    ),
    refuses=(refusal(ShapeError, (1, 2, 2, 3), (1, 8, 2, 2), (1, 2, 2, 2), None, None),),
    method=False,
    example=(
        "pt.deform_conv2d(pt.asarray([[[[1.0, 2.0], [3.0, 4.0]]]]), pt.zeros((1, 2, 2, "
        "2)) + 0.5, pt.ones((1, 1, 1, 1)))"
    ),
    doc="``conv2d`` whose windows are bent: each place reads x at its own ``offset`` (N, "
    "2·parts·kh·kw, H', W'), row before column, times ``mask`` (N, parts·kh·kw, H', W'). Dai et "
    "al., 2017; Zhu et al., 2018.",
)
def deform_conv2d(
    x: Tensor,
    offset: Tensor,
    weight: Tensor,
    mask: Tensor | None,
    bias: Tensor | None,
    stride: Any,
    padding: Any,
    dilation: Any,
    groups: int,
) -> Tensor:
    n, channels = x.shape[:2]
    kernel: Any = weight.shape[2:]
    count = kernel[0] * kernel[1]
    size = window_sizes("deform_conv2d", x.shape[2:], kernel, stride, padding, dilation)
    length = count * size[0] * size[1]
    parts = offset.shape[1] // (2 * count)
    moved = offset.to_full_precision().reshape((n, parts, count, 2, *size))
    starts = shapes.starts(kernel, stride, padding, dilation, size)
    taps = []
    for i, start in enumerate(starts):
        base = asarray(start, dtype=moved.dtype, device=x.device)
        at = (moved[:, :, :, i] + base).reshape((n * parts, length))
        taps.append(_taps(at, x.shape[2 + i], "bilinear", "zeros", False))
    images = x.to_full_precision().reshape((n * parts, channels // parts, *x.shape[2:]))
    columns = _sampled(images, taps).reshape((n, parts, channels // parts, length))
    if mask is not None:
        columns = columns * mask.to_full_precision().reshape((n, parts, 1, length))
    inner = channels // groups * count
    columns = columns.reshape((n, groups, inner, size[0] * size[1]))
    kernels = weight.to_full_precision().reshape((groups, weight.shape[0] // groups, inner))
    y = (kernels @ columns).reshape((n, weight.shape[0], *size))
    if bias is not None:
        y = y + bias.to_full_precision().reshape((-1, 1, 1))
    return y.astype(x.dtype)


def _of_images(x: Tensor, numbers: Tensor[Int], rows: list[Tap], columns: list[Tap]) -> Tensor:
    """As ``_sampled``, where each line of places (K, L) reads one image of x: (K, C, L)."""
    n, c, height, width = x.shape
    flat = x.permute_dims((1, 0, 2, 3)).reshape((c, n * height * width))
    first = (numbers * (height * width)).expand_dims(axis=1)
    parts = []
    for row, weight in rows:
        for column, share in columns:
            place, inside = _placed(row.detach(), column.detach(), (height, width))
            found = flat.take(place + first, axis=1)
            parts.append(inside.where(found * (weight * share), 0.0))
    return reduce(add, parts).permute_dims((1, 0, 2))


def _numbers(boxes: Tensor, count: int) -> Tensor[Int]:
    """The image of each box, by its number without what is behind the point."""
    given = boxes[:, 0]
    # The number of no image goes on as it is, for its error, where an integer holds it.
    held_by_integers = (given > -(2.0**31)) & (given < 2.0**31)
    numbers = held_by_integers.where(given, -1.0).floor().astype(boxes.device.default_int)
    return held("roi_align", "image of a box", numbers, count - 1)


# Of the images 2 and 0; what is behind the point is left out, so that a step of it stays there.
_BOXES = [[2.5, 0.1, 0.2, 1.9, 0.9], [0.5, 0.35, 0.1, 1.1, 1.2]]


@contraction.formula(
    "x: Float, boxes: Float; size: Pair, spatial_scale: float = 1.0, sampling_ratio: int = 2, "
    "aligned: bool = False -> Float",
    numpy=ref.roi_align,
    shape=shapes.roi_align,
    domain={"boxes": (0.1, 0.9)},
    ulp=64,
    atol=64,
    cases=(
        case((1, 1, 2, 3), (1, 5), size=1),
        case((1, 1, 3, 2), (2, 5), size=(1, 2), spatial_scale=3.0, aligned=True),
        case((3, 2, 2, 3), Given(_BOXES), size=(2, 1), aligned=True),
    ),
    refuses=(
        refusal(ShapeError, (1, 1, 2, 2), (1, 4), size=1),
        refusal(IndexOutOfRangeError, (1, 1, 2, 2), Given([[1.0, 0.0, 0.0, 1.0, 1.0]]), size=1),
        refusal(IndexOutOfRangeError, (2, 1, 2, 2), Given([[-1.0, 0.0, 0.0, 1.0, 1.0]]), size=1),
        refusal(ShapeError, (1, 1, 0, 2), (1, 5), size=1),
        refusal(ArgumentError, (1, 1, 2, 2), (1, 5), size=1, sampling_ratio=0),
        refusal(ArgumentError, (1, 1, 2, 2), (1, 5), size=1, spatial_scale=0.0),
        refusal(ArgumentError, (1, 1, 2, 2), (1, 5), size=1, spatial_scale=float("nan")),
    ),
    method=False,
    example=(
        "pt.roi_align(pt.asarray([[[[1.0, 2.0], [3.0, 4.0]]]]), pt.asarray([[0.0, 0.0, "
        "0.0, 2.0, 2.0]]), 2)"
    ),
    doc="Boxes (K, 5) of images (N, C, H, W), each as (C, *size): a row is the number of the image "
    "and x1, y1, x2, y2 times ``1 / spatial_scale``; a cell is the mean of ``sampling_ratio``² "
    "places between pixels. The number of no image raises IndexOutOfRangeError, nan as well; what "
    "is behind its point is left out. He et al., 2017.",
)
def roi_align(
    x: Tensor, boxes: Tensor, size: Any, spatial_scale: float, sampling_ratio: int, aligned: bool
) -> Tensor:
    wide = boxes.to_full_precision()
    count, (rows, columns) = boxes.shape[0], size
    half = 0.5 if aligned else 0.0
    ends = wide[:, 1:] * spatial_scale - half
    numbers = _numbers(wide.detach(), x.shape[0])
    taps, seen = [], []
    for first, n, m in ((1, rows, x.shape[2]), (0, columns, x.shape[3])):
        low = ends[:, first : first + 1]
        length = ends[:, first + 2 : first + 3] - low
        if not aligned:
            length = length.maximum(1.0)
        steps = (np.arange(n * sampling_ratio) + 0.5) / (n * sampling_ratio)
        at = low + length * asarray(steps, dtype=wide.dtype, device=x.device)
        seen.append((at >= -1.0) & (at <= float(m)))
        taps.append(at.clip(0.0, m - 1.0))
    shape = (count, rows * sampling_ratio, columns * sampling_ratio)
    line = (count, shape[1] * shape[2])
    down = taps[0].expand_dims(axis=2).broadcast_to(shape).reshape(line)
    across = taps[1].expand_dims(axis=1).broadcast_to(shape).reshape(line)
    how = ("bilinear", "border", True)
    lines = _taps(down, x.shape[2], *how), _taps(across, x.shape[3], *how)
    found = _of_images(x.to_full_precision(), numbers, *lines)
    inside: Tensor[Bool] = seen[0].expand_dims(axis=2) & seen[1].expand_dims(axis=1)
    found = inside.reshape((count, 1, line[1])).where(found, 0.0)
    cells = found.reshape((count, x.shape[1], rows, sampling_ratio, columns, sampling_ratio))
    return cells.mean(axis=(3, 5)).astype(x.dtype)


@indexing.formula(
    "boxes: Float, scores: Float; iou_threshold: float = 0.5 -> Int",
    numpy=ref.nms,
    shape=shapes.nms,
    measured=True,
    cases=(case((9, 4), (9,)), case((12, 4), (12,), iou_threshold=0.1), case((0, 4), (0,))),
    refuses=(
        refusal(ShapeError, (2, 3), (2,)),
        refusal(ShapeError, (2, 4), (3,)),
    ),
    method=False,
    example=(
        "pt.nms(pt.asarray([[0.0, 0.0, 2.0, 2.0], [0.0, 0.0, 2.0, 1.9], [5.0, 5.0, 6.0, "
        "6.0]]), pt.asarray([0.8, 0.9, 0.7]), 0.5)"
    ),
    doc="Indices of boxes (K, 4) of x1, y1, x2, y2 that no better box covers by more than "
    "``iou_threshold`` of their union, best score first. The result is read on the host.",
)
def nms(boxes: Tensor, scores: Tensor, iou_threshold: float) -> Tensor[Int]:
    order = scores.argsort(axis=0, descending=True)
    wide = boxes.to_full_precision().detach().take(order, axis=0)
    low, high = wide[:, :2], wide[:, 2:]
    area = (high - low).prod(axis=1)
    top = low[:, None].maximum(low[None])
    common = (high[:, None].minimum(high[None]) - top).maximum(0.0).prod(axis=2)
    union = area[:, None] + area[None] - common
    count = boxes.shape[0]
    earlier = asarray(np.tri(count, k=-1, dtype=bool), device=boxes.device)
    covers = (common > iou_threshold * union) & (union > 0) & earlier
    kept = scores == scores.zeros()
    kept = kept | ~kept
    while count:  # each pass settles the boxes that only settled ones cover
        new = ~(covers & kept).any(axis=1)
        if bool((new == kept).all()):
            break
        kept = new
    return order.take(kept.nonzero()[0], axis=0)
