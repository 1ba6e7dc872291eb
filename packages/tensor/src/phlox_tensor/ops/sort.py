"""Sorting along an axis."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .._op import case
from ..reference import sort as ref
from ..shapes import sort as shapes
from ._families import sort

if TYPE_CHECKING:
    from .._kinds import Int
    from .._tensor import Tensor

argsort = sort(
    "argsort",
    "x: Num; axis: Axis = -1, descending: bool = False -> Int",
    numpy=ref.argsort,
    doc="Indices that sort along an axis; stable, nan last in both directions.",
)


def _sort(x: Tensor, axis: int, descending: bool) -> Tensor:
    return x.take_along_axis(x.argsort(axis=axis, descending=descending), axis=axis)


sort_ = sort(
    "sort",
    "x: Num; axis: Axis = -1, descending: bool = False -> Num",
    expand=_sort,
    numpy=ref.sort,
    doc="Elements in order along an axis; stable, nan last in both directions.",
)


def _topk(x: Tensor, k: int, axis: int, largest: bool) -> tuple[Tensor, Tensor[Int]]:
    order = x.argsort(axis=axis, descending=largest)
    indices = order[(slice(None),) * axis + (slice(0, k),)]
    return x.take_along_axis(indices, axis=axis), indices


topk = sort(
    "topk",
    "x: Num; k: int, axis: Axis = -1, largest: bool = True -> values: Num, indices: Int",
    expand=_topk,
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
    doc="The k largest elements along an axis (or smallest), in order, and their indices: the "
    "first k of a sort, so equal elements come in the order of their indices and nan last, either "
    "way.",
)
