"""Objects whose own ``==`` leaves something out are never taken for each other."""

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from pathlib import PurePosixPath
from typing import Any

import pytest

import phlox_tensor as pt
from phlox_fusion import compile


class Layer:
    def __init__(self, name: Any, rate: float) -> None:
        self.name, self.rate = name, rate

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Layer) and self.name == other.name

    def __hash__(self) -> int:
        return hash(self.name)


class Slotted:
    __slots__ = ("name", "rate")
    __init__: Any = Layer.__init__

    def __eq__(self, other: object) -> bool:
        return True

    def __hash__(self) -> int:
        return 0


class Name(str):
    rate = 1.0


def named(rate: float) -> Name:
    made = Name("a")
    made.rate = rate
    return made


@dataclass(frozen=True)
class Held:
    layer: Any


HOLDERS: dict[str, tuple[Callable[[float], Any], Callable[[Any], float]]] = {
    "argument": (lambda r: Layer("a", r), lambda g: g.rate),
    "slots": (lambda r: Slotted("a", r), lambda g: g.rate),
    "text": (named, lambda g: g.rate),
    "list": (lambda r: [Layer("a", r)], lambda g: g[0].rate),
    "dict": (lambda r: {"a": Layer("a", r)}, lambda g: g["a"].rate),
    "key": (lambda r: {Layer("a", r): 1}, lambda g: next(iter(g)).rate),
    "set": (lambda r: {Layer("a", r)}, lambda g: next(iter(g)).rate),
    "frozenset": (lambda r: frozenset({Layer("a", r)}), lambda g: next(iter(g)).rate),
    "tuple in a set": (lambda r: {(Layer("a", r),)}, lambda g: next(iter(g))[0].rate),
    "dataclass": (lambda r: Held(Layer("a", r)), lambda g: g.layer.rate),
    "inside": (lambda r: Layer(Layer("a", r), 0.0), lambda g: g.name.rate),
}


@pytest.mark.parametrize("holder", HOLDERS)
def test_other_arguments_that_are_equal_are_other_arguments(holder: str) -> None:
    make, rate = HOLDERS[holder]
    scaled = compile(lambda x, given: x * rate(given))
    for r in (1.0, 1.0, 1.0, 2.0, 2.0, 2.0, 1.0, 3.0):
        assert scaled(pt.ones(1), make(r)).tolist() == [r]


given: Any = None


@pytest.mark.parametrize("holder", HOLDERS)
def test_other_values_outside_that_are_equal_are_others(
    holder: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    make, rate = HOLDERS[holder]
    scaled = compile(lambda x: x * rate(given))
    for r in (1.0, 1.0, 1.0, 2.0, 2.0, 2.0, 1.0, 3.0):
        monkeypatch.setitem(globals(), "given", make(r))
        assert scaled(pt.ones(1)).tolist() == [r]


@pytest.mark.parametrize("holder", ["set", "key", "list"])
def test_a_container_whose_equal_part_is_replaced_is_another_one(holder: str) -> None:
    make, rate = HOLDERS[holder]
    kept = make(1.0)
    scaled = compile(lambda x: x * rate(kept))
    for r in (1.0, 1.0, 1.0, 2.0, 2.0, 3.0):
        kept.clear()
        kept.extend(make(r)) if isinstance(kept, list) else kept.update(make(r))
        assert scaled(pt.ones(1)).tolist() == [r]


@pytest.mark.parametrize(
    "make",
    [
        lambda: Layer("a", 1.0),
        lambda: Slotted("a", 1.0),
        lambda: Fraction(1, 3),
        lambda: PurePosixPath("a/b"),
        lambda: (1j, b"a", range(3)),
        lambda: frozenset({1, "a"}),
        lambda: Held(Layer("a", 1.0)),
    ],
)
def test_objects_that_are_alike_share_a_version(make: Any) -> None:
    doubled = compile(lambda x, given: x * 2)
    for _ in range(4):
        doubled(pt.ones(1), make())
    assert doubled.versions == 1


@pytest.mark.parametrize("pair", [(1, 1.0), (1, True), (0.0, -0.0)])
def test_numbers_that_are_equal_and_not_the_same_are_others(pair: Any) -> None:
    told = compile(lambda x, given: x * (2 if repr(next(iter(given))) == repr(pair[0]) else 3))
    for one in (*pair, *pair):
        expected = 2 if one is pair[0] else 3
        assert told(pt.ones(1), frozenset({one})).tolist() == [expected]
        assert told(pt.ones(1), frozenset({one})).tolist() == [expected]
