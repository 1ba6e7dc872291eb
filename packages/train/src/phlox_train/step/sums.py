"""Sums in one fixed order: a binary tree over numbered leaves, whoever computes them."""

from __future__ import annotations

from typing import Any, Generic, TypeVar, final

T = TypeVar("T")


@final
class TreeSum(Generic[T]):
    """Adds leaves in pairs, pairs of pairs and so on; a leaf may be absent.

    The order follows from the number of leaves alone. At most log2 of it sums are held.

    >>> total = TreeSum()
    >>> for leaf in ("a", "b", None, "d", "e"):
    ...     total.add(leaf)
    >>> total.value()
    'abde'
    """

    def __init__(self) -> None:
        """Start without leaves."""
        self._held: list[tuple[int, T | None]] = []  # sums of 2**level leaves, the largest first

    def add(self, leaf: T | None) -> None:
        """Take the next leaf."""
        self._held.append((0, leaf))
        while len(self._held) > 1 and self._held[-1][0] == self._held[-2][0]:
            level, right = self._held.pop()
            _, left = self._held.pop()
            self._held.append((level + 1, _sum(left, right)))

    def value(self) -> T:
        """Return the sum of all leaves, of which one at least is there."""
        total: T | None = None
        for _, left in reversed(self._held):
            total = _sum(left, total)
        assert total is not None
        return total


def _sum(left: Any, right: Any) -> Any:
    if left is None or right is None:
        return right if left is None else left
    return left + right
