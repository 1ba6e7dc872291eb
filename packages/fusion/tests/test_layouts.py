"""Forms of arguments are one where nothing tells them apart, and others where anything does."""

from __future__ import annotations

from enum import StrEnum
from typing import Any

import numpy as np
import pytest

import phlox_tensor as pt
from phlox_fusion import compile
from phlox_fusion.trees import layout as _layout
from phlox_fusion.trees import static as _static
from phlox_tensor import tree

ONE = pt.ones(1)


def test_layouts_are_one_object_where_they_are_alike() -> None:
    first, _, _ = _layout.flatten({"a": pt.ones(2), "b": [1.0, "x"]})
    again, _, _ = _layout.flatten({"a": pt.zeros(2), "b": [2.0, "x"]})
    other, _, _ = _layout.flatten({"a": pt.zeros(2), "b": [2.0, "y"]})
    assert first is again
    assert first is not other
    assert tree.leaves(first.build([pt.ones(2).primitive, 3.0]))[1:] == [3.0, "x"]


def test_recorded_calls_take_arguments_apart_once() -> None:
    class Pair:
        def __init__(self, a: pt.Tensor, b: pt.Tensor) -> None:
            self.parts = a, b

    taken: list[Pair] = []

    def flatten(pair: Pair) -> tuple[tuple[pt.Tensor, ...], None]:
        taken.append(pair)
        return pair.parts, None

    tree.register(Pair, flatten, lambda parts, _: Pair(*parts), static=lambda rest: rest)
    fast = compile(lambda pair: pair.parts[0] * pair.parts[1])
    pair = Pair(pt.ones(2), pt.ones(2) * 3)
    assert [fast(pair).tolist() for _ in range(3)] == [[3.0, 3.0]] * 3
    assert [fast(Pair(*pair.parts)).tolist() for _ in range(2)] == [[3.0, 3.0]] * 2
    assert len(taken) == 3  # three objects, of which two runs were recorded


def test_layouts_of_one_hash_are_told_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    """A hash says where to look, and nothing more."""
    monkeypatch.setattr(_layout, "_hashable", lambda part: 0)
    fast = compile(lambda given: given["x"] * given.get("scale", 2.0))
    wide, narrow = pt.ones((2, 3)), pt.ones(3)
    for _ in range(4):
        assert fast({"x": wide}).shape == (2, 3)
        assert fast({"x": narrow}).tolist() == [2.0] * 3
        assert fast({"scale": 5.0, "x": narrow}).tolist() == [5.0] * 3
    assert fast.versions == 3


def test_statics_are_one_by_their_parts() -> None:
    inside: dict[str, Any] = {"of": 1}
    inside["itself"] = inside
    other: dict[str, Any] = {"of": 1}
    other["itself"] = other
    equal = [((1, ("a", 2.0)), (1, ("a", 2.0))), ({"a": (1,)}, {"a": (1,)}), (inside, other)]
    apart: list[tuple[Any, Any]] = [
        ((1,), (1.0,)),
        ((1,), (True,)),
        ((1, 2), (1,)),
        ((0.0,), (-0.0,)),
        ({"a": 1, "b": 2}, {"b": 2, "a": 1}),
        ({"a": [1]}, {"a": [2]}),
        (inside, {"of": 1, "itself": {"of": 1, "itself": 2}}),
        ((np.ones(1),), (np.ones(1),)),
    ]
    assert all(_static.same_static(a, b) for a, b in equal)
    assert not any(_static.same_static(a, b) for a, b in apart)


def test_keys_that_are_equal_are_told_apart_by_their_type() -> None:
    class Name(StrEnum):
        A = "a"

    alike: tuple[tuple[Any, ...], ...] = (
        (1, True, 1.0),
        ((1,), (True,)),
        (0.0, -0.0),
        ("a", Name.A),
        (frozenset({1}), frozenset({True})),
    )
    for keys in alike:
        given = compile(lambda d: {key: part * 2 for key, part in d.items()})
        known = compile(lambda x, held: dict.fromkeys(held, x * 2))
        for _ in range(3):
            for key in keys:
                for out in (given({key: ONE}), known(ONE, {key: None})):
                    assert repr([*out]) == repr([key])
        assert given.versions == len(keys)


def test_members_of_a_set_that_are_equal_are_told_apart_by_their_type() -> None:
    members: set[Any] = {1}
    fast = compile(lambda x: x * (1.0 if type(next(iter(members))) is int else 2.0))
    for member, out in ((1, 1.0), (True, 2.0), (1, 1.0)):
        members.clear()
        members.add(member)
        assert [fast(ONE).item() for _ in range(3)] == [out] * 3
