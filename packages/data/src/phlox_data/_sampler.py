"""Orders of an epoch: as it lies, shuffled, shuffled in blocks, drawn by weights."""

from __future__ import annotations

import re
import sys
from abc import ABC, abstractmethod
from collections.abc import Sequence
from functools import lru_cache
from typing import Any, Final, final
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from phlox_tensor import ArgumentError

from ._items import Indices, words
from ._order import draws, order

_Weights = Sequence[float] | NDArray[Any]


class Sampler(ABC):
    """Which item stands where in an epoch, as a function: nothing moves on, any place may be asked.

    Subclass it for an order of your own; ``DataLoader(..., sampler=...)`` takes it.

    Example:
        >>> class Backwards(Sampler):
        ...     def count(self, items):
        ...         return items
        ...
        ...     def indices(self, seed, epoch, items, places):
        ...         return items - 1 - places
        >>> from phlox_data import DataLoader
        >>> [batch.tolist() for batch in DataLoader(range(5), 2, sampler=Backwards())]
        [[4, 3], [2, 1], [0]]
    """

    @abstractmethod
    def count(self, items: int) -> int:
        """Return how many places an epoch over so many items has."""

    @abstractmethod
    def indices(self, seed: int, epoch: int, items: int, places: Indices) -> Indices:
        """Return the items that stand at some places of an epoch."""

    def mark(self) -> int:
        """Return a number that tells this order from others, for the record of a loader.

        It follows from the class and the attributes; override it where those change meanwhile.
        """
        told = [(name, _told(value)) for name, value in sorted(vars(self).items())]
        return crc32(f"{type(self).__qualname__} {told}".encode()) + 2

    def __repr__(self) -> str:
        return f"<{type(self).__qualname__} {self.mark()}>"


def _told(value: object) -> str:
    """A value as text that is the same in the next process, and another for another value."""
    if isinstance(value, np.ndarray) and not value.dtype.hasobject:
        return f"{value.dtype} {value.shape} {crc32(value.tobytes())}"
    with np.printoptions(threshold=sys.maxsize, floatmode="unique"):
        return re.sub(r" at 0x[0-9a-fA-F]+", "", repr(value))  # where it lies in memory


@final
class InOrder(Sampler):
    """Items as they lie."""

    def count(self, items: int) -> int:
        return items

    def indices(self, seed: int, epoch: int, items: int, places: Indices) -> Indices:
        del seed, epoch, items
        return places

    def mark(self) -> int:
        return 0


@final
class Shuffled(Sampler):
    """Another permutation in each epoch."""

    def count(self, items: int) -> int:
        return items

    def indices(self, seed: int, epoch: int, items: int, places: Indices) -> Indices:
        return order(seed, epoch, items, places)

    def mark(self) -> int:
        return 1


@final
class Turns(Sampler):
    """Batches ``index``, ``index + of``, … of another order, for processes that take turns."""

    def __init__(self, order: Sampler, batch: int, batches: int, index: int, of: int) -> None:
        self.order, self.batch, self.batches, self.index, self.of = order, batch, batches, index, of

    def count(self, items: int) -> int:
        numbers = range(self.index, self.batches, self.of)
        ends = [min((number + 1) * self.batch, self.order.count(items)) for number in numbers[-1:]]
        return (len(numbers) - 1) * self.batch + sum(end - numbers[-1] * self.batch for end in ends)

    def indices(self, seed: int, epoch: int, items: int, places: Indices) -> Indices:
        number, row = np.divmod(places, self.batch)
        whole = (number * self.of + self.index) * self.batch + row
        return self.order.indices(seed, epoch, items, whole)


