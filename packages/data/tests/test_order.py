"""The order of an epoch: a permutation, a function, and as good as a uniform one."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pytest

from phlox_data._order import order
from phlox_tensor import ArgumentError


@pytest.mark.parametrize("count", [0, 1, 2, 5, 1000, 65_536, 65_537, 100_003, 262_144])
def test_every_item_stands_at_one_position(count: int) -> None:
    found = order(3, 1, count, np.arange(count))
    assert sorted(found.tolist()) == [*range(count)]


@pytest.mark.parametrize("count", [1000, 100_003])
def test_positions_are_answered_alone_as_together(count: int) -> None:
    whole = order(3, 1, count, np.arange(count))
    some = np.array([7, 0, count - 1])
    assert order(3, 1, count, some).tolist() == whole[some].tolist()


@pytest.mark.parametrize("count", [1000, 100_003])
def test_seeds_and_epochs_have_orders_of_their_own(count: int) -> None:
    places = np.arange(100)
    keys = [(seed, epoch) for seed in (0, 1, 2, 2**64 - 1) for epoch in range(5)]
    assert len({tuple(order(s, e, count, places).tolist()) for s, e in keys}) == 20


@pytest.mark.parametrize(("seed", "epoch"), [(-1, 0), (2**64, 0), (1.5, 0), (0, -1)])
def test_seeds_and_epochs_are_words(seed: Any, epoch: int) -> None:
    with pytest.raises(ArgumentError, match=r"is no such number: got .* expected 0 to"):
        order(seed, epoch, 10, np.arange(10))


def test_an_order_is_the_same_in_every_release() -> None:
    assert order(0, 0, 10, np.arange(10)).tolist() == SMALL
    assert order(0, 0, 10**9, np.arange(4)).tolist() == LARGE


def test_small_permutations_are_uniform() -> None:
    counts = Counter(tuple(order(0, e, 4, np.arange(4)).tolist()) for e in range(4800))
    assert len(counts) == 24
    assert sum((n - 200) ** 2 / 200 for n in counts.values()) < 50  # chi2, 23 degrees: 1 in 1000


def test_a_large_permutation_sends_an_item_anywhere() -> None:
    count, epochs = 70_000, 1000
    first = np.array([order(0, e, count, np.zeros(1, np.int64))[0] for e in range(epochs)])
    bins = np.bincount(first * 20 // count, minlength=20)
    assert ((bins - 50) ** 2 / 50).sum() < 44  # chi2, 19 degrees: 1 in 1000
    ordered = order(0, 0, count, np.arange(count))
    assert abs(np.corrcoef(ordered[:-1], ordered[1:])[0, 1]) < 0.02


SMALL = [8, 7, 4, 2, 6, 5, 9, 0, 1, 3]
LARGE = [129248429, 937322649, 406012580, 832681367]
