"""Collectives of arrays over a group, by its four calls."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from .exchange import tree_sum
from .group import Group
from .sums import TreeSum

Array = NDArray[Any]


def all_reduce(group: Group, x: Array) -> Array:
    """The sum over all ranks, in the order of the tree."""
    return tree_sum(group, group.size, x.reshape(1, -1).copy()).reshape(x.shape)


def all_gather(group: Group, x: Array, axis: int, ranks: int) -> Array:
    """What all ranks have, one behind the other along an axis."""
    whole = np.empty(ranks * x.size, x.dtype)
    group.all_gather(np.ascontiguousarray(x).reshape(-1), whole, [x.size] * ranks)
    return np.concatenate([*whole.reshape(ranks, *x.shape)], axis)


def reduce_scatter(group: Group, x: Array, axis: int, ranks: int) -> Array:
    """The share of this rank of the sum over all."""
    pieces = np.split(x, ranks, axis)
    size, shape = pieces[0].size, pieces[0].shape
    found = np.empty(x.size, x.dtype)
    send = np.concatenate([piece.reshape(-1) for piece in pieces])
    group.all_to_all(send, [size] * ranks, found, [size] * ranks)
    total: TreeSum[Any] = TreeSum()
    for row in found.reshape(ranks, size):
        total.add(row)
    return np.asarray(total.value()).reshape(shape)


def broadcast(group: Group, x: Array, root: int) -> Array:
    """What one rank has."""
    buffer = x.reshape(-1).copy()
    group.broadcast(buffer, root)
    return buffer.reshape(x.shape)


def broadcast_backward(group: Group, x: Array, root: int) -> Array:
    """The sum over all ranks on one of them, and 0 elsewhere."""
    whole = all_reduce(group, x)
    return whole if group.rank == root else np.zeros_like(x)


COLLECTIVES: Final[dict[str, Callable[..., Array]]] = {
    "all_gather": all_gather,
    "all_reduce": all_reduce,
    "broadcast": broadcast,
    "broadcast_backward": broadcast_backward,
    "reduce_scatter": reduce_scatter,
}
