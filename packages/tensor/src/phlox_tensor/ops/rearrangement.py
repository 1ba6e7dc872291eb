"""Images cut into windows and put together; padding by borders; pixels reordered; appending."""

from __future__ import annotations

from functools import partial
from math import prod
from typing import Any, Final

import numpy as np

from .._data.conversion import asarray
from .._data.creation import arange
from .._errors.classes import IndexOutOfRangeError, ShapeError
from .._op.records import Given, IndexSample, case, refusal
from .._values.kinds import Int
from .._values.tensor import Tensor
from ..reference import rearrangement as ref
from ..shapes import rearrangement as shapes
from ..shapes._window import window_sizes
from . import binary, movement
from ._families import movement as moving
from ._families import window
from ._windows import added, padded, views

_reordering: Final = partial(window.formula, linear=True, method=False)
_HOW = "kernel: Pair, *, stride: Pair = 1, padding: Sides = 0, dilation: Pair = 1"


append = moving(
    "append",
    "x: Any, values: Any; axis: Axis -> Any",
    expand=lambda x, values, axis: movement.concat([x, values], axis=axis),
    numpy=lambda x, values, axis: np.concatenate([x, values], axis),
    shape=shapes.append,
    linear=True,
    cases=(
        case((2, 3), (1, 3), axis=0),
        case((2, 3, 2), (2, 2, 2), axis=-2),
        case((4,), (0,), axis=0),
    ),
    refuses=(refusal(ShapeError, (2, 3), (2, 4), axis=0),),
    method=False,
    example="pt.append(pt.asarray([1, 2]), pt.asarray([3]), axis=0)",
    doc="``values`` behind x along an axis, as ``concat`` of the two. On ``Cpu`` and ``Wgpu`` the "
    "result has room for half as many again, and the first call that appends to it writes there: "
    "what grows step by step, as a cache of keys and values, is copied seldom. x stays as it was "
    "for all who hold it; a second call that appends to the same x copies. What is recorded for a "
    "gradient, and other devices, copy each time.",
)


def _append_at(x: Tensor, values: Tensor, place: Tensor, axis: int) -> Tensor:
    """The same by comparing places, which copies."""
    places = arange(x.shape[axis], dtype=place.dtype, device=x.device)
    places = places.reshape(tuple(n if i == axis else 1 for i, n in enumerate(x.shape)))
    rest = binary.where(places == place, values, x.zeros(()))
    return binary.where(places < place, x, rest)


append_at = moving(
    "append_at",
    "x: Any, values: Any, place: Int; axis: Axis -> Any",
    expand=_append_at,
    numpy=ref.append_at,
    shape=shapes.append_at,
    cases=(
        case((5, 3), (1, 3), IndexSample((), -5), axis=0),
        case((2, 4, 2), (2, 1, 2), IndexSample((), -4), axis=-2),
        case((3, 0), (1, 0), IndexSample((), -3), axis=0),
    ),
    refuses=(refusal(ShapeError, (4, 3), (2, 3), IndexSample((), 4), axis=0),),
    internal=True,
    doc="The first ``place`` places of x along an axis, then the one of ``values``, then zeros: "
    "``append`` to a room of fixed size, as a compiled step needs it. x is given up: where it is "
    "what the call before gave, on ``Cpu`` and ``Wgpu``, the values are written into its memory, "
    "at a place where it has zeros. Its first places stay what they are for all who hold it.",
)


@moving.formula(
    "*tensors: Any -> Any",
    numpy=ref.cartesian_prod,
    shape=shapes.cartesian_prod,
    linear=True,
    cases=(case([(2,), (3,)]), case([(2,), (1,), (2,)]), case([(3,)]), case([(2,), (0,)])),
    refuses=(refusal(ShapeError, [(2, 2)]),),
    method=False,
    example="pt.cartesian_prod([pt.asarray([1, 2]), pt.asarray([3, 4])])",
    doc="Every choice of one element from each vector, a row for each; the last vector runs "
    "fastest.",
)
def cartesian_prod(tensors: list[Tensor[Any]]) -> Tensor[Any]:
    rank = len(tensors)
    shape = tuple(x.shape[0] for x in tensors)
    lines = [
        x.reshape(tuple(n if j == i else 1 for j in range(rank))).broadcast_to(shape)
        for i, (x, n) in enumerate(zip(tensors, shape, strict=True))
    ]
    return movement.stack([line.reshape((prod(shape),)) for line in lines], axis=1)


