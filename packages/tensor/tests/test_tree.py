"""Trees: what comes apart, in which order, and what is refused."""

from __future__ import annotations

from collections import OrderedDict, defaultdict, deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import pytest

from phlox_tensor import ArgumentError, Tensor, TreeError, ones, tree
from phlox_tensor._tree import walk as _tree


class Point(NamedTuple):
    """A named tuple."""

    x: Any
    y: Any


@dataclass(frozen=True)
class Pair:
    """A dataclass that refuses to be made of anything but numbers."""

    low: Any
    high: Any
    made: str = field(init=False, default="here")

    def __post_init__(self) -> None:
        """Check, once."""
        assert isinstance(self.low, int)


@dataclass(slots=True)
class Slotted:
    """A dataclass without a dict."""

    inner: Any


class Plain:
    """An object of nobody's class."""

    def __init__(self, part: Any) -> None:
        """Hold something."""
        self.part = part


class Items:
    """A container that only iterates."""

    def __init__(self, *parts: Any) -> None:
        """Hold parts out of sight."""
        self._of: Callable[[], Iterator[Any]] = lambda: iter(parts)

    def __iter__(self) -> Iterator[Any]:
        return self._of()

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def __contains__(self, item: object) -> bool:
        return any(part is item for part in self)


def everything() -> Any:
    """One of each known container."""
    return {
        "list": [1, [2]],
        "tuple": (3, ()),
        "named": Point(4, [5]),
        "default": defaultdict(list, a=6),
        "ordered": OrderedDict(b=7),
        "deque": deque([8, 9], maxlen=3),
        "data": Pair(10, 11),
        "slots": Slotted(12),
    }


def test_all_known_containers_come_apart_and_together() -> None:
    given = everything()
    leaves, structure = tree.flatten(given)
    assert leaves == [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, "here", 12]
    made = structure.rebuild(leaves)
    assert made == given
    assert [type(v) for v in made.values()] == [type(v) for v in given.values()]
    assert made["default"]["new"] == []
    assert made["deque"].maxlen == 3
    assert tree.rebuild(structure, leaves) == given


def test_paths_name_the_way_from_the_root() -> None:
    paths = [path for path, _ in tree.leaves_with_paths(everything())]
    assert paths[:5] == ["list.0", "list.1.0", "tuple.0", "named.x", "named.y.0"]
    assert paths[-4:] == ["data.low", "data.high", "data.made", "slots.inner"]
    assert tree.leaves_with_paths(5) == [("", 5)]


def test_nodes_come_outer_before_inner() -> None:
    nodes = list(tree.nodes_with_paths({"a": [1, (2,)]}))
    assert [path for path, _ in nodes] == ["", "a", "a.1"]


def test_map_goes_by_names_not_by_order() -> None:
    made = tree.map(lambda *x: x, {"a": 1, "b": 2}, {"b": 20, "a": 10})
    assert made == {"a": (1, 10), "b": (2, 20)}
    assert tree.map(lambda x: x, None) is None


def test_a_dataclass_is_not_made_again_by_its_constructor() -> None:
    made = tree.map(str, Pair(1, 2))
    assert (made.low, made.high, made.made) == ("1", "2", "here")


@pytest.mark.parametrize(
    ("other", "path"),
    [
        ({"a": [1, 2]}, "the root"),
        ({"a": [1, 2, 3], "b": 0}, "a"),
        ({"a": (1, 2), "b": 0}, "a"),
        ({"a": [1, [2]], "b": 0}, "a.1"),
        ({"a": [1, 2], "b": Point(0, 0)}, "b"),
    ],
)
def test_the_error_names_the_path_where_structures_part(other: Any, path: str) -> None:
    with pytest.raises(TreeError, match=f"structures part at {path}:"):
        tree.map(lambda x, _: x, {"a": [1, 2], "b": 3}, other)


def test_another_number_of_leaves_is_refused() -> None:
    _, structure = tree.flatten([1, 2])
    with pytest.raises(TreeError, match="number of leaves: got 3, expected 2"):
        structure.rebuild([1, 2, 3])


def test_structures_compare_by_types_and_names() -> None:
    structures = [tree.flatten(t)[1] for t in ([1, 2], ["a", None], (1, 2), [1, [2]])]
    assert structures[0] == structures[1]
    assert hash(structures[0]) == hash(structures[1])
    assert structures[0] not in structures[2:]
    assert repr(structures[3]) == "Structure([*, [*]])"


@pytest.mark.parametrize(
    "hiding",
    [
        {ones(2)},
        {(1, ones(2))},
        Plain(ones(2)),
        Plain([ones(2)]),
        Items(ones(2)),
        {1: ones(2)}.values(),
    ],
    ids=["set", "nested", "object", "list in object", "iterable", "view"],
)
def test_an_unknown_container_with_a_tensor_is_refused(hiding: Any) -> None:
    with pytest.raises(TreeError, match=r"unknown type holds a tensor(.|\n)*tree.register"):
        tree.flatten([hiding])
    with pytest.raises(TreeError, match=r"holds a tensor at a\.0"):
        tree.leaves_with_paths({"a": [hiding]})


