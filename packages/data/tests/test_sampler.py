"""Samplers: orders that are functions of seed, epoch and place."""

from __future__ import annotations

from collections import Counter
from typing import Any, cast

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import phlox_data as data
from phlox_tensor import ArgumentError, RecordError


def drawn(loader: data.DataLoader) -> list[int]:
    return [int(item) for batch in loader for item in batch]


@given(st.integers(1, 60), st.integers(1, 20), st.integers(1, 4), st.integers(0, 3))
def test_blocks_give_each_item_once(items: int, size: int, window: int, seed: int) -> None:
    sampler = data.Blocks(size, window)
    found = sampler.indices(seed, 1, items, np.arange(items))
    assert sorted(found.tolist()) == [*range(items)]
    some = np.array([items - 1, 0])
    assert sampler.indices(seed, 1, items, some).tolist() == found[some].tolist()


@given(st.integers(1, 60), st.integers(1, 20), st.integers(1, 4))
def test_blocks_read_a_few_at_a_time(items: int, size: int, window: int) -> None:
    found = data.Blocks(size, window).indices(0, 0, items, np.arange(items)) // size
    last_seen = {int(block): place for place, block in enumerate(found)}
    first_seen: dict[int, int] = {}
    for place, block in enumerate(found):
        first_seen.setdefault(int(block), place)
    for place in range(items):
        begun = sum(first_seen[block] <= place <= last_seen[block] for block in first_seen)
        assert begun <= window


def test_blocks_are_shuffled_within_and_among_themselves() -> None:
    orders = {tuple(data.Blocks(4).indices(0, e, 12, np.arange(12)).tolist()) for e in range(20)}
    assert len(orders) == 20


def test_weights_say_how_often_an_item_comes() -> None:
    weights = np.array([0.0, 1.0, 2.0, 5.0])
    counts = Counter(drawn(data.DataLoader(range(4), 100, sampler=data.Weighted(weights, 80_000))))
    assert counts[0] == 0
    shares = np.array([counts[item] for item in range(4)]) / 80_000
    assert np.abs(shares - weights / 8).max() < 0.01


def test_an_epoch_of_weights_is_answered_at_any_place() -> None:
    for replacement in (True, False):
        sampler = data.Weighted(np.arange(1.0, 51.0), 40, replacement=replacement)
        whole = sampler.indices(3, 2, 50, np.arange(40))
        assert sampler.indices(3, 2, 50, np.array([39, 7])).tolist() == [whole[39], whole[7]]
        assert sampler.indices(3, 3, 50, np.arange(40)).tolist() != whole.tolist()


def test_without_replacement_no_item_comes_twice_and_heavy_ones_come_first() -> None:
    weights = np.array([1.0, 3.0, 0.0, 4.0])
    sampler = data.Weighted(weights, 3, replacement=False)
    epochs = [sampler.indices(0, epoch, 4, np.arange(3)).tolist() for epoch in range(8000)]
    assert all(sorted(epoch) == [0, 1, 3] for epoch in epochs)
    firsts = Counter(epoch[0] for epoch in epochs)
    shares = np.array([firsts[item] for item in range(4)]) / 8000
    assert np.abs(shares - weights / 8).max() < 0.02


def test_balanced_classes_come_equally_often() -> None:
    labels = ["cat"] * 95 + ["dog"] * 5
    batches = data.DataLoader(data.of(labels), 1000, sampler=data.balanced(labels, 20_000))
    counts = Counter(label for batch in batches for label in batch)
    assert abs(counts["dog"] / 20_000 - 0.5) < 0.02


@pytest.mark.parametrize("workers", [0, 2])
def test_an_epoch_is_as_long_as_its_sampler_says(workers: int) -> None:
    sampler = data.Weighted([1.0] * 10, 25)
    loader = data.DataLoader(range(10), 4, sampler=sampler, workers=workers)
    assert len(loader) == 7
    assert len(drawn(loader)) == 25
    assert loader.position == (1, 0)
    parts = [data.DataLoader(range(10), 4, sampler=sampler).part(v, v + 1, 2) for v in range(2)]
    halves = zip(*parts, strict=True)
    again = [int(item) for pair in halves for half in pair for item in half]
    assert again == drawn(data.DataLoader(range(10), 4, sampler=sampler))


