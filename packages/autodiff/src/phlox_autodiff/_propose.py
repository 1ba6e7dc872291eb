"""Proposals of new values for constants, which are kept in the graph of a result.

A layer in training knows how its running statistics should move, and must not move them. It
proposes new values; a backward pass finds those of the results that the loss depends on.
"""

from __future__ import annotations

from typing import Any, Final, final

from phlox_tensor import Proposed, Tensor

from ._checkpoint_strategies import Memo
from ._graph import LEAF, Node, Pending, Plan, Primitive, accumulate, make_node, primitive

# Where a pass leaves the proposals that it meets, with the gradients of its leaves.
PROPOSED: Final = make_node(LEAF, (), (), ())


@final
class _Proposal(Plan):
    """A step that changes nothing, and carries a new value for a constant."""

    __slots__ = ()
    name = "propose"

    def push(self, node: Node, cotangent: Any, pending: Pending, memo: Memo | None) -> None:
        """Pass the cotangent on, and leave the value with the pass."""
        del memo
        pending.setdefault(PROPOSED, Proposals()).add(*node.saved)
        for parent in node.parents:
            if parent is not None:
                accumulate(pending, parent, cotangent)


_PLAN: Final = _Proposal()


@final
class Proposals:
    """The new values that a pass found, by constant."""

    __slots__ = ("_found",)

    def __init__(self) -> None:
        """None yet."""
        # The primitive of each constant, which keeps its identity its own, and the values.
        self._found: Final[dict[int, tuple[Primitive, list[Any]]]] = {}

    def add(self, target: Primitive, *values: Tensor[Any]) -> None:
        """Take over values for a constant."""
        self._found.setdefault(id(target), (target, []))[1].extend(values)

    def get(self, target: Primitive) -> Tensor[Any] | None:
        """Return what was proposed for a constant, as one value; None if nothing was."""
        found = self.of(target)
        if len(found) < 2:
            return found[0] if found else None
        return Proposed.joined(found, Tensor(target.value, found[0].device))

    def of(self, target: Primitive) -> tuple[Tensor[Any], ...]:
        """Return all that was proposed for a constant."""
        return tuple(self._found.get(id(target), (None, ()))[1])

    def __add__(self, other: Proposals) -> Proposals:
        joined = Proposals()
        for target, values in (*self._found.values(), *other._found.values()):
            joined.add(target, *values)
        return joined


NO_PROPOSALS: Final = Proposals()


def proposed(result: Primitive, target: Primitive, value: Tensor[Any], shape: Any) -> Primitive:
    """Return ``result`` behind a node that carries the value; a constant is tracked from here."""
    node = make_node(_PLAN, (result.node,), (target, value), shape)
    return primitive(result.value, node, getattr(result, "recipe", None))
