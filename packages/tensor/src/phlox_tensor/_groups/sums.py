"""Sums in one fixed order: a binary tree over numbered leaves, whichever rank has which.

A node of level k and place i is the sum of leaves i·2**k to (i+1)·2**k. Nodes come together in
pairs as long as they can; what is left at the end of the leaves is added from the right.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from operator import add as plus
from typing import Any, Generic, NamedTuple, TypeVar, final

from .._errors.classes import ArgumentError

T = TypeVar("T")


class TreeNode(NamedTuple):
    """A place in the tree."""

    level: int
    place: int


@final
class TreeSum(Generic[T]):
    """Adds leaves in pairs, pairs of pairs and so on; a leaf may be absent.

    The order follows only from the number of leaves. At most log2 of it sums are held, twice as
    many where the first leaf is not number 0: these are a part of a sum, for others to finish.

    Attributes:
        first: the number of the leaf that comes first.

    >>> total = TreeSum()
    >>> for leaf in ("a", "b", None, "d", "e"):
    ...     total.add(leaf)
    >>> total.value()
    'abde'
    """

    def __init__(self, first: int = 0, *, add: Callable[[Any, Any], Any] = plus) -> None:
        """Start without leaves.

        Args:
            first: the number of the leaf that comes first.
            add: what adds two sums, the left one first.
        """
        self.first, self._next, self._add = first, first, add
        self._held: list[tuple[TreeNode, T | None]] = []

    def add(self, leaf: T | None) -> None:
        """Take the next leaf."""
        self.join(TreeNode(0, self._next), leaf)

    def join(self, node: TreeNode, value: T | None) -> None:
        """Take a sum of the next leaves, that of a node.

        Raises:
            ArgumentError: for a node that does not follow.
        """
        if node.place << node.level != self._next:
            got, expected = f"leaf {node.place << node.level}", f"leaf {self._next}"
            raise ArgumentError("join", "a sum of other leaves", got=got, expected=expected)
        self._next = (node.place + 1) << node.level
        held = self._held
        held.append((node, value))
        while len(held) > 1 and _siblings(held[-2][0], held[-1][0]):
            (_, right), (left_node, left) = held.pop(), held.pop()
            parent = TreeNode(left_node.level + 1, left_node.place >> 1)
            held.append((parent, self._sum(left, right)))

    def parts(self) -> list[tuple[TreeNode, T | None]]:
        """Return the sums that are held, of which nodes above are made when others are there."""
        return list(self._held)

    def found(self) -> T | None:
        """Return the sum of all leaves, or None where all are absent."""
        total: T | None = None
        for _, left in reversed(self._held):
            total = self._sum(left, total)
        return total

    def value(self) -> T:
        """Return the sum of all leaves, of which one at least is there."""
        total = self.found()
        assert total is not None
        return total

    def _sum(self, left: T | None, right: T | None) -> T | None:
        if left is None or right is None:
            return right if left is None else left
        return self._add(left, right)


def _siblings(left: TreeNode, right: TreeNode) -> bool:
    return left.level == right.level and left.place % 2 == 0


def share_of(leaves: int, rank: int, size: int) -> range:
    """Return the leaves that one of so many ranks computes.

    >>> [share_of(8, rank, 3) for rank in range(3)]
    [range(0, 2), range(2, 5), range(5, 8)]
    """
    return range(rank * leaves // size, (rank + 1) * leaves // size)


def nodes_of(leaves: int, rank: int, size: int) -> tuple[TreeNode, ...]:
    """Return the nodes that hold the sums of a rank's leaves: as few as there can be.

    >>> [len(nodes_of(8, rank, 3)) for rank in range(3)]
    [1, 2, 2]
    """
    found: TreeSum[None] = TreeSum((mine := share_of(leaves, rank, size)).start)
    for _ in mine:
        found.add(None)
    return tuple(node for node, _ in found.parts())


@lru_cache(64)
def all_nodes(leaves: int, size: int) -> tuple[tuple[TreeNode, ...], ...]:
    """Return the nodes of each of so many ranks.

    >>> [len(nodes) for nodes in all_nodes(8, 3)]
    [1, 2, 2]
    """
    return tuple(nodes_of(leaves, rank, size) for rank in range(size))


def absent_of(dtype: Any) -> Any:
    """What an absent sum is written as: minus zero, since adding it changes no bit."""
    return dtype.type(-0.0) if dtype.kind not in "iub" else dtype.type(0)
