"""What ``compile`` and ``kernel`` share: functions that they refuse, and pickling."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any, Final, final

from phlox_tensor import TreeError, WrongTypeError, tree


def refuse_unbound(op: str, given: object) -> None:
    """Refuse a static or class method that no class has bound yet."""
    if isinstance(given, staticmethod | classmethod):
        kind = type(given).__name__
        raise WrongTypeError(
            op,
            f"a {kind} is wrapped, and no function",
            got=repr(given.__func__),
            expected="a function",
            hint=f"@{kind} above @px.{op}",
        )


def kept_by_name(made: Any) -> str | None:
    """The name by which pickles keep what a function has become; None where it has none."""
    name = getattr(made, "__qualname__", None)
    found: Any = sys.modules.get(str(getattr(made, "__module__", "")))
    for part in str(name).split("."):
        found = getattr(found, part, None)
    return name if found is made else None


@final
class Bound:
    """What was made of a method for one object, among whose attributes it lies.

    Copies and pickles do without.
    """

    __slots__ = "made", "owner", "whole"

    def __init__(self, whole: Any = None, owner: Any = None, made: Any = None) -> None:
        self.whole: Final = whole
        self.owner: Final = owner
        self.made: Final = made

    def __reduce__(self) -> Any:
        return Bound, ()


def bound_to(whole: Any, instance: Any, place: str, make: Callable[[], Any]) -> Any:
    """What was made of a method for an object that hides a model or tensor; None for any other.

    Args:
        place: where among its attributes it lies, so that both end together.
    """
    found = made_of(whole, instance, place)
    if found is not None:
        return found
    try:
        tree.node_of(instance)
    except TreeError:
        space = getattr(instance, "__dict__", None)
        if type(space) is not dict:
            raise
        made = make()
        space[place] = Bound(whole, instance, made)
        return made
    return None


def made_of(whole: Any, instance: Any, place: str) -> Any:
    """What was made of a method for an object; None for a copy of that, or before."""
    space = getattr(instance, "__dict__", None)
    known = space.get(place) if type(space) is dict else None
    if known is None or known.whole is not whole or known.owner is not instance:
        return None
    return known.made