channel_shuffle = moving(
    "channel_shuffle",
    "x: Any; groups: int -> Any",
    expand=lambda x, groups: (
        x.reshape((x.shape[0], groups, x.shape[1] // groups, *x.shape[2:]))
        .swapaxes(1, 2)
        .reshape(x.shape)
    ),
    numpy=ref.channel_shuffle,
    shape=shapes.channel_shuffle,
    linear=True,
    cases=(case((2, 6, 2), groups=3), case((1, 4), groups=2)),
    refuses=(refusal(ShapeError, (1, 3, 2, 2), groups=2),),
    method=False,
    example="pt.channel_shuffle(pt.asarray([[[1], [2], [3], [4]]]), 2)",
    doc="The channels (axis 1) dealt out over ``groups``: the first of each group, then the "
    "second of each. Zhang et al., 2017.",
)


@_reordering(
    f"x: Float; size: Pair, {_HOW} -> Float",
    numpy=ref.fold,
    shape=shapes.fold,
    ulp=4,
    atol=8,
    cases=(
        case((2, 8, 6), size=(3, 4), kernel=2),
        case((1, 6, 2), size=(4, 3), kernel=(2, 3), stride=2, padding=((0, 1), (1, 0))),
        case((1, 4, 4), size=4, kernel=2, dilation=2),
    ),
    refuses=(refusal(ShapeError, (1, 3, 4), size=(3, 3), kernel=2),),
    example="pt.fold(pt.ones((1, 4, 2)), (2, 3), 2)",
    doc="The transpose of ``unfold``: columns (N, C·kh·kw, L) added up to images (N, C, *size).",
)
def fold(x: Tensor, size: Any, kernel: Any, stride: Any, padding: Any, dilation: Any) -> Tensor:
    n, lines = x.shape[0], kernel[0] * kernel[1]
    channels = x.shape[1] // lines
    out = window_sizes("fold", size, kernel, stride, padding, dilation)
    wide = x.to_full_precision().reshape((n, channels, lines, *out))
    parts = list(movement.unstack(wide, axis=2))
    return added(parts, (n, channels, *size), padding, kernel, stride, dilation).astype(x.dtype)


@window.formula(
    "x: Num, indices: Int; size: Shape -> Num",
    numpy=ref.max_unpool,
    shape=shapes.max_unpool,
    cases=(
        case((2, 3, 1), IndexSample((2, 3, 1), -5), size=(5,)),
        case((2, 1, 1, 1), IndexSample((2, 1, 1, 1), -6), size=(2, 3)),
    ),
    refuses=(
        refusal(IndexOutOfRangeError, (1, 1, 1), Given([[[4]]]), size=(4,)),
        refusal(ShapeError, (1, 1, 1), Given([[[0, 1]]]), size=(4,)),
    ),
    method=False,
    example="pt.max_unpool(pt.asarray([[[5.0, 7.0]]]), pt.asarray([[[1, 2]]]), (4,))",
    doc="Zeros (N, C, *size) with each element at the place from which ``max_pool…_with_indices`` "
    "took it; of elements from one place, which are equal, one stays.",
)
def max_unpool(x: Tensor[Any], indices: Tensor[Int], size: tuple[int, ...]) -> Tensor[Any]:
    n, c = x.shape[:2]
    line = (n, c, x.size // max(n * c, 1))
    empty = x.zeros((n, c, prod(size)))
    full = empty.scatter(indices.reshape(line), x.reshape(line), axis=2, update="set")
    return full.reshape((n, c, *size))


@moving.formula(
    "x: Any; padding: Margins, mode: str = 'reflect' -> Any",
    numpy=ref.pad_border,
    shape=shapes.pad_border,
    linear=True,
    cases=(
        case((2, 3), padding=((2, 1),)),
        case((2, 3), padding=((1, 0), (0, 4)), mode="edge"),
        case((3, 2), padding=((2, 3), (1, 1)), mode="circular"),
        case((3, 2), padding=((3, 1), (0, 2)), mode="symmetric"),
    ),
    refuses=(refusal(ShapeError, (2,), padding=((0, 3),), mode="reflect"),),
    example="pt.pad_border(pt.asarray([1, 2, 3]), ((2, 1),), mode='reflect')",
    doc="The tensor with a margin of its own elements, pairs (before, after) for the last axes. "
    "``mode``: reflect (mirrored, the edge once), symmetric (the edge twice), edge (repeated), "
    "circular (from the other end).",
)
def pad_border(x: Tensor[Any], padding: Any, mode: str) -> Tensor[Any]:
    for axis, (before, after) in enumerate(padding):
        if before or after:
            places = shapes.border(x.shape[axis], before, after, mode)
            indices = asarray(places, dtype=x.device.default_int, device=x.device)
            x = x.take(indices, axis=axis)
    return x


@_reordering(
    "x: Any; factor: int -> Any",
    numpy=ref.pixel_shuffle,
    shape=shapes.pixel_shuffle,
    cases=(
        case((2, 4, 2, 1), factor=2),
        case((1, 9, 1, 1), factor=3),
        case((0, 4, 1, 1), factor=2),
        case((4, 1, 2), factor=2),
        case((2, 1, 4, 1, 1), factor=2),
    ),
    refuses=(refusal(ShapeError, (1, 3, 2, 2), factor=2),),
    example="pt.pixel_shuffle(pt.asarray([[[[1]], [[2]], [[3]], [[4]]]]), 2)",
    doc="Images (…, C·f², H, W) with channels in place of pixels: (…, C, H·f, W·f). Shi et al., "
    "2016.",
)
def pixel_shuffle(x: Tensor[Any], factor: int) -> Tensor[Any]:
    *lead, c, h, w = x.shape
    n = len(lead)
    parts = x.reshape((*lead, c // factor**2, factor, factor, h, w))
    order = (*range(n + 1), n + 3, n + 1, n + 4, n + 2)
    return parts.permute_dims(order).reshape(shapes.shuffled(x.shape, factor))


@_reordering(
    "x: Any; factor: int -> Any",
    numpy=ref.pixel_unshuffle,
    shape=shapes.pixel_unshuffle,
    cases=(
        case((2, 1, 4, 2), factor=2),
        case((0, 2, 2, 2), factor=2),
        case((1, 4, 2), factor=2),
        case((2, 1, 1, 2, 2), factor=2),
    ),
    refuses=(refusal(ShapeError, (1, 1, 3, 2), factor=2),),
    example="pt.pixel_unshuffle(pt.asarray([[[[1, 2], [3, 4]]]]), 2)",
    doc="The inverse of ``pixel_shuffle``: images (…, C, H·f, W·f) as (…, C·f², H, W).",
)
def pixel_unshuffle(x: Tensor[Any], factor: int) -> Tensor[Any]:
    *lead, c, h, w = x.shape
    n = len(lead)
    parts = x.reshape((*lead, c, h // factor, factor, w // factor, factor))
    order = (*range(n + 1), n + 2, n + 4, n + 1, n + 3)
    return parts.permute_dims(order).reshape(shapes.unshuffled(x.shape, factor))


@moving.formula(
    "x: Any; k: int = 1, axes: Integers = (0, 1) -> Any",
    numpy=np.rot90,
    shape=shapes.rot90,
    prepare=shapes.prepare_rot90,
    linear=True,
    cases=(
        case((2, 3)),
        case((2, 3), k=2),
        case((2, 3, 4), k=3, axes=(1, 2)),
        case((2, 3), k=-4, axes=(1, 0)),
        case((2, 3), k=-1, axes=(-1, 0)),
    ),
    example="pt.rot90(pt.asarray([[1, 2], [3, 4]]))",
    refuses=(refusal(ShapeError, (2,)),),
    doc="Turned ``k`` times by 90 degrees, from the first of two axes to the second.",
)
def rot90(x: Tensor[Any], k: int, axes: tuple[int, ...]) -> Tensor[Any]:
    first, second = axes
    turns = k % 4
    if turns == 2:
        return x.flip((first, second))
    if turns == 1:
        return x.flip(second).swapaxes(first, second)
    return x.swapaxes(first, second).flip(second) if turns else x


@_reordering(
    f"x: Num; {_HOW} -> Num",
    numpy=ref.unfold,
    shape=shapes.unfold,
    cases=(
        case((2, 2, 3, 4), kernel=2),
        case((1, 1, 4, 3), kernel=(2, 3), stride=2, padding=((0, 1), (1, 0))),
        case((1, 1, 4, 4), kernel=2, dilation=2),
    ),
    refuses=(refusal(ShapeError, (1, 1, 2, 2), kernel=3),),
    example="pt.unfold(pt.asarray([[[[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]]]), 2)",
    doc="The windows of images (N, C, H, W) as columns (N, C·kh·kw, L), L windows row by row.",
)
def unfold(x: Tensor[Any], kernel: Any, stride: Any, padding: Any, dilation: Any) -> Tensor[Any]:
    n, c = x.shape[:2]
    size = window_sizes("unfold", x.shape[2:], kernel, stride, padding, dilation)
    parts = list(views(padded(x, padding, 0), kernel, stride, dilation, size))
    return movement.stack(parts, axis=2).reshape((n, c * kernel[0] * kernel[1], size[0] * size[1]))


unflatten = moving(
    "unflatten",
    "x: Any; axis: Axis, sizes: Shape -> Any",
    expand=lambda x, axis, sizes: x.reshape((*x.shape[:axis], *sizes, *x.shape[axis + 1 :])),
    numpy=lambda x, axis, sizes: x.reshape((*x.shape[:axis], *sizes, *x.shape[axis + 1 :])),
    shape=shapes.unflatten,
    prepare=shapes.prepare_unflatten,
    linear=True,
    cases=(
        case((2, 6), axis=1, sizes=(2, 3)),
        case((4, 3), axis=0, sizes=(-1, 2)),
        case((0, 3), axis=0, sizes=(0, 2)),
    ),
    refuses=(refusal(ShapeError, (4,), axis=0, sizes=(3, 2)),),
    example="pt.unflatten(pt.asarray([1, 2, 3, 4]), 0, (2, 2))",
    doc="One axis as several, whose sizes multiply to it; one of them may be -1.",
)
