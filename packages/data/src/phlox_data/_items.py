"""What a dataset is underneath: items by their index, and many at once where that is cheaper."""

from __future__ import annotations

from abc import ABC, abstractmethod
from bisect import bisect_right
from collections.abc import Sequence
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from phlox_tensor import ArgumentError

Indices = NDArray[np.int64]

_LIMIT: Final = 2**64


class Draw(NamedTuple):
    """What the randomness of an item depends on, beside the item itself."""

    seed: int
    epoch: int


class Items(ABC):
    """Items by their index.

    Attributes:
        draws: how many functions that take random numbers an item goes through.
        gathers: whether ``gather`` gives batches, which no random numbers may change.
        fetches: whether ``fetch`` is cheaper than ``get`` one after the other.
    """

    draws: int = 0
    gathers: bool = False
    fetches: bool = False

    @abstractmethod
    def __len__(self) -> int: ...

    @abstractmethod
    def get(self, index: int, key: int, draw: Draw) -> Any:
        """Return one item; its random numbers are those of ``key``."""

    def fetch(self, indices: Indices, keys: Indices, draw: Draw) -> list[Any]:
        """Return some items; their random numbers are those of ``keys``."""
        pairs = zip(indices.tolist(), keys.tolist(), strict=True)
        return [self.get(index, key, draw) for index, key in pairs]

    def gather(self, indices: Indices) -> Any:
        """Return the batch of some items, where ``gathers`` says so."""
        raise NotImplementedError(type(self).__name__)


def part_of(ends: Sequence[int], index: int) -> tuple[int, int]:
    """Return in which of several sequences, one after the other, an item stands, and where."""
    part = bisect_right(ends, index)
    return part, index - (ends[part - 1] if part else 0)


def words(seed: int, epoch: int, counter: tuple[int, int, int]) -> np.random.Philox:
    """Return the random words of an epoch, of which the counter tells independent ones apart.

    Philox counts in a word in front of these three.
    """
    given: dict[str, Any] = {"seed": seed, "epoch": epoch}
    for name, value in given.items():
        if not isinstance(value, int) or not 0 <= value < _LIMIT:
            what, expected = f"{name} is no such number", "0 to 2**64 - 1"
            raise ArgumentError("data", what, got=value, expected=expected)
    key = np.array([seed, epoch], np.uint64)
    return np.random.Philox(key=key, counter=np.array([0, *counter], np.uint64))


def generator(draw: Draw, key: int, stage: int) -> np.random.Generator:
    """Return the random numbers of an item in an epoch, for one of the functions it goes through.

    The last word is 0; that of orders is 1.
    """
    return np.random.Generator(words(draw.seed, draw.epoch, (stage, key, 0)))
