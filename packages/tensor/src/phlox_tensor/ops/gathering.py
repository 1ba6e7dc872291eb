"""Elements read and written at places that rows of indices name, or a mask."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .._errors import ArgumentError, IndexOutOfRangeError, ShapeError
from .._op import Given, IndexSample, MaskSample, case, refusal
from ..reference import gathering as ref
from ..shapes import gathering as shapes
from ._families import indexing

if TYPE_CHECKING:
    from .._kinds import Bool, Int
    from .._tensor import Tensor


def _places(indices: Tensor[Int]) -> tuple[Tensor[Int], ...]:
    """The index along each of the first axes."""
    return tuple(indices[..., i] for i in range(indices.shape[-1]))


gather_nd = indexing(
    "gather_nd",
    "x: Any, indices: Int -> Any",
    expand=lambda x, indices: x[_places(indices)],
    numpy=ref.gather_nd,
    shape=shapes.gather_nd,
    linear=True,
    cases=(
        case((3, 3, 2), IndexSample((4, 2), 3)),
        case((3, 3), IndexSample((2, 2, 2), 3)),
        case((4, 2), IndexSample((3, 1), 4)),
        case((2, 3), IndexSample((0, 1), 2)),
    ),
    refuses=(
        refusal(IndexOutOfRangeError, (2, 3), Given([[0, 3]])),
        refusal(IndexOutOfRangeError, (2, 3), Given([[-3]])),
        refusal(ShapeError, (2,), Given([[0, 0]])),
    ),
    method=False,
    example="pt.gather_nd(pt.asarray([[1, 2], [3, 4]]), pt.asarray([[0, 1], [1, 0]]))",
    doc="Elements of x at rows of indices: with indices (…, k) the result is (…, *x.shape[k:]). "
    "Negative indices count from the end.",
)


def _masked_scatter(x: Tensor[Any], mask: Tensor[Bool], source: Tensor[Any]) -> Tensor[Any]:
    wide = mask.broadcast_to(x.shape)
    marks = wide.flatten().astype(x.device.default_int)
    place = marks.cumsum(axis=0) - marks  # how many are marked before
    values = source.flatten().take(wide.flatten().where(place, 0), axis=0)
    return wide.where(values.reshape(x.shape), x)


masked_scatter = indexing(
    "masked_scatter",
    "x: Any, mask: Bool, source: Any -> Any",
    expand=_masked_scatter,
    numpy=ref.masked_scatter,
    shape=shapes.masked_scatter,
    cases=(
        case((2, 3), MaskSample((2, 3)), (6,)),
        case((2, 3), MaskSample((3,)), (2, 4)),
        case((0, 3), MaskSample((3,)), (1,)),
    ),
    refuses=(refusal(IndexOutOfRangeError, (2,), Given([True, True]), (1,)),),
    example=(
        "pt.masked_scatter(pt.asarray([1, 2, 3]), pt.asarray([True, False, True]), "
        "pt.asarray([8, 9]))"
    ),
    doc="x with the elements of ``source``, in order, where the mask is True; too few of them "
    "raise IndexOutOfRangeError.",
)


def _scatter_nd(
    x: Tensor[Any], indices: Tensor[Int], values: Tensor[Any], update: str
) -> Tensor[Any]:
    at = x.at[_places(indices)]
    ways = {"add": at.add, "max": at.max, "min": at.min, "mul": at.multiply, "set": at.set}
    return ways[update](values)


scatter_nd = indexing(
    "scatter_nd",
    "x: Any, indices: Int, values: Any; update: str = 'set' -> Any",
    expand=_scatter_nd,
    numpy=ref.scatter_nd,
    shape=shapes.scatter_nd,
    ulp=4,
    atol=8,
    cases=(
        case((3, 3, 2), IndexSample((1, 2), 3), (1, 2)),
        case((3, 2), IndexSample((5, 1), 3), (5, 2), update="add"),
        case((3, 3), IndexSample((2, 2, 2), 3), (2, 2), update="max"),
        case((2, 2), IndexSample((3, 2), 2), (3,), update="min"),
        case((2,), IndexSample((3, 1), 2), (3,), update="mul"),
        case((2, 2), IndexSample((0, 1), 2), (0, 2)),
    ),
    refuses=(
        refusal(IndexOutOfRangeError, (2, 3), Given([[0, 3]]), (1,)),
        refusal(ShapeError, (2, 3), Given([[0, 1]]), (2,)),
        refusal(ArgumentError, (2,), Given([[0]]), (1,), update="divide"),
    ),
    method=False,
    example="pt.scatter_nd(pt.asarray([1, 2, 3]), pt.asarray([[0], [2]]), pt.asarray([8, 9]))",
    doc="A copy of x updated at rows of indices (…, k) with values (…, *x.shape[k:]): set, add, "
    "mul, min or max. Repeats combine; with set one of the values stays.",
)
