"""Views, data movement, indexing."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from .._op import IndexSample, MaskSample, case
from .._rules import indexing as index_rules
from .._rules import view as rules
from ..reference import movement as ref
from ._families import indexing, movement, view

if TYPE_CHECKING:
    from .._kinds import Bool
    from .._tensor import Tensor

broadcast_to = view(
    "broadcast_to",
    "x: Any; shape: Shape -> Any",
    numpy=np.broadcast_to,
    shape=rules.broadcast_to,
    cases=(case((3, 1), shape=(2, 3, 4)), case((), shape=(2, 2)), case((1,), shape=(0,))),
    doc="The tensor seen with a larger shape: sizes of 1 repeat, axes are added in front.",
)
flip = view(
    "flip",
    "x: Any; axis: Axes = None -> Any",
    numpy=np.flip,
    cases=(case((2, 3)), case((2, 3), axis=1), case((4, 1, 2), axis=(0, 2)), case(())),
    doc="Elements in reverse order along the axes, all of them without an axis.",
)
permute_dims = view(
    "permute_dims",
    "x: Any; axes: AxisOrder -> Any",
    numpy=np.transpose,
    shape=rules.permute_dims,
    cases=(case((2, 3, 4), axes=(2, 0, 1)), case((2, 3), axes=(-1, 0)), case((), axes=())),
    doc="The axes in a new order.",
)
reshape = view(
    "reshape",
    "x: Any; shape: Shape -> Any",
    numpy=np.reshape,
    shape=rules.reshape,
    prepare=rules.prepare_reshape,
    cases=(
        case((2, 6), shape=(3, 4)),
        case((2, 6), shape=(-1,)),
        case((1,), shape=()),
        case((0, 3), shape=(3, 0, 2)),
    ),
    doc="The elements, row by row, under a new shape; one size may be -1.",
)
slice_ = view(
    "slice",
    "x: Any; start: Integers, size: Integers, step: Integers -> Any",
    numpy=ref.slice_,
    shape=rules.slice_,
    cases=(
        case((4, 5), start=(1, 0), size=(2, 5), step=(1, 1)),
        case((7, 5), start=(0, 4), size=(3, 5), step=(3, -1)),
        case((4, 5), start=(0, 0), size=(0, 2), step=(1, 2)),
    ),
    method=False,
    doc="Every ``step``-th element from ``start``, ``size`` of them along each axis; ``x[...]`` is "
    "the usual spelling.",
)
concat = movement(
    "concat",
    "*xs: Any; axis: int = 0 -> Any",
    numpy=lambda xs, axis: np.concatenate(xs, axis=axis),
    shape=rules.concat,
    prepare=rules.prepare_concat,
    cases=(
        case([(2, 3), (1, 3)], axis=0),
        case([(2, 3), (2, 0), (2, 2)], axis=-1),
        case([(4,)], axis=0),
    ),
    method=False,
    doc="Tensors one after the other along an axis.",
)
contiguous = movement(
    "contiguous",
    "x: Any -> Any",
    expand=lambda x: x,
    numpy=np.copy,
    cases=(case((2, 3)), case((33, 70)), case(()), case((0, 2))),
    doc="The same elements, row by row in memory where a backend keeps them in another order: a "
    "permuted tensor that is read often is faster after one copy.",
)
pad = movement(
    "pad",
    "x: Any; padding: Margins, value: Scalar = 0 -> Any",
    numpy=ref.pad,
    shape=rules.pad,
    prepare=rules.prepare_pad,
    cases=(
        case((2, 3), padding=((1, 2),), value=1),
        case((2, 3), padding=((0, 1), (2, 0))),
        case((0, 2), padding=((1, 1), (0, 0)), value=1),
    ),
    doc="The tensor with a margin of ``value``: pairs (before, after) for the last axes.",
)
slice_scatter = movement(
    "slice_scatter",
    "x: Any, values: Any; start: Integers, size: Integers, step: Integers -> Any",
    numpy=ref.slice_scatter,
    shape=rules.slice_scatter,
    cases=(
        case((4, 5), (2, 5), start=(1, 0), size=(2, 5), step=(1, 1)),
        case((7, 5), (3, 5), start=(0, 4), size=(3, 5), step=(3, -1)),
        case((4,), (0,), start=(0,), size=(0,), step=(1,)),
    ),
    method=False,
    doc="A copy of x with ``values`` in place of a slice; ``x.at[...].set`` is the usual spelling.",
)
index_add = indexing(
    "index_add",
    "x: Num, indices: Int, values: Num; axis: Axis = 0 -> Num",
    numpy=ref.index_add,
    shape=index_rules.index_add,
    ulp=4,
    atol=8,
    cases=(
        case((4, 3), IndexSample((6,), 4), (6, 3), axis=0),
        case((3, 5), IndexSample((2,), 5), (3, 2), axis=1),
        case((3,), IndexSample((0,), 3), (0,), axis=0),
    ),
    doc="A copy of x to which ``values`` are added at ``indices`` along an axis; repeats add up.",
)
nonzero = indexing(
    "nonzero",
    "mask: Bool -> Int",
    numpy=ref.nonzero,
    shape=index_rules.nonzero,
    cases=(case(MaskSample((7,))), case(MaskSample((0,)))),
    doc="Positions of True in a 1-d mask, ascending.",
)


def _masked_select(x: Tensor, mask: Tensor[Bool]) -> Tensor:
    places = mask.broadcast_to(x.shape).flatten().nonzero()
    return x.flatten().take(places, axis=0)


masked_select = indexing(
    "masked_select",
    "x: Any, mask: Bool -> Any",
    expand=_masked_select,
    numpy=lambda x, mask: x[np.broadcast_to(mask, x.shape)],
    shape=index_rules.masked_select,
    cases=(case((3, 4), MaskSample((3, 4))), case((3, 4), MaskSample((4,)))),
    doc="The elements at which the mask, broadcast to x, is True, in order, 1-d.",
)
scatter = indexing(
    "scatter",
    "x: Any, indices: Int, values: Any; axis: Axis = 0, update: str = 'set' -> Any",
    numpy=ref.scatter,
    shape=index_rules.scatter,
    ulp=4,
    atol=8,
    cases=(
        case((4, 3), IndexSample((6, 3), 4), (6, 3), axis=0, update="add"),
        case((3, 5), IndexSample((3, 2), 5), (3, 2), axis=1, update="max"),
        case((3, 5), IndexSample((3, 4), 5), (3, 4), axis=1, update="min"),
        case((5,), IndexSample((1,), 5), (1,), axis=0, update="set"),
        case((4,), IndexSample((5,), 4), (5,), axis=0, update="mul"),
    ),
    doc="A copy of x updated at ``indices`` along an axis: set, add, mul, min or max. Repeats "
    "combine; with set one of the values stays.",
)
take = indexing(
    "take",
    "x: Any, indices: Int; axis: Axis = 0 -> Any",
    numpy=ref.take,
    shape=index_rules.take,
    cases=(
        case((4, 3), IndexSample((5,), 4), axis=0),
        case((4, 3), IndexSample((2, 2), 3), axis=1),
        case((4, 3), IndexSample((0,), 4), axis=0),
        case((4,), IndexSample((), 4), axis=0),
    ),
    doc="Elements, or whole slices, at ``indices`` along an axis; negative ones count from the "
    "end, out of range is an error.",
)
take_along_axis = indexing(
    "take_along_axis",
    "x: Any, indices: Int; axis: Axis = -1 -> Any",
    numpy=ref.take_along_axis,
    shape=index_rules.take_along_axis,
    cases=(
        case((4, 3), IndexSample((2, 3), 4), axis=0),
        case((4, 3), IndexSample((4, 5), 3), axis=1),
    ),
    doc="One element per index along an axis; the other axes line up.",
)
