"""Elements read and written at places that rows of indices name, or a mask."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

from .._errors.classes import ArgumentError, IndexOutOfRangeError, ShapeError
from .._op.records import Given, IndexSample, MaskSample, case, refusal
from .._values.kinds import Bool, Int
from .._values.tensor import Tensor
from ..reference import gathering as ref
from ..shapes import gathering as shapes
from ._families import indexing


def _places(indices: Tensor[Int]) -> tuple[Tensor[Int], ...]:
    """The index along each of the first axes."""
    return tuple(indices[..., i] for i in range(indices.shape[-1]))


def take_along(x: Tensor[Any], indices: Sequence[Tensor[Int]], axis: int) -> Tensor[Any]:
    """Elements at places along neighboring axes from ``axis`` on, one tensor of places for each."""
    end = axis + len(indices)
    sizes = x.shape[axis:end]
    flat = x.reshape((*x.shape[:axis], prod(sizes), *x.shape[end:]))
    try:
        return flat.take(_flat_places(indices, sizes), axis=axis)
    except IndexOutOfRangeError:
        _blame(indices, sizes)
        raise


def _flat_places(indices: Sequence[Tensor[Int]], sizes: tuple[int, ...]) -> Tensor[Int]:
    """One index into the flattened axes; whatever is out of range stays out of range."""
    flat: Any = 0
    valid: Any = True
    for narrow, n in zip(indices, sizes, strict=True):
        index = narrow.astype(narrow.device.default_int)  # int8 does not hold every n
        flat = flat * n + (index < 0).where(index + n, index)
        valid = ((narrow >= -n) & (narrow < n)) & valid
    return valid.where(flat, prod(sizes))


def _blame(indices: Sequence[Tensor[Int]], sizes: tuple[int, ...]) -> None:
    """Raise IndexOutOfRangeError for the first index that leaves its own axis."""
    for index, n in zip(indices, sizes, strict=True):
        values = index.numpy()
        wrong = values[(values < -n) | (values >= n)]
        if wrong.size:
            expected = f"{-n} <= index < {n}"
            what = "index out of range"
            raise IndexOutOfRangeError("gather_nd", what, got=int(wrong[0]), expected=expected)


gather_nd = indexing(
    "gather_nd",
    "x: Any, indices: Int -> Any",
    expand=lambda x, indices: take_along(x, _places(indices), 0),
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


@indexing.formula(
    "x: Any, mask: Bool, source: Any -> Any",
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
def masked_scatter(x: Tensor[Any], mask: Tensor[Bool], source: Tensor[Any]) -> Tensor[Any]:
    wide = mask.broadcast_to(x.shape)
    marks = wide.flatten().astype(x.device.default_int)
    place = marks.cumsum(axis=0) - marks  # how many are marked before
    values = source.flatten().take(wide.flatten().where(place, 0), axis=0)
    return wide.where(values.reshape(x.shape), x)


@indexing.formula(
    "x: Any, indices: Int, values: Any; update: str = 'set' -> Any",
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
def scatter_nd(
    x: Tensor[Any], indices: Tensor[Int], values: Tensor[Any], update: str
) -> Tensor[Any]:
    at = x.at[_places(indices)]
    ways = {"add": at.add, "max": at.max, "min": at.min, "mul": at.multiply, "set": at.set}
    return ways[update](values)
