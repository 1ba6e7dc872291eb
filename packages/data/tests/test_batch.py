"""Stacking and padding of trees, and what is said of those that do neither."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

import phlox_data as data
import phlox_tensor as pt


@dataclass
class Pair:
    x: Any
    y: Any


@pytest.mark.parametrize(
    ("leaf", "dtype", "shape"),
    [
        (1, "int64", (2,)),
        (1.5, "float32", (2,)),
        (True, "bool", (2,)),
        ([1, 2], "int64", (2, 2)),
        ([1, 2.5], "float32", (2, 2)),
        ([[1.0], [2.0]], "float32", (2, 2, 1)),
        (np.zeros(3, np.uint8), "uint8", (2, 3)),
        (np.float64(2), "float64", (2,)),
        (np.zeros((2, 0), np.float16), "float16", (2, 2, 0)),
    ],
)
def test_numbers_and_arrays_stack(leaf: Any, dtype: str, shape: tuple[int, ...]) -> None:
    batch = data.stack([leaf, leaf])
    assert batch.dtype == dtype
    assert batch.shape == shape
    assert batch[1].tolist() == np.asarray(leaf).tolist()


@pytest.mark.parametrize("leaf", ["word", None, b"bytes", ["a", "b"], [[1], [2, 3]]])
def test_what_does_not_stack_becomes_a_list(leaf: Any) -> None:
    assert data.stack([leaf, leaf]) == [leaf, leaf]


def test_tensors_stack_to_a_tensor() -> None:
    batch = data.stack([pt.ones(2, device="numpy"), pt.zeros(2, device="numpy")])
    assert isinstance(batch, pt.Tensor)
    assert batch.tolist() == [[1, 1], [0, 0]]


def test_trees_keep_their_structure() -> None:
    batch = data.stack([Pair(1, ("a", {"z": 2.0})), Pair(3, ("b", {"z": 4.0}))])
    assert type(batch) is Pair
    assert batch.x.tolist() == [1, 3]
    assert batch.y[0] == ["a", "b"]
    assert batch.y[1]["z"].tolist() == [2.0, 4.0]


def test_dicts_may_name_their_parts_in_another_order() -> None:
    batch = data.stack([{"a": 1, "b": 2}, {"b": 20, "a": 10}])
    assert batch["a"].tolist() == [1, 10]
    assert batch["b"].tolist() == [2, 20]


@pytest.mark.parametrize(
    ("second", "said"),
    [
        ({"a": [1], "b": 0}, r"at 'a' \(item 1 .*got int64 \(1,\), expected int64 \(2,\)"),
        ({"a": [1, 2.5], "b": 0}, r"at 'a' .*got float32 \(2,\), expected int64 \(2,\)"),
        ({"a": "text", "b": 0}, r"at 'a' .*got str 'text', expected int64 \(2,\)"),
        ({"a": [1, 2], "b": None}, r"at 'b' .*got NoneType None, expected int64 \(\)"),
    ],
)
def test_ragged_items_are_named(second: Any, said: str) -> None:
    with pytest.raises(data.RaggedError, match=said) as caught:
        data.stack([{"a": [1, 2], "b": 1}, second])
    assert caught.value.place == 1


def test_the_hint_at_padding_is_for_what_can_be_padded() -> None:
    with pytest.raises(data.RaggedError, match=r"hint: DataLoader\(\.\.\., collate=data\.pad\(0\)"):
        data.stack([[1, 2], [1]])
    with pytest.raises(data.RaggedError) as caught:
        data.stack([[1, 2], [1.5, 2]])
    assert caught.value.hint is None
    items = data.of([{"price": 3}, {"price": 3.5}])
    with pytest.raises(data.RaggedError) as mixed:
        data.stack(list(items))
    assert mixed.value.hint is not None
    mapped = eval(mixed.value.hint, {"dataset": items})
    assert data.stack(list(mapped))["price"].tolist() == [3.0, 3.5]


@pytest.mark.parametrize("second", [{"a": 1}, {"a": 1, "c": 2}, [1, 2], 3])
def test_other_structures_are_refused(second: Any) -> None:
    with pytest.raises(pt.TreeError, match=r"item 1 of the batch has other parts.*expected a, b"):
        data.stack([{"a": 1, "b": 2}, second])


def test_nothing_is_no_batch() -> None:
    with pytest.raises(pt.ArgumentError, match="no items"):
        data.stack([])


def test_padding_fills_up_to_the_largest() -> None:
    batch = data.pad(-1, multiple=4)([np.ones((2, 1)), np.ones((5, 3))])
    assert batch.shape == (2, 8, 3)
    assert batch[0].sum() == 2 - 22
    assert batch[1].sum() == 15 - 9


def test_an_empty_list_is_padded_as_the_others() -> None:
    for items in ([[], [1.5, 2]], [[1.5, 2], []]):
        batch = data.pad(0)(items)
        assert batch.dtype == np.float32
        assert sorted(batch.tolist()) == [[0, 0], [1.5, 2]]
    assert data.pad(0)([[], []]).shape == (2, 0)


def test_only_named_paths_are_padded() -> None:
    collate = data.pad({"words": 0})
    assert collate([{"words": [1], "y": 1}, {"words": [], "y": 2}])["words"].tolist() == [[1], [0]]
    with pytest.raises(data.RaggedError, match="'y'"):
        collate([{"words": [1], "y": [1]}, {"words": [], "y": []}])


def test_an_unknown_path_and_multiples_below_one_are_refused() -> None:
    with pytest.raises(pt.ArgumentError, match="got word, expected words"):
        data.pad({"word": 0})([{"words": [1]}])
    with pytest.raises(pt.ArgumentError, match="multiple"):
        data.pad(0, multiple=0)


@pytest.mark.parametrize("value", [0.5, float("nan"), 256, -1])
def test_what_whole_numbers_cannot_hold_fills_none(value: float) -> None:
    items = [np.zeros(2, np.uint8), np.zeros(3, np.uint8)]
    with pytest.raises(pt.ArgumentError, match=r"the items hold no such value: .*expected uint8"):
        data.pad(value)(items)


def test_types_and_axes_are_not_padded() -> None:
    for second in ([[1]], [1.0]):
        with pytest.raises(data.RaggedError):
            data.pad(0)([[1, 2], second])


def test_memory_of_batches_is_used_again_when_nobody_has_them() -> None:
    item = np.zeros((400, 1000), np.uint8)
    items = data.of(range(40)).map(lambda x: {"image": item + x, "label": x})
    loader = data.DataLoader(items, 4)
    kept = [*loader]  # none of them may change
    assert [batch["image"][:, 0, 0].tolist() for batch in kept] == [
        b["label"].tolist() for b in kept
    ]
    assert len({batch["image"].ctypes.data for batch in kept}) == 10
    view = kept[3]["image"][1:, ::2, 5]
    del kept
    places = set()
    for batch in loader:
        assert (batch["image"] == batch["label"][:, None, None]).all()
        places.add(batch["image"].ctypes.data)
        del batch
    assert len(places) < 10
    assert (view == np.arange(13, 16)[:, None]).all()
    loader.close()


def test_whole_numbers_out_of_range_are_told() -> None:
    with pytest.raises(pt.ArgumentError, match=f"out of range: got {2**63}, expected int64"):
        data.stack([{"x": 1}, {"x": 2**63}])


@pytest.mark.parametrize(
    "items",
    [
        [(1, 2.0), (3, 4.0)],
        [{"a": np.ones(2), 7: "x"}, {7: "y", "a": np.zeros(2)}],
        [{"a": [1, 2], "b": None}, {"a": [3, 4], "b": None}],
        [(np.int64(1), True, b"x"), (np.int64(2), False, b"y")],
        [(1, (2, 3)), (4, (5, 6))],
        [(), ()],
        [{"same": (one := np.ones(3)), "again": one}] * 2,
    ],
)
def test_flat_items_stack_as_those_that_are_walked(items: list[Any]) -> None:
    flat, walked = data.stack(items), data.stack([{"whole": item} for item in items])
    assert type(flat) is type(walked["whole"])
    assert repr(flat) == repr(walked["whole"])
