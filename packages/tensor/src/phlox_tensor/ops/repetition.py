"""Elements repeated along axes, or rolled along them."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

import numpy as np

from .._errors.classes import ShapeError
from .._op.records import case, refusal
from .._values.tensor import Tensor
from ..shapes import movement as shapes
from ..shapes._equal import same
from . import movement
from ._families import movement as moving
from ._repeated import repeated


def _repeat(x: Tensor, repeats: int, axis: int | None) -> Tensor:
    if axis is None:
        return _repeat(movement.reshape(x, (x.size,)), repeats, 0)
    shape = (*x.shape[:axis], x.shape[axis] * repeats, *x.shape[axis + 1 :])
    return movement.reshape(_blocks(x, axis + 1, repeats), shape)


def _blocks(x: Tensor, front: int, count: int) -> Tensor:
    """Each block of the axes from ``front`` on, ``count`` times, with three axes in all."""
    outer, inner = prod(x.shape[:front]), prod(x.shape[front:])
    return movement.broadcast_to(movement.reshape(x, (outer, 1, inner)), (outer, count, inner))


def _roll(x: Tensor, shift: tuple[int, ...], axis: tuple[int, ...] | None) -> Tensor:
    if axis is None:
        return movement.reshape(_roll(movement.reshape(x, (x.size,)), shift, (0,)), x.shape)
    for by, along in zip(shift, axis, strict=True):
        n = x.shape[along]
        if n and by % n:
            first, second = movement.cut_into(x, (n - by % n, by % n), along)
            x = movement.concat([second, first], along)
    return x


repeat = moving(
    "repeat",
    "x: Any; repeats: Count, axis: Axis? = None -> Any",
    numpy=np.repeat,
    expand=_repeat,
    with_tensors=repeated,
    shape=shapes.repeat,
    prepare=shapes.prepare_repeat,
    cases=(
        case((2, 3), repeats=2),
        case((2, 3), repeats=3, axis=0),
        case((2, 3), repeats=0, axis=-1),
        case((), repeats=2),
    ),
    refuses=(refusal(ShapeError, (2,), repeats=-1),),
    example="pt.repeat(pt.asarray([1, 2]), 2)",
    doc="Each element ``repeats`` times along an axis; without one, of the flattened tensor. A "
    "tensor of counts says how often for each element, and is read.",
)


roll = moving(
    "roll",
    "x: Any; shift: Integers, axis: AxesInOrder? = None -> Any",
    numpy=lambda x, shift, axis: np.roll(x, shift[0] if axis is None else shift, axis),
    expand=_roll,
    shape=same,
    prepare=shapes.prepare_roll,
    cases=(
        case((2, 3), shift=1),
        case((2, 5), shift=-7, axis=1),
        case((0, 3), shift=1, axis=0),
        case((2, 3, 4), shift=(1, -2), axis=(2, 0)),
        case((5, 3), shift=(1, 1), axis=(0, 0)),
    ),
    refuses=(refusal(ShapeError, (2,), shift=1, axis=1),),
    example="pt.roll(pt.asarray([1, 2, 3]), 1)",
    doc="Elements moved along axes by ``shift``, one for all or one for each; what leaves one end "
    "enters at the other. Without an axis the flattened tensor is rolled.",
)


@moving.formula(
    "x: Any; repetitions: Integers -> Any",
    numpy=np.tile,
    shape=shapes.tile,
    prepare=shapes.prepare_tile,
    cases=(
        case((2, 3), repetitions=(2, 1)),
        case((3,), repetitions=(2, 2)),
        case((2, 3), repetitions=2),
        case((2, 1, 2, 1, 2), repetitions=(2, 1, 2, 2, 2)),
    ),
    refuses=(refusal(ShapeError, (2,), repetitions=(-1,)),),
    example="pt.tile(pt.asarray([1, 2]), (2,))",
    doc="The whole tensor repeated along each axis; axes are added in front for further counts.",
)
def tile(x: Tensor, counts: Sequence[int]) -> Tensor:
    out = movement.reshape(x, (1,) * (len(counts) - x.ndim) + x.shape)
    for axis, count in enumerate(counts):  # axis by axis: backends limit the number of axes
        if count != 1:
            shape = (*out.shape[:axis], count * out.shape[axis], *out.shape[axis + 1 :])
            out = movement.reshape(_blocks(out, axis, count), shape)
    return out