@final
class Blocks(Sampler):
    """Shuffle for files that are read in blocks: blocks in a random order, items within a few.

    An epoch reads ``window`` blocks at a time, so a source that keeps as many in memory reads each
    once. The items of those are in a random order; no item comes twice.

    Args:
        size: items in a block, such as a row group of Parquet or a shard.
        window: how many blocks are shuffled together.

    Example:
        >>> from phlox_data import DataLoader
        >>> loader = DataLoader(range(10), 4, shuffle=Blocks(3))
        >>> sorted(int(i) for batch in loader for i in batch)
        [0, 1, 2, 3, 4, 5, 6, 7, 8, 9]
    """

    def __init__(self, size: int, window: int = 2) -> None:
        if type(size) is not int or type(window) is not int or size < 1 or window < 1:
            got = f"size {size}, window {window}"
            raise ArgumentError("Blocks", "no blocks", got=got, expected="1 or more")
        self.size, self.window = size, window

    def count(self, items: int) -> int:
        return items

    def indices(self, seed: int, epoch: int, items: int, places: Indices) -> Indices:
        count = -(-items // self.size)
        blocks = order(seed, epoch, count, np.arange(count))
        short = int(np.flatnonzero(blocks == count - 1)[0])  # the last block may have fewer items
        missing = count * self.size - items
        # Where windows begin: each block behind the short one moves up by what that lacks.
        first = np.arange(0, count + self.window, self.window)
        begins = np.minimum(first * self.size - missing * (first > short), items)
        windows = np.searchsorted(begins, places, "right") - 1
        found = np.empty_like(places)
        for window in np.unique(windows):
            here = windows == window
            low, high = int(begins[window]), int(begins[window + 1])
            inside = low + order(seed, epoch, high - low, places[here] - low, int(window) + 1)
            moved = inside + missing * (inside >= (short + 1) * self.size - missing)
            found[here] = blocks[moved // self.size] * self.size + moved % self.size
        return found


@final
class Weighted(Sampler):
    """Draw items with given weights: an item of weight 2 comes twice as often as one of weight 1.

    Args:
        weights: one for each item, 0 or more.
        count: how many are drawn in an epoch; as many as there are items by default.
        replacement: whether an item may be drawn again in the same epoch. Without it the next item
            is drawn from those that are left (Efraimidis and Spirakis, "Weighted random sampling
            with a reservoir", 2006).

    Raises:
        ArgumentError: for negative weights, none above 0, or too few to draw without replacement.

    Example:
        >>> from phlox_data import DataLoader
        >>> loader = DataLoader(["a", "b"], 100, sampler=Weighted([0.0, 1.0], count=100))
        >>> set(next(iter(loader)))
        {'b'}
    """

    def __init__(
        self, weights: _Weights, count: int | None = None, *, replacement: bool = True
    ) -> None:
        given = np.asarray(weights, np.float64)
        if given.ndim != 1 or not np.isfinite(given).all() or (given < 0).any() or not given.any():
            expected = "a number of 0 or more for each item, and one above 0"
            raise ArgumentError("Weighted", "no weights", got=f"{given!r:.60}", expected=expected)
        count = len(given) if count is None else count
        most = None if replacement else np.count_nonzero(given)
        if type(count) is not int or count < 1 or (most is not None and count > most):
            expected = "1 or more" if most is None else f"1 to {most}, as many as have a weight"
            raise ArgumentError("Weighted", "count is no such number", got=count, expected=expected)
        self._weights, self._replacement, self._count = given, replacement, count
        self._ends: Final = np.cumsum(given) / given.sum()
        self._drawn = lru_cache(maxsize=2)(self._without)

    def count(self, items: int) -> int:
        if items != len(self._weights):
            got, expected = f"{len(self._weights)} weights", f"{items}, one for each item"
            raise ArgumentError("Weighted", "weights of other items", got=got, expected=expected)
        return self._count

    def indices(self, seed: int, epoch: int, items: int, places: Indices) -> Indices:
        del items
        if not self._replacement:
            return self._drawn(seed, epoch)[places]
        last = int(np.flatnonzero(self._weights)[-1])  # rounding may leave the last end below 1
        found = np.searchsorted(self._ends, draws(seed, epoch, places), "right")
        return np.minimum(found, last)

    def _without(self, seed: int, epoch: int) -> Indices:
        uniform = np.random.Generator(words(seed, epoch, (0, 1, 1))).random(len(self._weights))
        with np.errstate(divide="ignore"):
            keys = np.log1p(-uniform) / self._weights  # minus infinity, or nan for 0 / 0: last
        keys[self._weights == 0] = -np.inf
        return np.argsort(-keys, kind="stable")[: self._count]

    def mark(self) -> int:
        kind = f"{self._count} {self._replacement}".encode()
        return crc32(self._weights.tobytes() + kind) + 2


def balanced(labels: Sequence[Any] | NDArray[Any], count: int | None = None) -> Weighted:
    """Return the sampler under which each class is drawn equally often.

    Args:
        labels: the class of each item.
        count: how many items are drawn in an epoch; as many as there are by default.

    Example:
        >>> from phlox_data import DataLoader
        >>> labels = [0] * 90 + [1] * 10
        >>> loader = DataLoader(labels, 1000, sampler=balanced(labels, 1000))
        >>> bool(abs(next(iter(loader)).mean() - 0.5) < 0.1)
        True
    """
    given = np.asarray(labels)
    if given.ndim != 1 or not given.size:
        got, expected = f"shape {given.shape}", "the class of each item"
        raise ArgumentError("balanced", "no labels", got=got, expected=expected)
    _, where, counts = np.unique(given, return_inverse=True, return_counts=True)
    return Weighted(1.0 / counts[where], count)
