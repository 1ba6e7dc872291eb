"""Entries by path: moves of branches, their order, and what many layouts cost."""

from __future__ import annotations

from typing import Any

import pytest

import phlox_nn as nn
import phlox_tensor as pt
from phlox_nn.loading import branches
from phlox_nn.loading.branches import Branches


def plain(branches: Branches) -> list[tuple[str, Any]]:
    return list(branches.entries().items())


def made(*paths: str) -> Branches:
    entries: Any = [(path, i) for i, path in enumerate(paths)]
    return Branches(entries)


def test_all_below_a_path_moves_and_the_order_stays() -> None:
    branches = made("a.x", "b", "a.y.z", "a")
    branches.move("a", "c.d")
    assert plain(branches) == [("c.d.x", 0), ("b", 1), ("c.d.y.z", 2), ("c.d", 3)]
    assert not branches.holds_below("a")
    assert branches.holds_below("c.d")


@pytest.mark.parametrize(
    ("before", "after", "want"),
    [
        ("a", "a.in", ["a.in.x", "b", "a.in.y"]),
        ("", "all", ["all.a.x", "all.b", "all.a.y"]),
        ("a", "", ["x", "b", "y"]),
        ("c", "d", ["a.x", "b", "a.y"]),
        ("a.x", "a.x", ["a.x", "b", "a.y"]),
    ],
)
def test_moves_into_and_out_of_themselves(before: str, after: str, want: list[str]) -> None:
    branches = made("a.x", "b", "a.y")
    branches.move(before, after)
    assert [path for path, _ in plain(branches)] == want


def test_of_two_entries_at_one_path_the_later_one_stays() -> None:
    branches = made("a.x", "b.x", "a.y")
    branches.move("a", "b")
    assert plain(branches) == [("b.x", 1), ("b.y", 2)]


def test_entries_are_taken_out_and_put_in_their_place() -> None:
    branches, none = made("a", "b", "c.d."), made()
    taken: Any = branches.pop("b")
    assert taken == (1, (1,))
    assert branches.pop("b") is None
    assert branches.get("b") is None
    for i in range(2):
        branches.add(f"b{i}", taken[0], (*taken[1], i))
    branches.add("e", taken[0])
    assert [path for path, _ in plain(branches)] == ["a", "b0", "b1", "c.d.", "e"]
    assert plain(none) == []


def test_a_layout_looks_at_each_entry_a_few_times(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever the number of modules: it was once for each of them."""
    looked = [0]
    names = branches._names

    def counted(path: str) -> list[str]:
        looked[0] += 1
        return names(path)

    def steps(layers: int) -> int:
        attention = [nn.MultiHeadAttention(4, 2) for _ in range(layers)]
        model = nn.Sequential(*attention).to_device(pt.Numpy())
        record = model.into_record(layout="pytorch")
        looked[0] = 0
        again = model.load_record(record, layout="pytorch").into_record(layout="pytorch")
        assert list(again) == list(record)
        return looked[0]

    monkeypatch.setattr(branches, "_names", counted)
    few, many = steps(2), steps(20)
    assert many < 12 * few
