"""What a function takes from outside: closures, globals, the object that it is a method of."""

from __future__ import annotations

from collections.abc import Callable
from operator import attrgetter, is_
from types import CodeType, FunctionType, MethodType, ModuleType
from typing import Any, Final, final

from phlox_tensor.capture import same

from ._layout import Source

_NOTHING: Final = object()
_content: Final = attrgetter("cell_contents")
_NO_STATE: Final = (FunctionType, MethodType, ModuleType, type)
_MOST_LOOKED_AT: Final = 10_000  # parts of a container; of larger ones the length


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

    def contents(self) -> list[Any]:
        """Return what is in the containers and objects that the names stand for."""
        return [*map(contents_of, self.now())]

    def changed(self, before: list[Any], contents: list[Any]) -> str | None:
        """Return the name of what is another object now, or holds others; else None."""
        names = [*self._names]
        if self._owner is not None:
            names += [f"self.{name}" for name in vars(self._owner)]
        now = self.now()
        if len(now) != len(before):
            return names[-1]
        for name, a, b, inside in zip(names, before, now, contents, strict=True):
            if not alike(a, b):
                return name
            place = changed_in(b, inside)
            if place is not None:
                return f"{name}{place}"
        return None


def contents_of(item: Any) -> Any:
    """Return what is in a container, or the attributes of an object of the user's own."""
    if isinstance(item, set):
        return len(item)
    if isinstance(item, list):
        return [*item] if len(item) <= _MOST_LOOKED_AT else len(item)
    found = item if isinstance(item, dict) else _attributes(item)
    return dict(found) if len(found) <= _MOST_LOOKED_AT else len(found)


def _attributes(item: Any) -> dict[str, Any]:
    cls = type(item)
    found = getattr(item, "__dict__", None)
    ours = cls.__module__.partition(".")[0].startswith("phlox")
    if type(found) is not dict or ours or isinstance(item, _NO_STATE):
        return {}
    return found


def changed_in(item: Any, before: Any) -> str | None:
    """Return the place in a container or object that holds another thing than it did; else None.

    Attributes that are new do not count: an object may remember what it has found out.
    """
    now = contents_of(item)
    if type(before) is dict and type(now) is dict:
        is_object = not isinstance(item, dict)
        if not is_object and before.keys() != now.keys():
            return ""
        for key, value in before.items():
            if not alike(now.get(key, _NOTHING), value):
                return f".{key}" if is_object else f"[{key!r}]"
        return None
    if type(before) is list and type(now) is list and len(before) == len(now):
        places = [at for at, (a, b) in enumerate(zip(before, now, strict=True)) if not alike(a, b)]
        return f"[{places[0]}]" if places else None
    return None if type(before) is type(now) is int and before == now else ""


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
