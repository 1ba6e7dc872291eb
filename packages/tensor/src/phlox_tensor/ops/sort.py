"""Sorting along an axis, and searching in what is sorted."""

from __future__ import annotations

from .._errors.classes import ArgumentError, ShapeError
from .._op.records import SortedSample, case, refusal
from .._values.kinds import Bool, Int
from .._values.tensor import Tensor
from ..reference import sort as ref
from ..shapes import sort as shapes
from ._families import search, sort

argsort = sort(
    "argsort",
    "x: Num; axis: Axis = -1, descending: bool = False -> Int",
    numpy=ref.argsort,
    function=False,
    example="pt.argsort(pt.asarray([3.0, 1.0, 2.0]))",
    doc="Indices that sort along an axis; stable, nan last in both directions.",
)


@search.formula(
    "x1: Num, x2: Num; side: str = 'left' -> Int",
    numpy=ref.searchsorted,
    shape=shapes.searchsorted,
    unpromised={"x1": "a special value in the middle is not sorted"},
    refuses=(
        refusal(ShapeError, (2, 2), (2,)),
        refusal(ArgumentError, (2,), (2,), side="middle"),
    ),
    function=False,
    cases=(
        case(SortedSample((7,)), (3, 4)),
        case(SortedSample((64,)), (33,), side="right"),
        case(SortedSample((1,)), ()),
        case(SortedSample((0,)), (2,)),
        case(SortedSample((5,)), (0, 2), side="right"),
    ),
    example="pt.searchsorted(pt.asarray([1.0, 2.0, 4.0]), pt.asarray([0.5, 2.0, 9.0]))",
    doc="Where the elements of ``x2`` would go into the sorted vector ``x1``: in front of equal "
    "ones, or behind them with ``side='right'``.",
)
def searchsorted(x1: Tensor, x2: Tensor, side: str) -> Tensor[Int]:
    """Bisection of all places at once; nan counts as the largest number, as in a sort."""
    low = x2.zeros().astype(x2.device.default_int)
    if not x1.shape[0]:
        return low
    high = low + x1.shape[0]
    for _ in range(x1.shape[0].bit_length()):
        middle = (low + high) // 2
        found = x1.take(middle.minimum(x1.shape[0] - 1), axis=0)
        if side == "left":
            behind = (found < x2) | (x2.isnan() & ~found.isnan())
        else:
            behind = ~((x2 < found) | (found.isnan() & ~x2.isnan()))
        behind = behind & (middle < high)
        low, high = behind.where(middle + 1, low), behind.where(high, middle)
    return low


@search.formula(
    "x1: Any, x2: Any; *, invert: bool = False -> Bool",
    numpy=ref.isin,
    shape=shapes.isin,
    cases=(
        case((4, 5), (6,)),
        case((4, 5), (2, 3), invert=True),
        case((), (9,)),
        case((3,), (0,)),
        case((0, 2), ()),
    ),
    example="pt.isin(pt.asarray([1, 2, 3]), pt.asarray([3, 1]))",
    doc="Whether each element of ``x1`` is among those of ``x2``, or is not with ``invert``; nan "
    "is among none.",
)
def isin(x1: Tensor, x2: Tensor, invert: bool) -> Tensor[Bool]:
    if x1.dtype.kind == "Bool":
        x1, x2 = (x.astype(x.device.default_int) for x in (x1, x2))
    flat = x2.flatten()
    if not flat.size:
        none = x1.zeros() != 0
        return ~none if invert else none
    line = sort_(flat)
    near = line.take(searchsorted(line, x1).minimum(flat.size - 1), axis=0)
    return near != x1 if invert else near == x1


@sort.formula(
    "x: Num; axis: Axis = -1, descending: bool = False -> Num",
    numpy=ref.sort,
    function=False,
    example="pt.sort(pt.asarray([3.0, 1.0, 2.0]), descending=True)",
    doc="Elements in order along an axis; stable, nan last in both directions.",
)
def sort_(x: Tensor, axis: int, descending: bool) -> Tensor:
    return x.take_along_axis(x.argsort(axis=axis, descending=descending), axis=axis)


@sort.formula(
    "x: Num; k: int, axis: Axis = -1, largest: bool = True -> values: Num, indices: Int",
    numpy=ref.topk,
    shape=shapes.topk,
    cases=(
        case((7,), k=3),
        case((3, 70), k=5, axis=1),
        case((3, 70), k=70, axis=1),
        case((9, 4), k=2, axis=0, largest=False),
        case((2, 5, 3), k=4, axis=1),
        case((2, 3), k=0),
        case((0, 3), k=1),
        case((2, 900), k=6, largest=False),
    ),
    refuses=(
        refusal(ShapeError, (3,), k=4),
        refusal(ShapeError, (3,), k=-1),
    ),
    example="pt.topk(pt.asarray([3.0, 1.0, 2.0]), 2)",
    doc="The k largest elements along an axis (or smallest), in order, and their indices: the "
    "first k of a sort, so equal elements come in the order of their indices and nan last, either "
    "way.",
)
def topk(x: Tensor, k: int, axis: int, largest: bool) -> tuple[Tensor, Tensor[Int]]:
    order = x.argsort(axis=axis, descending=largest)
    indices = order[(slice(None),) * axis + (slice(0, k),)]
    return x.take_along_axis(indices, axis=axis), indices
