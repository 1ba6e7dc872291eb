"""What a graph is made of: primitives, nodes, and the counter that orders nodes."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from functools import cache
from itertools import count
from typing import Any, Final, TypeGuard, final

from phlox_tensor import Tensor

from ._checkpoint_strategies import Kept, Memo, Recipe
from ._slices import Slices, together

Shape = tuple[int, ...]

# ``next`` on a counter is one step for the interpreter, so threads never draw the same number.
next_id: Final = count().__next__
# Skips the constructor call, a third of what recording an op costs.
new: Final = object.__new__


class Plan(ABC):
    """How cotangents pass a node; one object serves all nodes that are alike."""

    __slots__ = ()

    name: str  # what errors call the node

    @abstractmethod
    def push(self, node: Node, cotangent: Any, pending: Pending, memo: Memo | None) -> None:
        """Add the cotangents of the node's parents to ``pending``."""

    def kept(self, node: Node) -> Iterator[tuple[str, Any]]:
        """What a node keeps for the pass, each with a name: tensors, and what may hold some."""
        for item in node.saved:
            yield "saved", item


@final
class Node:
    """A step that was recorded, or a leaf. Holds its parents, never its children.

    Attributes:
        id: later nodes have larger numbers, so the order of numbers is an order of the graph.
        parents: the nodes of the operands; None for operands without one.
        plan: how a cotangent passes.
        saved: what the plan needs to know about this one step.
        shape: the shape of the result.
        origin: the line that made the step; only set inside ``detect_nan``.
    """

    __slots__ = ("id", "origin", "parents", "plan", "saved", "shape")

    id: int
    origin: str
    parents: Sequence[Node | None]
    plan: Plan
    saved: tuple[Any, ...]
    shape: Shape


@final
class Primitive:
    """A primitive of the inner backend, and the node that it came from.

    Attributes:
        value: the primitive of the inner backend.
        node: None for constants.
        recipe: how to compute the value again, or that it is kept; only set where checkpointing
            wants it.
    """

    __slots__ = ("node", "recipe", "value")

    node: Node | None
    recipe: Recipe | Kept | None
    value: Any


# Cotangents that wait for their node: tensors or slices; those of ports are lists, one place per
# result.
Pending = dict[Node, Any]


def is_primitive(item: object) -> TypeGuard[Primitive]:
    """Whether ``item`` is a primitive, as opposed to a number or None."""
    return type(item) is Primitive


def primitive(value: Any, node: Node | None = None, recipe: Recipe | None = None) -> Primitive:
    """Make a primitive; the hot paths do the same in place."""
    out = new(Primitive)
    out.value = value
    out.node = node
    out.recipe = recipe
    return out


def make_node(
    plan: Plan, parents: Sequence[Node | None], saved: tuple[Any, ...], shape: Shape
) -> Node:
    """Make a node; the hot paths do the same in place."""
    node = new(Node)
    node.id = next_id()
    node.parents = parents
    node.plan = plan
    node.saved = saved
    node.shape = shape
    return node


def accumulate(pending: Pending, node: Node, cotangent: Tensor[Any] | Slices) -> None:
    """Add a cotangent to what waits for ``node``."""
    before = pending.get(node)
    pending[node] = cotangent if before is None else together(before, cotangent)


@final
class Leaf(Plan):
    """A tensor whose gradient is wanted: cotangents stay where they are."""

    __slots__ = ()
    name = "require_grad"

    def push(self, node: Node, cotangent: Any, pending: Pending, memo: Memo | None) -> None:
        """Nothing lies behind a leaf."""


@final
class Used(Plan):
    """A node that a backward pass has been through and freed."""

    __slots__ = ()
    name = "freed"

    def push(self, node: Node, cotangent: Any, pending: Pending, memo: Memo | None) -> None:
        """Never called: a pass over a used node is refused before it starts."""
        raise AssertionError("a pass went over a used node")


@final
class Port(Plan):
    """One result of a step that has several: puts the cotangent into its place."""

    __slots__ = ("count", "index", "name")

    def __init__(self, index: int, count: int) -> None:
        """The result at ``index`` out of ``count``."""
        self.index = index
        self.count = count
        self.name = f"result {index}"

    def push(self, node: Node, cotangent: Any, pending: Pending, memo: Memo | None) -> None:
        """Place the cotangent in the list that waits for the step."""
        del memo
        (step,) = node.parents
        assert step is not None
        places = pending.setdefault(step, [None] * self.count)
        assert places[self.index] is None  # a result has one port, which pushes once
        places[self.index] = cotangent


_port = cache(Port)  # which has no state of a call
LEAF: Final = Leaf()
USED: Final = Used()


def is_leaf(node: Node) -> bool:
    """Whether the gradient of the node is what a pass gives."""
    return node.plan is LEAF


def ports(
    step: Node, values: Sequence[Any], shapes: Sequence[Shape], kinds: Sequence[bool]
) -> tuple[Primitive, ...]:
    """Primitives for the results of one step; those not of ``kinds`` are constants."""
    total = len(values)
    return tuple(
        primitive(value, make_node(_port(i, total), (step,), (), shape) if tracked else None)
        for i, (value, shape, tracked) in enumerate(zip(values, shapes, kinds, strict=True))
    )
