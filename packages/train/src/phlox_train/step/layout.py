"""Which gradients travel together, and where each is in a bucket."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any, Final, NamedTuple, TypeAlias, final

import numpy as np

from phlox_nn import Param
from phlox_tensor import Backend, DType, Tensor, asarray, concat
from phlox_tensor.groups import absent_of

# By bucket the ids and shapes of what is in it, one after the other; no id is an absent gradient.
Layout: TypeAlias = tuple[tuple[tuple[str, tuple[int, ...]], ...], ...]
# A sum of the gradients of a bucket: in one tensor; by parameter, where some are absent; or none.
Row: TypeAlias = "Tensor[Any] | list[Tensor[Any] | None] | None"

_LAYOUTS: Final = 64  # that are kept: more come of parameters which each step uses others of


class _Slot(NamedTuple):
    """A parameter, without its value."""

    id: str
    shape: tuple[int, ...]
    dtype: DType


@final
class BucketPlan:
    """Buckets of the parameters of a model, so that all ranks send the same ones in one order.

    Attributes:
        places: by bucket the numbers of its parameters.
        kinds: by bucket the element type, and how many elements.
    """

    def __init__(self, weights: Sequence[Param], limit: int) -> None:
        """Deal parameters to buckets of about so many elements."""
        self._slots = [_Slot(each.id, each.shape, each.dtype) for each in weights]
        self.places = _buckets(self._slots, limit)
        self.kinds = tuple((self._slots[p[0]].dtype, self._size(p)) for p in self.places)
        self._layouts: dict[bytes, Layout] = {}

    def __len__(self) -> int:
        return len(self._slots)

    def there(self, held: Sequence[list[Any] | None]) -> bytes:
        """Return by parameter 1 or 0, whether some sum of this rank has its gradient."""
        found = [each for each in held if each is not None]
        return bytes(any(each[k] is not None for each in found) for k in range(len(self)))

    def rows(self, held: Sequence[list[Any] | None]) -> list[list[Row]]:
        """Return by bucket the sums of this rank, of which it has gradients by parameter."""
        return [
            [_row(each and [each[p] for p in places]) for each in held] for places in self.places
        ]

    def whole(self, number: int, row: Row, device: Backend) -> Tensor[Any]:
        """Return a row in one tensor, which is read from there at once."""
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

    def layout(self, there: bytes) -> Layout:
        """Return what is where; the same object for the same gradients."""
        found = self._layouts.get(there)
        if found is None:
            if len(self._layouts) >= _LAYOUTS:
                self._layouts.clear()
            found = self._layouts[there] = tuple(
                tuple((self._slots[p].id if there[p] else "", self._slots[p].shape) for p in places)
                for places in self.places
            )
        return found

    def _size(self, places: Sequence[int]) -> int:
        return sum(prod(self._slots[place].shape) for place in places)


def _row(grads: list[Any] | None) -> Row:
    if grads is None or any(gradient is None for gradient in grads):
        return grads
    pieces = [gradient.reshape(-1) for gradient in grads]
    return pieces[0] if len(pieces) == 1 else concat(pieces)


def split(layout: Layout, tensors: Sequence[Tensor[Any]]) -> dict[str, Tensor[Any]]:
    """Return gradients by the id of their parameter, out of buckets."""
    found: dict[str, Tensor[Any]] = {}
    for bucket, tensor in zip(layout, tensors, strict=True):
        high = 0
        for key, shape in bucket:
            low, high = high, high + prod(shape)
            if key:
                found[key] = tensor[low:high].reshape(shape)
    return found


def added(left: list[Any], right: list[Any]) -> list[Any]:
    """Return sums of gradients by parameter, where None is absent."""
    pairs = zip(left, right, strict=True)
    return [a if b is None else b if a is None else a + b for a, b in pairs]


def _buckets(slots: Sequence[_Slot], limit: int) -> list[list[int]]:
    """Places in buckets of one element type, the last parameters first, as a backward pass goes."""
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
