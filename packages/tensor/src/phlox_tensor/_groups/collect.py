"""Collectives of arrays, made of the four calls of a group."""

from __future__ import annotations

from collections.abc import Callable
from itertools import groupby
from typing import Any, Final
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from .._errors.classes import ArgumentError
from .exchange import tree_sum
from .group import Group, all_gather_object
from .meeting import part_here
from .sums import TreeSum

Array = NDArray[Any]


def notes_in_step(group: Group, mine: str, note: int = 0) -> list[int] | None:
    """Return the number below 2**64 that each rank gives, or None where some are elsewhere.

    >>> from phlox_tensor.groups import Solo
    >>> notes_in_step(Solo(), "step 1", 7)
    [7]
    """
    if group.size == 1:
        return [note]
    found = np.empty(2 * group.size, np.uint64)
    send = np.array([crc32(mine.encode()), note], np.uint64)
    group.all_gather(send, found, [2] * group.size)
    marks, notes = found[::2], found[1::2]
    return notes.tolist() if (marks == marks[0]).all() else None


def differing(group: Group, mine: str, kind: Any = None) -> list[tuple[str, Any, str]]:
    """Return what all ranks are at, its kind and the ranks; nothing where all are at the same.

    A call that every rank begins with tells ranks which make others, whatever these are.

    >>> from phlox_tensor.groups import Solo
    >>> differing(Solo(), "the end")
    []
    """
    if notes_in_step(group, mine) is not None:
        return []
    runs = [
        (each, [rank for rank, _ in run])
        for each, run in groupby(
            enumerate(all_gather_object(group, (mine, kind))), lambda each: each[1]
        )
    ]
    return [
        (text, kind, f"{ranks[0]}" + f" to {ranks[-1]}" * (len(ranks) > 1))
        for (text, kind), ranks in runs
    ]


def require_same(group: Group, name: str, x: Array, attributes: tuple[Any, ...]) -> None:
    """Refuse ranks that make different calls, whose bytes would land in wrong places.

    Raises:
        ArgumentError: on all ranks, saying what each gives.
    """
    mine = " ".join(map(str, (name, x.dtype, x.shape, *attributes)))
    found = differing(group, mine, (name, str(x.dtype), attributes))
    if not found:
        return
    rows = part_here() is not None and len({kind for _, kind, _ in found}) == 1
    raise ArgumentError(
        name,
        "parts or ranks that meet make different calls",
        got="; ".join(f"{call} on {ranks}" for call, _, ranks in found),
        expected="one call, one shape",
        hint="batches of a multiple of microbatches: DataLoader(..., batch, drop_last=True)"
        if rows
        else None,
    )


def all_reduce(group: Group, x: Array) -> Array:
    """The sum over all ranks, in the order of the tree."""
    return tree_sum(group, group.size, x.reshape(1, -1).copy()).reshape(x.shape)


def all_gather(group: Group, x: Array, axis: int, ranks: int) -> Array:
    """What all ranks have, one after the other along an axis."""
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
