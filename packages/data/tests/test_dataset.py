"""Datasets and their views."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import phlox_data as data
import phlox_tensor as pt
from phlox_data._loader import needs_workers
from phlox_tensor import TreeError, tree


def numbers(count: int = 10) -> data.Dataset[int]:
    return data.of(range(count))


def noisy(x: Any, rng: np.random.Generator) -> float:
    return float(x + rng.random())


def test_a_dataset_is_a_sequence() -> None:
    assert len(numbers()) == 10
    assert numbers()[-1] == 9
    assert [*numbers()[2:8:3]] == [2, 5]
    assert [*numbers(3)] == [0, 1, 2]
    for index in (10, -11):
        with pytest.raises(pt.IndexOutOfRangeError, match="expected -10 to 9"):
            numbers()[index]


@pytest.mark.parametrize(
    ("given", "hint"),
    [
        ({"a": [1]}, r"data\.arrays\(\*\*columns\)"),
        (np.ones(3), r"data\.arrays\(array\)"),
        (pt.ones(3, device="numpy"), r"data\.arrays\(array\)"),
        ("text", r"data\.of\(\[text\]\)"),
        (iter([1]), r"data\.of\(list\(items\)\)"),
    ],
)
def test_what_is_no_sequence_is_told_what_to_type(given: Any, hint: str) -> None:
    with pytest.raises(pt.WrongTypeError, match=f"hint: {hint}"):
        data.of(given)


def test_selecting_takes_indices_masks_and_repeats() -> None:
    assert [*numbers().select([3, 3, -1])] == [3, 3, 9]
    assert [*numbers(3).select(np.array([True, False, True]))] == [0, 2]
    assert len(numbers().select([])) == 0
    with pytest.raises(pt.IndexOutOfRangeError, match="got 10, expected below 10"):
        numbers().select([10])
    wrongs: list[Any] = [[1.5], [[1]], [True]]
    for wrong in wrongs:
        with pytest.raises(pt.ArgumentError, match="not indices"):
            numbers().select(wrong)


def test_parts_of_a_split_are_disjoint_and_whole() -> None:
    parts = numbers(100).split(0.5, 20)
    assert [len(part) for part in parts] == [50, 20, 30]
    assert sorted(x for part in parts for x in part) == [*range(100)]
    assert [*parts[0]] == [*numbers(100).split(0.5)[0]] != [*range(50)]
    assert [*numbers().split(0.2, seed=None)[0]] == [0, 1]


@pytest.mark.parametrize("parts", [(), (1.0,), (-0.1,), (11,), (0.8, 0.8), (-1,)])
def test_parts_that_cannot_be_are_refused(parts: tuple[float, ...]) -> None:
    with pytest.raises(pt.ArgumentError, match="no such parts"):
        numbers().split(*parts)


def test_samples_are_drawn_without_any_twice() -> None:
    assert len({*numbers().sample(10)}) == 10
    assert [*numbers(1000).sample(5, seed=1)] != [*numbers(1000).sample(5, seed=2)]
    with pytest.raises(pt.ArgumentError, match="expected 0 to 10"):
        numbers().sample(11)


def test_datasets_join() -> None:
    joined = numbers(3) + data.of(["a"]) + numbers(2)
    assert [*joined] == [0, 1, 2, "a", 0, 1]
    others = ["a"]
    assert [*numbers(2) + others] == [0, 1, "a"]


def test_windows_are_stacked() -> None:
    assert [w.tolist() for w in numbers(7).windows(3, 2)] == [[0, 1, 2], [2, 3, 4], [4, 5, 6]]
    assert len(numbers(2).windows(3)) == 0
    with pytest.raises(pt.ArgumentError, match="no windows"):
        numbers().windows(0)


def test_windows_of_arrays_are_gathered() -> None:
    rows = data.arrays(x=np.arange(8).reshape(4, 2), name=["a", "b", "c", "d"])
    batch = data.DataLoader(rows.windows(2), 2).at(0, 0)
    assert batch["x"].tolist() == [[[0, 1], [2, 3]], [[2, 3], [4, 5]]]
    assert batch["name"] == [["a", "b"], ["b", "c"]]
    again = data.stack([*rows.windows(2)[:2]])
    assert again["x"].tolist() == batch["x"].tolist()
    assert again["name"] == batch["name"]


def test_filters_look_at_every_item_once() -> None:
    asked: list[int] = []

    def is_odd(x: int) -> bool:
        asked.append(x)
        return x % 2 == 1

    odd = numbers().filter(is_odd)
    assert [*odd] == [1, 3, 5, 7, 9]
    assert asked == [*range(10)]


def test_cached_items_are_made_once_and_read_only() -> None:
    made: list[int] = []

    def ones(x: int) -> Any:
        made.append(x)
        return np.ones(2)

    kept = numbers().map(ones).cache()
    assert kept[3] is kept[3]
    assert made == [3]
    with pytest.raises(ValueError, match="read-only"):
        kept[3][0] = 5


def test_random_items_cannot_be_kept_or_filtered() -> None:
    random = numbers().map(noisy)
    with pytest.raises(pt.ArgumentError, match=r"cache.*\n.*the map last"):
        random.cache()
    with pytest.raises(pt.ArgumentError, match="filter"):
        (numbers() + random).select([1]).filter(bool)


def test_random_numbers_follow_from_seed_epoch_and_index() -> None:
    random = data.of([0.0] * 4).map(noisy)
    places = [(i, e, s) for i in range(4) for e in range(3) for s in (0, 1, 2**64 - 1)]
    assert len({random.item(i, epoch=e, seed=s) for i, e, s in places}) == 36
    assert random.item(2, epoch=1, seed=1) == random.item(-2, epoch=1, seed=1)
    with pytest.raises(pt.ArgumentError, match="seed is no such number"):
        random.item(0, seed=-1)


def test_functions_behind_each_other_and_repeats_draw_their_own() -> None:
    pair = (
        data.of([()] * 2).map(lambda x, rng: (rng.random(),)).map(lambda x, rng: (*x, rng.random()))
    )
    assert len({*pair[0], *pair[1]}) == 4
    twice = data.of([0.0]).map(noisy).select([0, 0])
    assert twice[0] != twice[1]
    window = data.of([0.0] * 3).map(noisy).windows(2)
    assert len({*window[0].tolist(), *window[1].tolist()}) == 4


@pytest.mark.parametrize(
    ("function", "random"),
    [
        (lambda x, rng: rng, True),
        (lambda x, rng=None: rng, True),
        (lambda x, y: y, True),
        (lambda x, scale=2: x, False),
        (abs, False),
        (np.sqrt, False),
        (str, False),
    ],
)
def test_a_second_argument_is_a_generator(function: Any, random: bool) -> None:
    mapped = data.of([4]).map(function)
    if random:
        assert isinstance(mapped[0], np.random.Generator)
    else:
        assert mapped[0] == function(4)


def test_a_map_wants_a_function() -> None:
    with pytest.raises(pt.WrongTypeError, match="not a function"):
        numbers().map(3)  # type: ignore[arg-type]


def test_rows_of_arrays_are_items() -> None:
    memory = np.arange(6, dtype=np.uint8).reshape(3, 2)
    rows = data.arrays((memory, ["a", "b", "c"], pt.arange(3, device="numpy")))
    assert rows[1][0].tolist() == [2, 3]
    assert rows[1][1:] == ("b", 1)
    with pytest.raises(ValueError, match="read-only"):
        rows[1][0][0] = 9
    batch = data.DataLoader(rows, 2).at(0, 0)
    batch[0][:] = 9
    assert memory.max() == 5
    assert batch[1] == ["a", "b"]


def test_arrays_of_different_lengths_are_refused() -> None:
    with pytest.raises(pt.ShapeError, match="got 2 of y, expected 3 of x"):
        data.arrays(x=np.ones(3), y=np.ones(2))
    with pytest.raises(pt.ShapeError, match="y has no first axis"):
        data.arrays(x=np.ones(3), y=2)
    for given in ((), (np.ones(2),)):
        with pytest.raises(pt.ArgumentError, match=r"data\.arrays\(x=features, y=labels\)"):
            data.arrays(*given, **({"x": np.ones(2)} if given else {}))


def test_a_map_of_memory_is_not_read_whole(tmp_path: Any) -> None:
    np.save(tmp_path / "x.npy", np.arange(12).reshape(6, 2))
    rows = data.arrays(x=np.load(tmp_path / "x.npy", mmap_mode="r"))
    batch = data.DataLoader(rows, 4, shuffle=True).at(0, 1)
    assert type(batch["x"]) is np.ndarray
    assert batch["x"].shape == (2, 2)


def test_arrays_side_by_side_and_one_behind_the_other_are_gathered_as_their_items() -> None:
    def rows(first: int, count: int) -> Any:
        there = np.arange(first, first + count)
        return data.arrays(x=there[:, None] * np.ones(3), name=[str(each) for each in there])

    three = rows(0, 5) + rows(5, 1) + rows(6, 4)
    for whole in (three, data.zip(three, three), three[::-1] + rows(10, 3)):
        order = [*range(len(whole))][::-2]
        loader = data.DataLoader(whole.select(order), len(order))
        assert not needs_workers(loader)
        batch = loader.at(0, 0)
        wanted = data.stack([whole[place] for place in order])
        for got, expected in zip(tree.leaves(batch), tree.leaves(wanted), strict=True):
            assert type(got) is type(expected)
            assert np.asarray(got).dtype == np.asarray(expected).dtype
            assert np.asarray(got).tolist() == np.asarray(expected).tolist()


@pytest.mark.parametrize(
    "other",
    [np.zeros((2, 4)), np.zeros((2, 3), np.int64), np.zeros(2)],
    ids=["size", "type", "axes"],
)
def test_arrays_of_other_shapes_do_not_stack_though_they_are_gathered(other: Any) -> None:
    mixed = data.arrays(x=np.zeros((2, 3))) + data.arrays(x=other)
    with pytest.raises(data.RaggedError, match=r"at 'x' \(item 2 of the batch") as caught:
        data.DataLoader(mixed, 4).at(0, 0)
    assert "item 2, batch 0 of epoch 0" in caught.value.__notes__[0]
    named = data.arrays(x=np.zeros((2, 3))) + data.arrays(y=np.zeros((2, 3)))
    with pytest.raises(TreeError, match="item 2 of the batch has other parts"):
        data.DataLoader(named, 4).at(0, 0)
