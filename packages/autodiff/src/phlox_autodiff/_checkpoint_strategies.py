"""Strategies of checkpointing: which results a device keeps, and which it computes again."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Final, final

from phlox_tensor import Op


class Checkpointing(ABC):
    """A strategy: decides from an op's class whether its results may be computed again.

    They are where that holds fewer bytes than keeping them: an operand that no other step keeps
    counts. Of a long chain of such results one in eight is kept. Equal strategies make equal
    devices, so a strategy is hashable and compares by value.
    """

    __slots__ = ()

    @abstractmethod
    def recomputes(self, op: Op) -> bool:
        """Whether a backward pass may compute results of ``op`` again instead of keeping them.

        Of ops over lines, such as norms, results as large as the operands alone are.
        """


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

    Never holds more than ``NoCheckpointing``: a value that was computed again goes with its last
    use. Results of elementwise ops, norms, views and casts are computed from their operands when a
    rule asks for them; contractions, windows, reductions and random numbers are kept.

    Example:
        >>> import phlox_tensor as pt
        >>> from phlox_autodiff import Autodiff
        >>> device = Autodiff("numpy", checkpointing=BalancedCheckpointing())
        >>> w = pt.asarray([1.0, 2.0], device=device).require_grad()
        >>> w.grad((w.exp() * w).sum().backward()).shape
        (2,)
    """

    def recomputes(self, op: Op) -> bool:
        """What the class of the op says."""
        return op.op_class.memory_bound


# A longer chain of results that are computed again keeps one of them: a pass then has an eighth of
# them and eight others at a time, not all of them at once.
_LONGEST: Final = 8


@final
class Recipe:
    """A value of the inner backend that is computed when it is needed.

    Attributes:
        call: an entry of the inner backend and its arguments: primitives, numbers, attributes and
            further recipes. None once the value is there.
        value: what the call gave, if it has run.
        depth: length of the longest chain of recipes that ends here.
        extra: bytes that only this recipe and those it is made of hold.
        kept: a node keeps the recipe.
    """

    __slots__ = ("call", "depth", "extra", "kept", "value")

    def __init__(
        self, entry: Callable[..., Any], args: tuple[Any, ...], depth: int, extra: int
    ) -> None:
        """Remember the call."""
        self.call: tuple[Callable[..., Any], tuple[Any, ...]] | None = (entry, args)
        self.value: Any = None
        self.depth = depth
        self.extra = extra
        self.kept = False


@final
class Kept:
    """In the place of a recipe: a node keeps the value, or its user does."""

    __slots__ = ()


KEPT: Final = Kept()


def recipe_for(
    entry: Callable[..., Any],
    args: tuple[Any, ...],
    costs: dict[int, int],
    nbytes: int,
) -> Recipe | None:
    """How to compute a result of ``nbytes`` again, where that holds fewer bytes than keeping it.

    Args:
        entry: what gave the result.
        args: its arguments, with recipes for those that have one.
        costs: bytes that each primitive among ``args`` would be held for, by its identity.
        nbytes: the bytes of the result.
    """
    recipes = {id(a): a for a in args if type(a) is Recipe}
    extra = sum(costs.values()) + sum(r.extra for r in recipes.values() if not r.kept)
    depth = 1 + max((r.depth for r in recipes.values()), default=0)
    return Recipe(entry, args, depth, extra) if extra < nbytes and depth <= _LONGEST else None


@final
class Memo:
    """Values computed again during a pass that keeps its graph, each until its last use."""

    __slots__ = ("_uses", "_values")

    def __init__(self, kept: Iterable[tuple[Any, ...]]) -> None:
        """Count the uses of recipes in what the nodes of a pass keep."""
        self._values: dict[Recipe, Any] = {}
        # A Counter would cost a small graph as much as its pass.
        self._uses: dict[Recipe, int] = {}
        for saved in kept:
            for item in saved:
                if type(item) is Recipe:
                    self._uses[item] = self._uses.get(item, 0) + 1

    def __bool__(self) -> bool:
        """Whether anything is computed again."""
        return bool(self._uses)

    def compute(self, recipe: Recipe) -> Any:
        """The value of a recipe, for its turn in the pass."""
        missing: dict[Recipe, None] = {}
        self._list(recipe, missing)
        inside = Counter(a for r in missing for a in _recipes(r))
        for each in missing:
            assert each.call is not None
            entry, args = each.call
            self._values[each] = entry(*[self._value(a) if type(a) is Recipe else a for a in args])
            for a in _recipes(each):
                inside[a] -= 1
                if not inside[a] and not self._uses.get(a):
                    self._values.pop(a, None)
        return self._value(recipe)

    def _list(self, recipe: Recipe, missing: dict[Recipe, None]) -> None:
        """Add what has to be computed for a value, what it is made of first."""
        if recipe.call is None or recipe in self._values or recipe in missing:
            return
        for a in _recipes(recipe):
            self._list(a, missing)
        missing[recipe] = None

    def _value(self, recipe: Recipe) -> Any:
        return self._values.get(recipe, recipe.value)

    def used(self, saved: tuple[Any, ...]) -> None:
        """Drop what a node that has been passed was the last to need."""
        for item in saved:
            if type(item) is Recipe:
                self._uses[item] -= 1
                if not self._uses[item]:
                    self._values.pop(item, None)


def _recipes(recipe: Recipe) -> set[Recipe]:
    """The recipes among the arguments of a call."""
    call = recipe.call
    return set() if call is None else {a for a in call[1] if type(a) is Recipe}


def compute(recipe: Recipe, memo: Memo | None) -> Any:
    """Compute a value, and what it is made of, at most once for each pass.

    Without a memo the value takes the place of the call: what it was made of goes with the last
    recipe or node that needs it. Chains are short, so this may recurse.
    """
    if memo is not None:
        return memo.compute(recipe)
    call = recipe.call
    if call is None:
        return recipe.value
    entry, args = call
    recipe.value = entry(*[compute(a, None) if type(a) is Recipe else a for a in args])
    recipe.call = None  # after the value is there: another thread sees one of the two
    return recipe.value
