"""The order of an epoch: a permutation as a function of seed, epoch and position."""

from __future__ import annotations

from functools import lru_cache
from typing import Final

import numpy as np
from numpy.typing import NDArray

from ._items import Indices, words

# Above it no table is made. Below it a Feistel network would not be uniform over permutations.
_TABLE: Final = 65_536
_ROUNDS: Final = 8


def order(seed: int, epoch: int, count: int, positions: Indices, part: int = 0) -> Indices:
    """Return the items that stand at some positions of a shuffled epoch.

    Small datasets have a uniform permutation, made of random words that are sorted; large ones
    that of a Feistel network, which costs nothing for positions that nobody asks for. Parts of an
    epoch have orders of their own.
    """
    if count <= _TABLE:
        return _table(seed, epoch, count, part)[positions]
    half = (int(count - 1).bit_length() + 1) // 2
    keys = words(seed, epoch, (part, 0, 1)).random_raw(_ROUNDS)
    found = _feistel(positions.astype(np.uint64), keys, half)
    while (outside := found >= count).any():  # walks the cycle until it is inside again
        found[outside] = _feistel(found[outside], keys, half)
    return found.astype(np.int64)


def draws(seed: int, epoch: int, positions: Indices) -> NDArray[np.float64]:
    """Return a number of 0 to 1 for each position of an epoch: those of splitmix64."""
    start = words(seed, epoch, (0, 2, 1)).random_raw(1)
    steps = (positions.astype(np.uint64) + np.uint64(1)) * np.uint64(0x9E3779B97F4A7C15)
    return (_mixed(start + steps) >> np.uint64(11)).astype(np.float64) * 2.0**-53


@lru_cache(maxsize=8)
def _table(seed: int, epoch: int, count: int, part: int) -> Indices:
    # The low bits say where a word stood, so that no two are equal and any sort gives this order.
    low = np.uint64(_TABLE - 1)
    drawn = words(seed, epoch, (part, 0, 1)).random_raw(count)
    drawn = (drawn & ~low) | np.arange(count, dtype=np.uint64)
    drawn.sort()
    table = (drawn & low).astype(np.int64)
    table.flags.writeable = False
    return table


def _feistel(values: NDArray[np.uint64], keys: NDArray[np.uint64], half: int) -> NDArray[np.uint64]:
    """A permutation of the numbers below 4**half."""
    mask, shift = np.uint64((1 << half) - 1), np.uint64(half)
    left, right = values >> shift, values & mask
    for key in keys:
        left, right = right, left ^ (_mixed(right ^ key) & mask)
    return (left << shift) | right


def _mixed(x: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """The finalizer of splitmix64 (Steele, Lea, Flood 2014)."""
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))
