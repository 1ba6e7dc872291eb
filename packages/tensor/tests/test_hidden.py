"""What containers and registered types keep beside their parts: it goes along, or is refused."""

from __future__ import annotations

from collections import OrderedDict, defaultdict, deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest

import phlox_tensor as pt
from phlox_tensor import TreeError, tree


class Row(list[Any]):
    label: Any


class Slotted(list[Any]):
    __slots__ = ("label",)


class Names(dict[str, Any]):
    label: Any


class Ordered(OrderedDict[str, Any]):
    label: Any


class Counting(defaultdict[str, Any]):
    label: Any

    def __init__(self, *, own: str) -> None:
        """Take other arguments than a defaultdict."""
        super().__init__(list)
        self.label = own


class Last(deque[Any]):
    label: Any


class Pair(tuple[Any, ...]):
    label: Any


@dataclass
class Point:
    x: Any


def labelled(container: Any, label: object = "kept") -> Any:
    container.label = label
    return container


def counting() -> Counting:
    made = Counting(own="kept")
    made["a"] = 1.0
    return made


CONTAINERS: dict[str, Callable[[], Any]] = {
    "dataclass": lambda: labelled(Point(1.0)),
    "defaultdict": counting,
    "deque": lambda: labelled(Last([1.0], 3)),
    "dict": lambda: labelled(Names(a=1.0)),
    "list": lambda: labelled(Row([1.0])),
    "list with slots": lambda: labelled(Slotted([1.0])),
    "ordered": lambda: labelled(Ordered(a=1.0)),
    "plain ordered": lambda: labelled(OrderedDict(a=1.0)),
    "tuple": lambda: labelled(Pair([1.0])),
}


@pytest.mark.parametrize("make", CONTAINERS.values(), ids=CONTAINERS)
def test_attributes_of_containers_go_along(make: Callable[[], Any]) -> None:
    given = make()
    made = tree.map(lambda x: x + 1, given)
    assert type(made) is type(given)
    assert tree.leaves(made) == [2.0]
    assert made.label == "kept"
    assert getattr(made, "maxlen", None) == getattr(given, "maxlen", None)
    assert getattr(made, "default_factory", None) is getattr(given, "default_factory", None)


@pytest.mark.parametrize("make", CONTAINERS.values(), ids=CONTAINERS)
def test_a_tensor_in_an_attribute_of_a_container_is_refused(make: Callable[[], Any]) -> None:
    given = labelled(make(), {"deep": [pt.ones(2)]})
    for call in (tree.flatten, tree.leaves_with_paths, lambda x: tree.map(lambda y: y, x)):
        with pytest.raises(TreeError, match=r"label of a \w+ hides a Tensor(.|\n)*hint: "):
            call(given)


class Box:
    def __init__(self, a: Any, b: Any) -> None:
        self.a, self.b = a, b


class Spread:
    """Gives the tensors of a list by names of their own, and one as a constant."""

    __slots__ = ("constant", "parts")

    def __init__(self, parts: list[Any], constant: Any) -> None:
        self.parts, self.constant = parts, constant


@pytest.fixture(scope="module", autouse=True)
def registered() -> None:
    tree.register(Box, lambda x: ({"a": x.a}, None), lambda c, _: Box(c["a"], None))
    tree.register(
        Spread,
        lambda x: ({f"part{i}": part for i, part in enumerate(x.parts)}, x.constant),
        lambda c, constant: Spread(list(c.values()), constant),
    )


@pytest.mark.parametrize(
    "hidden",
    [
        lambda: pt.ones(2),
        lambda: [pt.ones(2)],
        lambda: {"a": (pt.ones(2),)},
        lambda: Box(pt.ones(2), 1),
    ],
    ids=["tensor", "list", "dict", "registered"],
)
def test_a_registered_type_that_leaves_a_tensor_out_is_refused(hidden: Callable[[], Any]) -> None:
    held = hidden()
    for call in (tree.flatten, tree.leaves_with_paths, tree.children):
        with pytest.raises(TreeError, match=r"b of a Box hides a Tensor(.|\n)*hint: .*\"b\": x.b"):
            call(Box(1.0, held))
    assert tree.leaves(Box(1.0, "no tensor")) == [1.0]


def test_a_tensor_counts_as_given_wherever_flatten_puts_it() -> None:
    one, two, constant = pt.ones(1), pt.ones(2), pt.ones(3)
    made = tree.map(lambda x: x * 2, Spread([one, two], constant))
    assert [x.tolist() for x in made.parts] == [[2.0], [2.0, 2.0]]
    assert made.constant is constant
    both = pt.ones(1)
    assert tree.leaves(Box(both, [both]))[0] is both


def test_what_refers_to_itself_is_looked_through_once() -> None:
    box = Box(pt.ones(1), None)
    box.b = box
    assert tree.leaves(box)[0] is box.a


def test_registered_values_inside_each_other_are_looked_through_once() -> None:
    class Note:
        pass

    counts = {"flatten": 0}

    class Level:
        def __init__(self, inner: Any) -> None:
            self.inner, self.note = inner, Note()

    def taken(level: Level) -> Any:
        counts["flatten"] += 1
        return ({"inner": level.inner}, level.note)

    tree.register(Level, taken, lambda parts, _: Level(parts["inner"]))
    for depth in (50, 200):
        made: Any = pt.ones(1)
        for _ in range(depth):
            made = Level([made])
        counts["flatten"] = 0
        assert len(tree.leaves(made)) == 1
        assert counts["flatten"] == depth


def test_functions_of_a_registered_type_keep_what_they_promise() -> None:
    class Odd:
        def __init__(self, flat: Any, made: Any) -> None:
            self.flat, self.made = flat, made

    tree.register(Odd, lambda x: x.flat, lambda parts, made: made)
    flats = ({"a": 1}, 3, None, [("a", 1), ("b", 2)], ({"a": 1},), ("text", None), (3, None))
    for flat in flats:
        with pytest.raises(TreeError, match=r"flatten of Odd gives no pair: got a \w+(.|\n)*hint"):
            tree.flatten(Odd(flat, None))
    for made, kind in ((None, "NoneType"), ({"a": 1}, "dict")):
        with pytest.raises(TreeError, match=f"rebuild of Odd gives something else: got a {kind}"):
            tree.map(lambda x: x, Odd(([1], made), None))
    fine = Odd(([1], Odd((), None)), None)
    assert tree.map(lambda x: x, fine) is fine.flat[1]
