"""Sums over leaves in one order, and batches in parts."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from phlox_tensor import ArgumentError, asarray
from phlox_tensor.groups import TreeSum
from phlox_train.step.batches import parts_of, placed, rows_of


@given(st.lists(st.booleans(), min_size=1, max_size=40).filter(any))
def test_leaves_are_added_in_pairs_of_pairs(there: list[bool]) -> None:
    total: TreeSum[Any] = TreeSum()
    for number, here in enumerate(there):
        total.add(Added(str(number)) if here else None)
    assert total.value().text == expected(there, 0, len(there))


class Added:
    """A leaf, or a sum of them with its brackets."""

    def __init__(self, text: str) -> None:
        self.text = text

    def __add__(self, other: Added) -> Added:
        return Added(f"({self.text}+{other.text})")


def expected(there: list[bool], low: int, high: int) -> str:
    """The tree by definition: the left branch is the largest power of two below the count."""
    count = high - low
    if count == 1:
        return str(low) if there[low] else ""
    middle = low + (1 << (count - 1).bit_length() - 1)
    left, right = expected(there, low, middle), expected(there, middle, high)
    return f"({left}+{right})" if left and right else left or right


@given(st.integers(1, 30), st.integers(1, 12))
def test_parts_are_all_rows_once(rows: int, parts: int) -> None:
    batch = {
        "x": np.arange(rows),
        "t": asarray(np.arange(rows)),
        "names": [f"{i}" for i in range(rows)],
        "pair": (np.arange(2 * rows).reshape(rows, 2), 3),
        "scale": np.float32(2.0),
    }
    cut = parts_of(batch, parts)
    assert len(cut) == parts
    found = [part for part in cut if part is not None]
    assert [i for part in found for i in part["x"].tolist()] == list(range(rows))
    assert [i for part in found for i in part["t"].tolist()] == list(range(rows))
    assert [name for part in found for name in part["names"]] == batch["names"]
    assert [rows_of({"x": part["x"]}) for part in found] == [len(part["names"]) for part in found]
    assert all(part["pair"][1] == 3 and part["pair"][0].shape[1] == 2 for part in found)
    assert all(part["scale"] == 2.0 for part in found)


def test_batches_whose_examples_cannot_be_counted_are_refused() -> None:
    for batch in ({"x": 1.0}, {"x": np.ones(2), "y": np.ones(3)}):
        with pytest.raises(ArgumentError, match="cannot be counted"):
            rows_of(batch)


def test_arrays_come_to_the_device_and_all_else_stays() -> None:
    device = asarray(1.0).device
    batch = {"x": np.ones(2, np.float32), "names": ["a", "b"], "t": asarray(1.0)}
    found = placed(batch, device)
    assert found["x"].device is device
    assert found["names"] == ["a", "b"]
    assert found["t"] is batch["t"]
    again = {"x": found["x"]}
    assert placed(again, device) is again
