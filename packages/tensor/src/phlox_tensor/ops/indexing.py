"""Elements chosen by indices and masks."""

from __future__ import annotations

import numpy as np

from .._errors.classes import IndexOutOfRangeError, ShapeError
from .._op.records import Given, IndexSample, MaskSample, case, refusal
from .._values.kinds import Bool, Int
from .._values.tensor import Tensor
from ..reference import indexing as ref
from ..shapes import indexing as shapes
from ._families import indexing


@indexing.formula(
    "x: Num, indices: Int, values: Num; axis: Axis = 0 -> Num",
    numpy=ref.index_add,
    shape=shapes.index_add,
    linear=True,
    ulp=4,
    atol=8,
    cases=(
        case((4, 3), IndexSample((6,), 4), (6, 3), axis=0),
        case((3, 5), IndexSample((2,), 5), (3, 2), axis=1),
        case((3,), IndexSample((0,), 3), (0,), axis=0),
    ),
    refuses=(
        refusal(IndexOutOfRangeError, (2, 3), Given([2]), (1, 3), axis=0),
        refusal(ShapeError, (2, 3), Given([0]), (2, 3), axis=0),
    ),
    example=(
        "pt.index_add(pt.asarray([1.0, 1.0, 1.0]), pt.asarray([0, 0]), pt.asarray([2.0, 3.0]))"
    ),
    doc="A copy of x to which ``values`` are added at ``indices`` along an axis; repeats add up.",
)
def index_add(x: Tensor, indices: Tensor[Int], values: Tensor, axis: int) -> Tensor:
    line = indices.reshape((-1, *(1,) * (x.ndim - 1 - axis)))
    return scatter(x, line.broadcast_to(values.shape), values, axis, "add")


@indexing.formula(
    "x: Any, mask: Bool -> Any",
    numpy=lambda x, mask: x[np.broadcast_to(mask, x.shape)],
    shape=shapes.masked_select,
    measured=True,
    cases=(case((3, 4), MaskSample((3, 4))), case((3, 4), MaskSample((4,)))),
    refuses=(refusal(ShapeError, (2, 3), MaskSample((3, 2))),),
    example="pt.masked_select(pt.asarray([1, 2, 3]), pt.asarray([True, False, True]))",
    doc="The elements at which the mask, broadcast to x, is True, in order, 1-d.",
)
def masked_select(x: Tensor, mask: Tensor[Bool]) -> Tensor:
    places = nonzero(mask.broadcast_to(x.shape).flatten())
    return x.flatten().take(places, axis=0)


nonzero = indexing(
    "nonzero",
    "mask: Bool -> Int",
    numpy=ref.nonzero,
    shape=shapes.nonzero,
    measured=True,
    cases=(case(MaskSample((7,))), case(MaskSample((0,)))),
    method=False,
    function=False,
    example="pt.nonzero(pt.asarray([0, 5, 0, 7]))",
    doc="Positions of True in a 1-d mask, ascending; the function of the package gives those of "
    "what is not 0, axis by axis.",
)
scatter = indexing(
    "scatter",
    "x: Any, indices: Int, values: Any; axis: Axis = 0, update: str = 'set' -> Any",
    numpy=ref.scatter,
    shape=shapes.scatter,
    ulp=4,
    atol=8,
    cases=(
        case((4, 3), IndexSample((6, 3), 4), (6, 3), axis=0, update="add"),
        case((3, 5), IndexSample((3, 2), 5), (3, 2), axis=1, update="max"),
        case((3, 5), IndexSample((3, 4), 5), (3, 4), axis=1, update="min"),
        case((5,), IndexSample((1,), 5), (1,), axis=0, update="set"),
        case((4,), IndexSample((5,), 4), (5,), axis=0, update="mul"),
    ),
    refuses=(
        refusal(ShapeError, (2, 3), Given([[3]]), (1, 1), axis=1),
        refusal(ShapeError, (2, 3), Given([[0]]), (1, 1), axis=1, update="divide"),
        refusal(ShapeError, (2, 3), Given([[0]]), (1, 2), axis=1),
    ),
    example="pt.scatter(pt.asarray([1, 2, 3]), pt.asarray([0, 2]), pt.asarray([8, 9]))",
    doc="A copy of x updated at ``indices`` along an axis: set, add, mul, min or max. Repeats "
    "combine; with set one of the values stays.",
)
take = indexing(
    "take",
    "x: Any, indices: Int; axis: Axis = 0 -> Any",
    numpy=ref.take,
    shape=shapes.take,
    linear=True,
    cases=(
        case((4, 3), IndexSample((5,), 4), axis=0),
        case((4, 3), IndexSample((2, 2), 3), axis=1),
        case((4, 3), IndexSample((0,), 4), axis=0),
        case((4,), IndexSample((), 4), axis=0),
    ),
    refuses=(
        refusal(IndexOutOfRangeError, (2, 3), Given([3]), axis=1),
        refusal(IndexOutOfRangeError, (2, 3), Given([-3]), axis=0),
        refusal(ShapeError, (2, 3), Given([0]), axis=2),
    ),
    example="pt.take(pt.asarray([10, 20, 30]), pt.asarray([2, 0]))",
    doc="Elements, or whole slices, at ``indices`` along an axis; negative ones count from the "
    "end, out of range is an error.",
)
take_along_axis = indexing(
    "take_along_axis",
    "x: Any, indices: Int; axis: Axis = -1 -> Any",
    numpy=ref.take_along_axis,
    shape=shapes.take_along_axis,
    linear=True,
    cases=(
        case((4, 3), IndexSample((2, 3), 4), axis=0),
        case((4, 3), IndexSample((4, 5), 3), axis=1),
    ),
    refuses=(
        refusal(ShapeError, (2, 3), Given([[3]]), axis=1),
        refusal(ShapeError, (2, 3), Given([0]), axis=1),
    ),
    example="pt.take_along_axis(pt.asarray([[1, 2], [3, 4]]), pt.asarray([[1], [0]]), axis=1)",
    doc="One element per index along an axis; the other axes line up.",
)