@pytest.mark.parametrize(
    "leaf",
    [{1, 2}, Plain(3), range(3), np.ones(3), "text", None, len, Items(), iter([ones(2)]), ones],
    ids=lambda leaf: type(leaf).__name__,
)
def test_anything_else_is_a_leaf(leaf: Any) -> None:
    assert tree.leaves([leaf])[0] is leaf


def test_a_tensor_is_a_leaf_at_once() -> None:
    x = ones(2)
    leaves, structure = tree.flatten(x)
    assert leaves == [x]
    assert isinstance(structure.rebuild([x]), Tensor)


def test_a_registered_type_comes_apart_and_so_do_its_subclasses() -> None:
    class Box:
        def __init__(self, low: Any, label: str) -> None:
            self.low, self.label = low, label

    class Large(Box):
        pass

    tree.register(
        Box,
        lambda box: ({"low": box.low}, (type(box), box.label)),
        lambda parts, rest: rest[0](parts["low"], rest[1]),
    )
    made = tree.map(lambda x: x + 1, [Large(1, "a")])[0]
    assert (type(made), made.low, made.label) == (Large, 2, "a")
    assert tree.leaves_with_paths({"box": Box([1], "")}) == [("box.low.0", 1)]
    assert tree.leaves([Box(1, "")], leaf=Box)[0].low == 1
    with pytest.raises(ArgumentError, match="registered already"):
        tree.register(Box, lambda _: ([], None), lambda *_: None)
    with pytest.raises(TreeError, match="unknown type"):
        tree.leaves(Plain(Box(1, "")))


@pytest.mark.parametrize(
    ("cls", "functions", "text"),
    [
        (list, (len, len), "registered already: got list"),
        (3, (len, len), "not a class: got 3"),
        (set, (3, len), "flatten is no function: got 3"),
        (set, (len, None), "rebuild is no function: got None"),
    ],
)
def test_what_cannot_be_registered_leaves_trees_as_they_are(
    cls: Any, functions: tuple[Any, Any], text: str
) -> None:
    with pytest.raises(ArgumentError, match=text):
        tree.register(cls, *functions)
    assert tree.leaves([1, {2}]) == [1, {2}]


def test_depth_costs_no_frames() -> None:
    deep: Any = 1
    for _ in range(20_000):
        deep = [deep]
    leaves, structure = tree.flatten(deep)
    assert leaves == [1]
    again = structure.rebuild([2])
    assert structure.leaves_of(again) == [2]
    assert tree.leaves_with_paths(deep)[0][0].count("0") == 20_000
    while isinstance(deep, list):  # what would recurse is the interpreter's own release
        deep, again = deep[0], again[0]


def test_a_tree_that_contains_itself_is_refused() -> None:
    loop: list[Any] = [1]
    loop.append({"again": loop})
    with pytest.raises(TreeError, match="contains itself"):
        tree.flatten(loop)
    with pytest.raises(TreeError, match=r"contains itself at 1\.again"):
        tree.leaves_with_paths(loop)
    shared = [1]
    assert tree.leaves([shared, shared]) == [1, 1]


def test_a_type_may_be_registered_as_a_leaf() -> None:
    class Closed(list[int]):
        pass

    assert not tree.is_closed(Closed)
    tree.register_leaf(Closed)
    assert tree.is_closed(Closed)
    assert tree.is_closed(type("Further", (Closed,), {}))
    value = Closed([1, 2])
    assert tree.leaves([value]) == [value]
    assert tree.is_plain(value)
    assert not tree.is_node(value)
    assert tree.children({"a": value}) == [("a", value)]


class Cell:
    """A container that is one part wherever it stands."""

    def __init__(self, value: Any) -> None:
        """Hold a value."""
        self.value = value


tree.register(Cell, lambda cell: ([cell.value], None), lambda parts, _: Cell(*parts), shared=True)


def test_a_shared_node_comes_once_and_is_one_object_again() -> None:
    cell = Cell(1)
    nested = {"a": cell, "b": [cell, Cell(5)], "c": cell}
    assert tree.leaves(nested) == [1, 5]
    assert tree.leaves_with_paths(nested) == [("a.0", 1), ("b.1.0", 5)]
    after = tree.map(lambda x: x + 1, nested)
    assert after["a"] is after["b"][0] is after["c"]
    assert (after["a"].value, after["b"][1].value) == (2, 6)
    assert tree.flatten(nested)[1] == tree.flatten(after)[1]
    assert tree.map(lambda x, y: x + y, nested, after)["c"].value == 3
    other = {"a": Cell(1), "b": [Cell(1), Cell(5)], "c": Cell(1)}
    assert tree.flatten(nested)[1] != tree.flatten(other)[1]
    with pytest.raises(TreeError, match="another object"):
        tree.map(lambda x, y: x + y, nested, other)


def test_looking_for_cycles_costs_no_more_than_the_walk(monkeypatch: pytest.MonkeyPatch) -> None:
    looks: list[int] = []
    monkeypatch.setattr(_tree, "_refuse_cycles", lambda value, leaf: looks.append(1))
    deep: Any = 1.0
    for _ in range(100_000):
        deep = [deep]
    assert tree.leaves(deep) == [1.0]
    assert 0 < len(looks) < 8