def test_records_know_weights() -> None:
    record = data.DataLoader(range(3), 1, sampler=data.Weighted([1.0, 2.0, 3.0])).into_record()
    same = data.DataLoader(range(3), 1, sampler=data.Weighted([1.0, 2.0, 3.0]))
    assert same.load_record(record).position == (0, 0)
    other = data.DataLoader(range(3), 1, sampler=data.Weighted([1.0, 2.0, 4.0]))
    with pytest.raises(RecordError, match="as order differs"):
        other.load_record(record)
    blocks = data.DataLoader(range(3), 1, shuffle=data.Blocks(2))
    with pytest.raises(RecordError, match="as order differs"):
        data.DataLoader(range(3), 1, shuffle=data.Blocks(1)).load_record(blocks.into_record())


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda: data.Blocks(0), "no blocks: got size 0, window 2"),
        (lambda: data.Weighted([]), "no weights"),
        (lambda: data.Weighted([1.0, -1.0]), "no weights"),
        (lambda: data.Weighted([0.0, 0.0]), "no weights"),
        (lambda: data.Weighted([1.0, float("nan")]), "no weights"),
        (lambda: data.Weighted([1.0, 0.0], 2, replacement=False), "got 2, expected 1 to 1"),
        (lambda: data.balanced([]), "no labels"),
        (lambda: data.DataLoader(range(3), 1, sampler=data.Weighted([1.0])), "other items"),
        (lambda: data.DataLoader(range(3), 1, sampler=cast("Any", 0)), "not an order: got int"),
        (
            lambda: data.DataLoader(range(3), 1, shuffle=True, sampler=data.Blocks(2)),
            "a sampler is an order already",
        ),
    ],
)
def test_wrong_orders_are_refused(make: Any, says: str) -> None:
    with pytest.raises(ArgumentError, match=says):
        make()


class Given(data.Sampler):
    """An order made from anything."""

    def __init__(self, given: Any) -> None:
        self.given = given
        self.marked = 0

    def count(self, items: int) -> int:
        return items

    def indices(self, seed: int, epoch: int, items: int, places: Any) -> Any:
        return places


class Other(Given):
    """Another order, which is made from the same."""


def test_marks_tell_orders_apart_and_are_those_of_another_process() -> None:
    long, changed = np.arange(5000), np.arange(5000)
    changed[2500] = 0
    made: list[Any] = [Given(1), Other(1), Given(long), Given(changed), Given([long])]
    made += [Given([changed]), Given(data.Blocks(3)), Given(data.Blocks(4)), Given([Other(1)])]
    assert len({each.mark() for each in made}) == len(made)
    assert Given(data.Blocks(3)).mark() == Given(data.Blocks(3)).mark()
    assert (
        Given(test_wrong_orders_are_refused).mark() == Given(test_wrong_orders_are_refused).mark()
    )
    assert Given(Fetching()).mark() == Given(Fetching()).mark()  # wherever they lie


def test_a_shard_goes_on_from_the_record_of_another_one() -> None:
    def shard() -> data.DataLoader:
        return data.DataLoader(range(10), 2, shuffle=True).shard(0, 2)

    first, *rest = shard()
    own = shard()
    assert next(iter(own)).tolist() == first.tolist()
    again = shard().load_record(own.into_record())
    assert [batch.tolist() for batch in again] == [batch.tolist() for batch in rest]


def test_a_mark_is_computed_once() -> None:
    class Counted(Given):
        def mark(self) -> int:
            self.marked += 1
            return 7

    order = Counted(0)
    loader = data.DataLoader(range(6), 2, sampler=order)
    assert [loader.into_record()["order"] for _ in loader] == [7, 7, 7]
    assert order.marked == 1


class Fetching:
    """A dataset that fetches many items at once, as PyTorch's loader asks for."""

    def __init__(self, short: bool = False) -> None:
        self.asked: list[list[int]] = []
        self.short = short

    def __len__(self) -> int:
        return 10

    def __getitem__(self, index: int) -> int:
        raise AssertionError("items are fetched together")

    def __getitems__(self, indices: list[int]) -> list[int]:
        self.asked.append(indices)
        return indices[: len(indices) - self.short]


def test_datasets_that_fetch_are_asked_once_a_batch() -> None:
    source = Fetching()
    rows = data.of(source).select([*range(9, -1, -1)]).map(lambda x: x * 10)
    batches = [batch.tolist() for batch in data.DataLoader(rows, 4)]
    assert batches == [[90, 80, 70, 60], [50, 40, 30, 20], [10, 0]]
    assert source.asked == [[9, 8, 7, 6], [5, 4, 3, 2], [1, 0]]
    with pytest.raises(ArgumentError, match=r"gave another number of items: got 3, expected 4"):
        next(iter(data.DataLoader(Fetching(short=True), 4)))


def test_zipped_datasets_stand_side_by_side() -> None:
    pairs = data.zip(range(3), ["a", "b", "c"])
    assert [*pairs] == [(0, "a"), (1, "b"), (2, "c")]
    noise = data.of([0.0] * 4).map(lambda x, rng: x + rng.random())
    left, right = data.zip(noise, noise)[1]
    assert left != right
    with pytest.raises(ArgumentError, match="lengths differ: got 3, 2"):
        data.zip(range(3), range(2))
    with pytest.raises(ArgumentError, match="nothing to put side by side"):
        data.zip()
