"""Trees, nested containers whose leaves are anything else: taken apart and rebuilt.

Nothing here recurses: a structure is a list of steps in the order in which parts are complete, so
depth costs no frames.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final, NamedTuple, final

from .._errors.classes import TreeError
from .._values.tensor import Tensor
from .containers import Node
from .nodes import KINDS, OPAQUE, is_node, kind_of, nothing_hidden

Types = type | tuple[type, ...]


class _Step(NamedTuple):
    """A part of a structure that is complete once its ``size`` children are."""

    type: type
    node: Node
    keys: tuple[Any, ...] | None  # None: the children are numbered
    size: int
    rest: Any


class _Again(NamedTuple):
    """A part of a structure that is the very object which the step of this number made."""

    step: int


class _End(NamedTuple):
    """On a stack of work: the end of what is inside of a value, which may come again."""

    value: Any


def children(value: Any) -> list[tuple[str, Any]]:
    """Return the parts of a value by name; none for a leaf."""
    kind = kind_of(type(value))
    if type(kind) is not Node:
        return []
    found, _ = kind.flatten(value)
    pairs = found.items() if isinstance(found, dict) else enumerate(found)
    return [(str(name), part) for name, part in pairs]


# Taking apart


@final
class Structure:
    """What is left of a tree without its leaves.

    Structures are equal when their nodes have the same types and names; constants inside of
    registered values are not compared.
    """

    __slots__ = ("_count", "_steps")

    def __init__(self, steps: list[_Step | _Again | None], count: int) -> None:
        """Keep the steps of ``flatten``; None stands for a leaf, of which there are ``count``."""
        self._steps, self._count = steps, count

    def __len__(self) -> int:
        return self._count

    @property
    def shares(self) -> bool:
        """Whether one object stands at several places, and counts as one part."""
        return any(type(step) is _Again for step in self._steps)

    def holds(self, types: Types) -> bool:
        """Whether some part that comes apart is of these types."""
        return any(isinstance(step, _Step) and issubclass(step.type, types) for step in self._steps)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Structure):
            return NotImplemented
        return self._shape() == other._shape()

    def __hash__(self) -> int:
        return hash(tuple(self._shape()))

    def _shape(self) -> list[Any]:
        return [(s.type, s.keys, s.size) if isinstance(s, _Step) else s for s in self._steps]

    def __repr__(self) -> str:
        return f"Structure({self.rebuild([_Star()] * len(self))!r})"

    def rebuild(self, leaves: Sequence[Any]) -> Any:
        """Return the tree with other leaves.

        Raises:
            TreeError: when there are more or fewer leaves than the tree has.
        """
        if len(leaves) != (own := self._count):
            raise TreeError("tree", "another number of leaves", got=len(leaves), expected=own)
        rest = iter(leaves)
        done: list[Any] = []
        shared: dict[int, Any] = {}
        for number, step in enumerate(self._steps):
            if step is None:
                done.append(next(rest))
                continue
            if isinstance(step, _Again):
                done.append(shared[step.step])
                continue
            _, node, keys, size, constants = step
            start = len(done) - size
            children: Any = done[start:]
            del done[start:]
            if keys is not None:
                children = dict(zip(keys, children))  # noqa: B905 - as many; asking costs more
            made = node.rebuild(children, constants)
            if node.shared:
                shared[number] = made
            done.append(made)
        return done[0]

    def leaves_of(self, other: Any, op: str = "tree") -> list[Any]:
        """Return the leaves of another tree of this structure, in the order of this one.

        Raises:
            TreeError: naming the path where the two part.
        """
        out: list[Any] = []
        work: list[tuple[Any, _Path]] = [(other, None)]
        shared: dict[int, Any] = {}
        for number in reversed(range(len(self._steps))):
            step = self._steps[number]
            value, path = work.pop()
            if isinstance(step, _Again):
                if shared.setdefault(step.step, value) is not value:
                    raise _part(op, path, "another object", "the object of an earlier place")
                continue
            if shared and shared.get(number, value) is not value:
                raise _part(op, path, "another object", "the object of a later place")
            if step is None:
                if is_node(value):
                    raise _part(op, path, type(value).__name__, "a leaf")
                out.append(value)
                continue
            if type(value) is not step.type:
                raise _part(op, path, type(value).__name__, step.type.__name__)
            children, _ = step.node.flatten(value)
            if step.keys is None:
                if len(children) != step.size:
                    raise _part(op, path, f"{len(children)} parts", str(step.size))
                work.extend((child, (path, i)) for i, child in enumerate(children))
            else:
                if not isinstance(children, dict) or set(children) != set(step.keys):
                    raise _part(op, path, _names(children), _names(step.keys))
                work.extend((children[key], (path, key)) for key in step.keys)
        return out[::-1]


class _Star:
    def __repr__(self) -> str:
        return "*"


# The names from the root down, the last one first: costs nothing until somebody asks.
_Path = tuple["_Path", Any] | None


def _text(path: _Path) -> str:
    names: list[str] = []
    while path is not None:
        path, name = path
        names.append(str(name))
    return ".".join(reversed(names))


def _names(keys: Any) -> str:
    names = [repr(key) for key in keys]
    return ", ".join(names) or "nothing"


def _part(op: str, path: _Path, got: str, expected: str) -> TreeError:
    where = _text(path) or "the root"
    return TreeError(op, f"the structures part at {where}", got=got, expected=expected)


def flatten(tree: Any, leaf: Types = ()) -> tuple[list[Any], Structure]:
    """Return the leaves of a tree from left to right, and its structure.

    Lists, tuples, named tuples, dicts, deques, dataclasses and what ``register`` knows come apart;
    everything else is a leaf, None included.

    Args:
        tree: any value.
        leaf: types to take as leaves although they would come apart.

    Raises:
        TreeError: for a tree that contains itself, and for a container of a type that is not
            known, such as a set, that holds a tensor.

    >>> from phlox_tensor import tree
    >>> leaves, structure = tree.flatten({"a": 1, "b": (2, [3])})
    >>> leaves
    [1, 2, 3]
    >>> structure.rebuild([x * 10 for x in leaves])
    {'a': 10, 'b': (20, [30])}
    """
    if type(tree) is Tensor:
        return [tree], _LEAF
    leaves: list[Any] = []
    steps: list[_Step | _Again | None] = []
    work: list[Any] = [tree]
    depth, deep = 0, _DEEP
    shared: dict[int, int] = {}  # by object, the number of its step
    found = KINDS.found
    while work:
        value = work.pop()
        cls = type(value)
        if cls is _Step:
            steps.append(value)
            depth -= 1
            continue
        if cls is _End:
            shared[id(value.value)] = len(steps) - 1
            continue
        kind = found.get(id(cls))
        if kind is None:
            kind = kind_of(cls)
        if type(kind) is not Node or (leaf and isinstance(value, leaf)):
            if kind is OPAQUE:
                nothing_hidden(value)
            steps.append(None)
            leaves.append(value)
            continue
        if kind.shared:
            if id(value) in shared:
                steps.append(_Again(shared[id(value)]))
                continue
            work.append(_End(value))
        depth += 1
        if depth == deep:
            _refuse_cycles(tree, leaf)
            deep *= 2  # so that looking again and again costs no more than the walk
        children, rest = kind.flatten(value)
        if isinstance(children, dict):
            work.append(_Step(cls, kind, tuple(children), len(children), rest))
            work.extend([*children.values()][::-1])
        else:
            work.append(_Step(cls, kind, None, len(children), rest))
            work.extend(children if len(children) < 2 else [*children][::-1])
    return leaves, Structure(steps, len(leaves))


def leaves(tree: Any, leaf: Types = ()) -> list[Any]:
    """Return the leaves of a tree from left to right; see ``flatten``."""
    return flatten(tree, leaf)[0]


# So many levels down it pays to look whether they repeat.
_DEEP: Final = 2048


def _refuse_cycles(tree: Any, leaf: Types) -> None:
    """Refuse a tree that contains itself."""
    for _ in _paths(tree, leaf, nodes=True):
        pass


def leaves_with_paths(tree: Any, leaf: Types = ()) -> list[tuple[str, Any]]:
    """Return the leaves with their paths: the names from the root down, joined by dots.

    >>> from phlox_tensor import tree
    >>> tree.leaves_with_paths({"a": 1, "b": (2, [3])})
    [('a', 1), ('b.0', 2), ('b.1.0', 3)]
    """
    return [(_text(path), value) for path, value in _paths(tree, leaf, nodes=False)]


def nodes_with_paths(tree: Any, leaf: Types = ()) -> list[tuple[str, Any]]:
    """Return what comes apart in a tree with its paths, outer before inner."""
    return [(_text(path), value) for path, value in _paths(tree, leaf, nodes=True)]


def _paths(tree: Any, leaf: Types, *, nodes: bool) -> Iterator[tuple[_Path, Any]]:
    """The nodes or the leaves of a tree with their paths."""
    active: set[int] = set()
    shared: set[int] = set()
    work: list[Any] = [(tree, None)]
    while work:
        entry = work.pop()
        if type(entry) is not tuple:
            active.discard(id(entry.value))
            continue
        value, path = entry
        cls = type(value)
        kind = kind_of(cls)
        if type(kind) is not Node or (leaf and isinstance(value, leaf)):
            if kind is OPAQUE:
                nothing_hidden(value, f" at {_text(path)}" if path is not None else "")
            if not nodes:
                yield path, value
            continue
        if kind.shared:
            if id(value) in shared:
                continue
            shared.add(id(value))
        if id(value) in active:
            raise TreeError("tree", f"the tree contains itself at {_text(path)}", got=cls.__name__)
        active.add(id(value))
        if nodes:
            yield path, value
        children, _ = kind.flatten(value)
        work.append(_End(value))
        pairs = children.items() if isinstance(children, dict) else enumerate(children)
        work.extend(reversed([(child, (path, name)) for name, child in pairs]))


def map(function: Callable[..., Any], tree: Any, *others: Any, leaf: Types = ()) -> Any:
    """Return the tree with ``function`` applied to each leaf, and to those of ``others`` beside it.

    Raises:
        TreeError: when the structures differ, naming the path where they part.

    >>> from phlox_tensor import tree
    >>> tree.map(lambda x, y: x + y, {"a": 1, "b": [2]}, {"b": [20], "a": 10})
    {'a': 11, 'b': [22]}
    """
    found, structure = flatten(tree, leaf)
    if not others:
        return structure.rebuild([function(x) for x in found])
    columns = [structure.leaves_of(other, "map") for other in others]
    return structure.rebuild([function(*row) for row in zip(found, *columns, strict=True)])


def rebuild(structure: Structure, leaves: Sequence[Any]) -> Any:
    """Return the tree of a structure and its leaves.

    Raises:
        TreeError: when there are more or fewer leaves than the tree has.
    """
    return structure.rebuild(leaves)


_LEAF: Final = Structure([None], 1)
