"""Checkpointing: which results are kept for the backward pass, and which are computed again."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, final

if TYPE_CHECKING:
    from collections.abc import Callable

    from phlox_tensor import Op


class Checkpointing(ABC):
    """A strategy: decides from an op's class whether its results are computed again.

    Equal strategies make equal devices, so a strategy is hashable and compares by value.
    """

    __slots__ = ()

    @abstractmethod
    def recomputes(self, op: Op) -> bool:
        """Whether a backward pass computes results of ``op`` again instead of keeping them."""


@final
@dataclass(frozen=True, slots=True)
class NoCheckpointing(Checkpointing):
    """Keep whatever a rule names. The fastest, and the default."""

    def recomputes(self, op: Op) -> bool:
        """Never."""
        del op
        return False


@final
@dataclass(frozen=True, slots=True)
class BalancedCheckpointing(Checkpointing):
    """Keep what is expensive to compute; compute again what only costs memory traffic.

    Results of elementwise ops, views and casts are computed from their operands when a rule asks
    for them; contractions, windows, reductions and random numbers are kept.
    """

    def recomputes(self, op: Op) -> bool:
        """What the class of the op says."""
        return op.family.memory_bound and len(op.signature.results) == 1


@final
class Recipe:
    """How to compute a value again: an entry of the inner backend and its arguments.

    Attributes:
        id: number of the node that the value belongs to.
        entry: the function of the inner backend.
        args: primitives, numbers, attributes, and recipes of further values.
    """

    __slots__ = ("args", "entry", "id")

    def __init__(self, id: int, entry: Callable[..., Any], args: tuple[Any, ...]) -> None:
        """Remember the call."""
        self.id = id
        self.entry = entry
        self.args = args


# Values computed again during one backward pass, by the number of their node.
Memo = dict[int, Any]


def compute(recipe: Recipe, memo: Memo) -> Any:
    """Compute a value, and what it is made of, at most once for each ``memo``."""
    waiting = [recipe]
    while waiting:
        top = waiting[-1]
        if top.id in memo:
            waiting.pop()
            continue
        missing = [a for a in top.args if type(a) is Recipe and a.id not in memo]
        if missing:
            waiting.extend(missing)
            continue
        args = [memo[a.id] if type(a) is Recipe else a for a in top.args]
        memo[top.id] = top.entry(*args)
    return memo[recipe.id]
