"""Gradients on their way to other ranks: in buckets, of which one travels while others are read."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from math import prod
from typing import Any, Final, TypeAlias, final

import numpy as np

from phlox_nn import Param
from phlox_tensor import Backend, Tensor, asarray, concat
from phlox_tensor.groups import Group, absent_of, tree_sum

# Elements of a bucket, 8 MB of float32: a few for a model, each long enough for a network.
LIMIT: Final = 1 << 21

# By bucket the ids and shapes of what is in it, one after the other.
Layout: TypeAlias = tuple[tuple[tuple[str, tuple[int, ...]], ...], ...]


@final
class Buckets:
    """Sums of gradients over ranks, by one thread that carries bytes while this one reads on."""

    def __init__(self, group: Group, inner: Backend) -> None:
        """Begin without a thread."""
        self._group, self._inner = group, inner
        self._thread: ThreadPoolExecutor | None = None

    def summed(
        self, weights: Sequence[Param], there: Sequence[int], held: list[Any], leaves: int
    ) -> tuple[list[Tensor[Any]], Layout]:
        """Return the sums over all parts, a tensor for each bucket, and what is where.

        Args:
            weights: all parameters, in an order that ranks share.
            there: the places of those that have a gradient on any rank.
            held: sums of gradients of this rank by place, None for those of empty parts.
            leaves: how many parts all ranks have.
        """
        buckets = _buckets(weights, there)
        rows = [[self._row(weights, places, sums) for sums in held] for places in buckets]
        if len(buckets) == 1:
            wholes = [tree_sum(self._group, leaves, _read(weights, buckets[0], rows[0]))]
        else:
            if self._thread is None:
                self._thread = ThreadPoolExecutor(1, thread_name_prefix="phlox-exchange")
            waiting = [
                self._thread.submit(tree_sum, self._group, leaves, _read(weights, places, each))
                for places, each in zip(buckets, rows, strict=True)
            ]
            wholes = (each.result() for each in waiting)  # type: ignore[assignment]
        layout = tuple(
            tuple((weights[place].id, weights[place].shape) for place in places)
            for places in buckets
        )
        return [asarray(whole, device=self._inner) for whole in wholes], layout

    def _row(self, weights: Sequence[Param], places: list[int], sums: Any) -> Any:
        """One sum of the gradients of a bucket in one tensor, which is read from there at once."""
        if sums is None:
            return None
        pieces = [
            self._absent(weights[place]) if sums[place] is None else sums[place].reshape(-1)
            for place in places
        ]
        return pieces[0] if len(pieces) == 1 else concat(pieces)

    def _absent(self, param: Param) -> Tensor[Any]:
        kind = param.dtype.numpy
        return asarray(np.full(prod(param.shape), absent_of(kind), kind), device=self._inner)


def split(layout: Layout, tensors: Sequence[Tensor[Any]]) -> dict[str, Tensor[Any]]:
    """Return gradients by the id of their parameter, out of buckets."""
    found: dict[str, Tensor[Any]] = {}
    for bucket, tensor in zip(layout, tensors, strict=True):
        high = 0
        for key, shape in bucket:
            low, high = high, high + prod(shape)
            found[key] = tensor[low:high].reshape(shape)
    return found


def _buckets(weights: Sequence[Param], there: Sequence[int]) -> list[list[int]]:
    """Places in buckets of one element type, the last parameters first, as a backward pass goes."""
    buckets: list[list[int]] = []
    open_: dict[Any, tuple[list[int], int]] = {}
    for place in reversed(there):
        kind, size = weights[place].dtype, prod(weights[place].shape)
        bucket, used = open_.get(kind, ([], LIMIT))
        if not bucket or used + size > LIMIT:
            bucket, used = [], 0
            buckets.append(bucket)
        bucket.append(place)
        open_[kind] = bucket, used + size
    return buckets


def _read(weights: Sequence[Param], places: list[int], rows: list[Any]) -> Any:
    """The rows of a bucket as an array."""
    kind = weights[places[0]].dtype.numpy
    size = sum(prod(weights[place].shape) for place in places)
    if len(rows) == 1 and rows[0] is not None:
        return rows[0].numpy()[None]
    absent = absent_of(kind)
    held = [np.full(size, absent, kind) if row is None else row.numpy() for row in rows]
    return np.array(held, kind).reshape(len(rows), size)
