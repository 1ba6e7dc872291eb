"""What a function takes from outside: closures, globals, the object that it is a method of."""

from __future__ import annotations

from collections.abc import Callable
from operator import attrgetter, is_
from types import CodeType, FunctionType, MethodType
from typing import Any, Final, final

from phlox_tensor.capture import same

from ._layout import Source

_NOTHING: Final = object()
_content: Final = attrgetter("cell_contents")
_SIZED: Final = (dict, list, set)


@final
class Captured:
    """The names that a function takes from outside, to see what stands behind them now.

    Names that functions called by it take are not looked at.

    Attributes:
        nothing: it takes nothing from outside, so that there is nothing to look at.
    """

    __slots__ = ("_cells", "_globals", "_known", "_names", "_owner", "nothing")

    def __init__(self, function: Callable[..., Any]) -> None:
        """Find the names."""
        self._owner: Any = None
        if isinstance(function, MethodType):
            owner = function.__self__
            self._owner = owner if isinstance(getattr(owner, "__dict__", None), dict) else None
            function = function.__func__
        plain = function if isinstance(function, FunctionType) else None
        self._cells = () if plain is None else plain.__closure__ or ()
        free = () if plain is None else plain.__code__.co_freevars
        self._globals: dict[str, Any] = {} if plain is None else plain.__globals__
        names = set() if plain is None else _names_in(plain.__code__)
        known = sorted(name for name in names if name in self._globals)
        self._names = (*free, *known)
        self._known = known
        self.nothing: Final = not self._names and self._owner is None

    def now(self) -> list[Any]:
        """Return what stands behind the names, and how long the containers among it are."""
        try:
            found = [*map(_content, self._cells)]
        except ValueError:  # a name that has no value yet
            found = [getattr(cell, "cell_contents", _NOTHING) for cell in self._cells]
        found += map(self._globals.get, self._known)
        if self._owner is not None:
            found += vars(self._owner).values()
        return found

    def write(self, source: Source, known: list[Any], miss: str) -> None:
        """Add lines that do ``miss`` where a name stands for another object than it did."""
        if self._owner is not None:
            test, before = source.held(self._stands), source.held(known)
            source.line(f"if not {test}({before}): {miss}")
            return
        for cell, value in zip(self._cells, known, strict=False):
            source.line(f"if {source.held(cell)}.cell_contents is not {source.held(value)}: {miss}")
        names = source.held(self._globals) if self._known else ""
        for name, value in zip(self._known, known[len(self._cells) :], strict=True):
            source.line(f"if {names}.get({name!r}) is not {source.held(value)}: {miss}")

    def _stands(self, known: list[Any]) -> bool:
        return all(map(is_, known, self.now()))

    def sizes(self) -> list[int]:
        """Return how long the containers are that the names stand for."""
        return [len(item) if isinstance(item, _SIZED) else 0 for item in self.now()]

    def changed(self, before: list[Any], sizes: list[int]) -> str | None:
        """Return the name of what is another object now, or of another length; else None."""
        names = [*self._names]
        if self._owner is not None:
            names += [f"self.{name}" for name in vars(self._owner)]
        now = self.now()
        if len(now) != len(before):
            return names[-1]
        for name, a, b, size in zip(names, before, now, sizes, strict=True):
            if not alike(a, b) or (isinstance(b, _SIZED) and len(b) != size):
                return name
        return None


def alike(a: Any, b: Any) -> bool:
    """Whether a name stands for the same: the object, or an equal plain number or text."""
    if a is b:
        return True
    if type(a) is not type(b):
        return False
    if type(a) in (bool, int, float):
        return same(a, b)
    return type(a) is str and bool(a == b)


def _names_in(code: CodeType) -> set[str]:
    """The global names in a function and in those written inside of it."""
    found = set(code.co_names)
    for item in code.co_consts:
        if isinstance(item, CodeType):
            found |= _names_in(item)
    return found
