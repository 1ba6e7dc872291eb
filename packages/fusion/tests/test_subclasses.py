"""What classes made from Python's own types add to them is followed from call to call."""

from __future__ import annotations

import enum
from collections import OrderedDict, UserDict, deque
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pytest

import phlox_tensor as pt
from phlox_fusion import compile, kernel
from phlox_fusion.trees.static import same_static
from phlox_tensor import Tensor

ONE = pt.ones(1)
RATE = 1.0


class Asked:
    """What each class below has."""

    __slots__ = ()

    def rate(self) -> float:
        return RATE


class Number(Asked, enum.IntEnum):
    ONE = 1


class Name(Asked, enum.StrEnum):
    ONE = "one"


class Text(Asked, str): ...


class Bytes(Asked, bytes): ...


class Share(Asked, float): ...


class Row(Asked, list[Any]): ...


class Table(Asked, dict[Any, Any]): ...


class Ordered(Asked, OrderedDict[Any, Any]): ...


class Wrapped(Asked, UserDict[Any, Any]): ...


class Line(Asked, deque[Any]): ...


class Members(Asked, set[Any]): ...


class Fixed(Asked, frozenset[Any]): ...


class Pair(Asked, tuple[Any, ...]): ...


class Array(Asked, np.ndarray[Any, Any]): ...


class Point(NamedTuple):
    x: float

    def rate(self) -> float:
        return RATE


class Defaults(dict[str, float]):
    def __init__(self) -> None:
        self.fallback = 1.0

    def __missing__(self, key: str) -> float:
        return self.fallback


WITH_ATTRIBUTES = (
    Number.ONE,
    Name.ONE,
    Text("a"),
    Bytes(b"a"),
    Share(2.0),
    Row([1]),
    Table(a=1),
    Ordered(a=1),
    Wrapped(a=1),
    Line([1]),
    Members({1}),
    Fixed({1}),
    Pair((1,)),
    np.ones(2, np.float32).view(Array),
)


def set_rate(value: float) -> None:
    global RATE  # noqa: PLW0603 - what the test is about
    RATE = value


def followed(fast: Any, args: tuple[Any, ...], change: Callable[[float], Any]) -> None:
    for value in (1.0, 3.0, 1.0, 3.0):
        change(value)
        for _ in range(3):
            assert fast(ONE, *args).item() == value
    change(1.0)


@pytest.mark.parametrize(
    "held", [*WITH_ATTRIBUTES, Point(1.0)], ids=lambda held: type(held).__name__
)
def test_methods_of_such_classes_are_followed(held: Any) -> None:
    followed(compile(lambda x: x * held.rate()), (), set_rate)
    followed(kernel(lambda x: x * held.rate()), (), set_rate)
    followed(compile(lambda x, inside=[held]: x * inside[0].rate()), (), set_rate)
    if not isinstance(held, np.ndarray):  # which is no argument
        followed(compile(lambda x, held: x * held.rate()), (held,), set_rate)


@pytest.mark.parametrize("held", WITH_ATTRIBUTES, ids=lambda held: type(held).__name__)
def test_attributes_of_such_objects_are_followed(held: Any) -> None:
    def change(value: float) -> None:
        held.scale = value

    change(1.0)
    followed(compile(lambda x: x * held.scale), (), change)
    if not isinstance(held, np.ndarray):
        followed(compile(lambda x, held: x * held.scale), (held,), change)


def member(x: Tensor) -> Tensor:
    return x * BOUND.rate()


BOUND = Number.ONE


def test_a_member_that_a_global_name_stands_for_is_followed() -> None:
    followed(compile(member), (), set_rate)


def test_what_a_dict_gives_for_missing_keys_is_followed() -> None:
    defaults = Defaults()
    fast = compile(lambda x: x * defaults["rate"])
    followed(fast, (), lambda value: setattr(defaults, "fallback", value))


def test_constants_are_told_apart_by_what_containers_in_them_have_beside_their_parts() -> None:
    def row(scale: float, *parts: Any) -> Row:
        made = Row(parts)
        made.scale = scale  # type: ignore[attr-defined]
        return made

    assert same_static(row(1.0, {"a": [1, 2]}), row(1.0, {"a": [1, 2]}))
    assert not same_static(row(1.0), row(2.0))
    assert not same_static(row(1.0, [1]), row(1.0, [2]))
    assert not same_static([row(1.0), row(1.0)], [row(1.0), row(2.0)])
    assert not same_static(Row([1]), [1])
    many = [OrderedDict(a=i) for i in range(50)]
    for at in range(50):  # what is made to compare them is not taken for one another
        other = [OrderedDict(a=i) for i in range(50)]
        assert same_static(many, other)
        other[at]["a"] = -1
        assert not same_static(many, other)
    endless: list[Any] = [1]
    endless.append(endless)
    alike: list[Any] = [1]
    alike.append(alike)
    assert same_static(endless, alike)
