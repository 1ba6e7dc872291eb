"""The distinct elements of a tensor in ascending order; nan comes last, and no two are equal."""

from __future__ import annotations

from typing import Any, Final, NamedTuple

from .._errors.called import as_called
from .._values.dtype import bool_
from .._values.kinds import AnyKind, Bool, Int
from .._values.tensor import Tensor
from ..ops import indexing
from ..ops.sort import argsort as _argsort
from ..ops.sort import sort_ as _sort
from .standard import concat

_FIRST: Final = slice(0, -1)
_REST: Final = slice(1, None)


class UniqueAll(NamedTuple):
    """What ``unique_all`` gives.

    Attributes:
        values: the different elements.
        indices: where each occurs first, in the flattened tensor.
        inverse_indices: for each element its place among the values.
        counts: how often each occurs.
    """

    values: Tensor[Any]
    indices: Tensor[Int]
    inverse_indices: Tensor[Int]
    counts: Tensor[Int]


class UniqueCounts(NamedTuple):
    """What ``unique_counts`` gives: the different elements, and how often each occurs."""

    values: Tensor[Any]
    counts: Tensor[Int]


class UniqueInverse(NamedTuple):
    """What ``unique_inverse`` gives: the different elements, and for each element its place."""

    values: Tensor[Any]
    inverse_indices: Tensor[Int]


@as_called
def unique_all(x: Tensor[Any], /) -> UniqueAll:
    """Return the different elements, where each is first, where all are among them, and counts.

    Example:
        >>> unique_all(asarray([3, 1, 3])).counts.tolist()
        [1, 2]
    """
    flat = x.flatten()
    order = _order(flat)
    line = flat.take(order, axis=0)
    starts = _starts(line)
    places = indexing.nonzero(starts)
    return UniqueAll(
        line.take(places, axis=0),
        order.take(places, axis=0),
        _inverse(starts, order).reshape(x.shape),
        _counts(places, flat.size),
    )


@as_called
def unique_counts(x: Tensor[Any], /) -> UniqueCounts:
    """Return the different elements and how often each occurs.

    Example:
        >>> unique_counts(asarray([3, 1, 3])).values.tolist()
        [1, 3]
    """
    line = _sorted(x.flatten())
    places = indexing.nonzero(_starts(line))
    return UniqueCounts(line.take(places, axis=0), _counts(places, x.size))


@as_called
def unique_inverse(x: Tensor[Any], /) -> UniqueInverse:
    """Return the different elements, and for each element its place among them.

    Example:
        >>> unique_inverse(asarray([3, 1, 3])).inverse_indices.tolist()
        [1, 0, 1]
    """
    flat = x.flatten()
    order = _order(flat)
    line = flat.take(order, axis=0)
    starts = _starts(line)
    values = line.take(indexing.nonzero(starts), axis=0)
    return UniqueInverse(values, _inverse(starts, order).reshape(x.shape))


@as_called
def unique_values(x: Tensor[AnyKind], /) -> Tensor[AnyKind]:
    """Return the different elements.

    Example:
        >>> unique_values(asarray([3, 1, 3])).tolist()
        [1, 3]
    """
    line = _sorted(x.flatten())
    return line.take(indexing.nonzero(_starts(line)), axis=0)


def _order(flat: Tensor[Any]) -> Tensor[Int]:
    numbers = flat.astype(flat.device.default_int) if flat.dtype.kind == "Bool" else flat
    return _argsort(numbers, 0, False)


def _sorted(flat: Tensor[Any]) -> Tensor[Any]:
    numbers = flat.astype(flat.device.default_int) if flat.dtype.kind == "Bool" else flat
    line: Tensor[Any] = _sort(numbers, 0, False)
    return line.astype(flat.dtype)


def _starts(line: Tensor[Any]) -> Tensor[Bool]:
    """Where an element differs from the one before it."""
    device = line.device
    first: Tensor[Bool] = Tensor(device.ops.full((min(line.size, 1),), True, bool_), device)
    return first if line.size < 2 else concat([first, line[_REST] != line[_FIRST]])


def _counts(places: Tensor[Int], size: int) -> Tensor[Int]:
    end = places.zeros((1,)) + size
    return concat([places[_REST], end])[: places.size] - places


def _inverse(starts: Tensor[Bool], order: Tensor[Int]) -> Tensor[Int]:
    ranks = starts.astype(order.dtype).cumsum() - 1
    return order.zeros().scatter(order, ranks.astype(order.dtype), axis=0, update="set")
