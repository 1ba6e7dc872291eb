"""New values for constants, which travel with the graph of what they were computed beside.

A layer in training knows how its running statistics should move, and must not move them. It
proposes new values; a backward pass finds those of the results that the loss depends on.
"""

from __future__ import annotations

from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, Final, final

from ._graph import Node, Pending, Plan, Primitive, accumulate, make_node, primitive

if TYPE_CHECKING:
    from phlox_tensor import Tensor

    from ._checkpoint import Memo

# Of one pass: the primitive of each constant that has proposals, kept alive, and the values.
_Found = dict[int, tuple[Primitive, list[Any]]]
_finding: ContextVar[_Found | None] = ContextVar("phlox_proposals", default=None)


@final
class _Proposal(Plan):
    """A step that changes nothing, and carries a new value for a constant."""

    __slots__ = ()

    @property
    def name(self) -> str:
        """What errors call the node."""
        return "propose"

    def push(self, node: Node, cotangent: Any, pending: Pending, memo: Memo | None) -> None:
        """Pass the cotangent on, and leave the value with the pass."""
        del memo
        target, value = node.saved
        found = _finding.get()
        if found is not None:
            found.setdefault(id(target), (target, []))[1].append(value)
        for parent in node.parents:
            if parent is not None:
                accumulate(pending, parent, cotangent)


_PLAN: Final = _Proposal()


@final
class Proposals:
    """The new values that a pass found, by constant."""

    __slots__ = ("_found",)

    def __init__(self, found: _Found | None = None) -> None:
        """Keep what ``finding`` filled."""
        self._found: Final = {} if found is None else found

    def get(self, target: Primitive) -> Tensor[Any] | None:
        """Return the mean of what was proposed for a constant; None if nothing was."""
        _, values = self._found.get(id(target), (None, ()))
        if not values:
            return None
        total = values[0]
        for value in values[1:]:
            total = total + value
        return total if len(values) == 1 else total * (1.0 / len(values))

    def __add__(self, other: Proposals) -> Proposals:
        joined = {key: (target, list(values)) for key, (target, values) in self._found.items()}
        for key, (target, values) in other._found.items():
            joined.setdefault(key, (target, []))[1].extend(values)
        return Proposals(joined)


@final
class Finding:
    """Collects what passes inside of a ``with`` block find, those of checkpoints among them."""

    __slots__ = ("_token",)

    def __enter__(self) -> Proposals:
        made = Proposals()
        self._token = _finding.set(made._found)
        return made

    def __exit__(self, *error: object) -> None:
        _finding.reset(self._token)


def proposed(result: Primitive, target: Primitive, value: Tensor[Any], shape: Any) -> Primitive:
    """Return ``result`` behind a node that carries the value; a constant is tracked from here."""
    node = make_node(_PLAN, (result.node,), (target, value), shape)
    return primitive(result.value, node, getattr(result, "recipe", None))
