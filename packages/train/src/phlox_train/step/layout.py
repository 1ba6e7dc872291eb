"""Which gradients are in which bucket, and where each of them is in it."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any, Final, NamedTuple, TypeAlias, final

import numpy as np

from phlox_nn import Param
from phlox_tensor import Backend, DType, Tensor, asarray, concat
from phlox_tensor.groups import absent_of

# By bucket the ids and shapes of its gradients, in their order; an absent one has no id.
Layout: TypeAlias = tuple[tuple[tuple[str, tuple[int, ...]], ...], ...]
# A sum of gradients of a bucket: one tensor; a list by parameter, where some are absent; or None.
Row: TypeAlias = "Tensor[Any] | list[Tensor[Any] | None] | None"

_LAYOUTS: Final = 64  # kept; more come where each step uses other parameters


class _Slot(NamedTuple):
    """A parameter, without its value."""

    id: str
    shape: tuple[int, ...]
    dtype: DType


@final
class BucketPlan:
    """How parameters are dealt to buckets, so that all ranks send the same ones in one order.

    Attributes:
        places: for each bucket the places of its parameters among all.
        kinds: for each bucket its element type, and its number of elements.
    """

    def __init__(self, weights: Sequence[Param], limit: int) -> None:
        """Deal parameters to buckets of at most ``limit`` elements, or of one larger parameter."""
        self._slots = [_Slot(each.id, each.shape, each.dtype) for each in weights]
        self.places = _buckets(self._slots, limit)
        self.kinds = tuple((self._slots[p[0]].dtype, self._size(p)) for p in self.places)
        self._layouts: dict[bytes, Layout] = {}

    def __len__(self) -> int:
        return len(self._slots)

    def present(self, held: Sequence[list[Any] | None]) -> bytes:
        """Return 1 or 0 by parameter: whether some sum of this rank has its gradient."""
        sums = [each for each in held if each is not None]
        return bytes(any(each[k] is not None for each in sums) for k in range(len(self)))

    def rows(self, held: Sequence[list[Any] | None]) -> list[list[Row]]:
        """Return by bucket the sums of this rank, which are given as gradients by parameter."""
        return [
            [_row(each and [each[p] for p in places]) for each in held] for places in self.places
        ]

    def whole(self, number: int, row: Row, device: Backend) -> Tensor[Any]:
        """Return a row as one tensor, which the host or another rank reads as it lies."""
        if isinstance(row, Tensor):
            return row
        places = self.places[number]
        pieces = [
            self._absent(self._slots[place], device) if gradient is None else gradient.reshape(-1)
            for place, gradient in zip(places, row or [None] * len(places), strict=True)
        ]
        return pieces[0] if len(pieces) == 1 else concat(pieces)

    def _absent(self, slot: _Slot, device: Backend) -> Tensor[Any]:
        kind = slot.dtype.numpy
        return asarray(np.full(prod(slot.shape), absent_of(kind), kind), device=device)

    def layout(self, given: bytes) -> Layout:
        """Return the layout of the given gradients; the same object for the same ones."""
        layout = self._layouts.get(given)
        if layout is None:
            if len(self._layouts) >= _LAYOUTS:
                self._layouts.clear()
            layout = self._layouts[given] = tuple(
                tuple((self._slots[p].id if given[p] else "", self._slots[p].shape) for p in places)
                for places in self.places
            )
        return layout

    def _size(self, places: Sequence[int]) -> int:
        return sum(prod(self._slots[place].shape) for place in places)


def _row(grads: list[Any] | None) -> Row:
    if grads is None or any(gradient is None for gradient in grads):
        return grads
    pieces = [gradient.reshape(-1) for gradient in grads]
    return pieces[0] if len(pieces) == 1 else concat(pieces)


def split(layout: Layout, tensors: Sequence[Tensor[Any]]) -> dict[str, Tensor[Any]]:
    """Return the gradients in buckets by the id of their parameter."""
    gradients: dict[str, Tensor[Any]] = {}
    for bucket, tensor in zip(layout, tensors, strict=True):
        high = 0
        for key, shape in bucket:
            low, high = high, high + prod(shape)
            if key:
                gradients[key] = tensor[low:high].reshape(shape)
    return gradients


def added(left: list[Any], right: list[Any]) -> list[Any]:
    """Return the sums of gradients by parameter; None stands for an absent one."""
    pairs = zip(left, right, strict=True)
    return [a if b is None else b if a is None else a + b for a, b in pairs]


def _buckets(slots: Sequence[_Slot], limit: int) -> list[list[int]]:
    """Deal places to buckets of one element type, the last first, as a backward pass goes."""
    buckets: list[list[int]] = []
    open_: dict[Any, tuple[list[int], int]] = {}
    for place, slot in reversed([*enumerate(slots)]):
        size = prod(slot.shape)
        bucket, used = open_.get(slot.dtype, ([], limit))
        if not bucket or used + size > limit:
            bucket, used = [], 0
            buckets.append(bucket)
        bucket.append(place)
        open_[slot.dtype] = bucket, used + size
    return buckets
