"""What objects and classes have under names that code uses, and how to watch it."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from functools import cached_property
from threading import local
from types import FunctionType
from typing import Any, Final, final

from .watch import NOTHING, Read, attributes_in, names_in

_MAKING: Final = frozenset({"__init__", "__new__", "__post_init__"})
_ASIDE: Final = frozenset(
    {"__annotate__", "__del__", "__getstate__", "__reduce__", "__repr__", "__setstate__"}
)
_AS_THEY_ARE: Final = (FunctionType, cached_property, property)  # what a class gives itself


@final
class Slots:
    """A class, and what it and its bases have under names.

    Args:
        cls: the class.
        is_users: whether a module is the user's own: other bases are taken as they are.
    """

    def __init__(self, cls: type, is_users: Callable[[str], bool]) -> None:
        """Start without names."""
        self.cls: Final = cls
        self.called = False  # whether code may make objects of it
        self._bases: Final = [base for base in cls.__mro__ if is_users(base.__module__)]
        self._done: set[str] = set()
        self._found: dict[str, Any] = {}

    def look(self, names: Collection[str]) -> list[tuple[str, Any]]:
        """Take up names that are new, and return what stands there, with what to call it."""
        aside = _ASIDE if self.called else _ASIDE | _MAKING
        own = {
            name
            for base in self._bases
            for name, value in vars(base).items()
            if name[:2] == "__" and name not in aside and callable(value)
        }
        new = {*names, *own, "__call__"} - self._done
        self._done |= new
        found: list[tuple[str, Any]] = []
        for name in new:
            holder = next((base for base in self.cls.__mro__ if name in vars(base)), object)
            if holder is not object:
                self._found[name] = vars(holder)[name]
            for base in self._bases:
                if name in vars(base):
                    found.append((f"{base.__name__}.{name}", vars(base)[name]))
        return found

    def places(self, *, behind: bool) -> Iterator[tuple[Read, Any, dict[str, Any]]]:
        """What to watch: how, of which holder, and what stands under which names.

        Args:
            behind: look also behind the first class that has a name, where ``super`` goes on.
        """
        direct: dict[str, Any] = {}
        stored: dict[type, dict[str, Any]] = {base: {} for base in self._bases}
        mro = self.cls.__mro__
        for name, value in self._found.items():
            having = [at for at, base in enumerate(mro) if name in vars(base)]
            as_it_is = _gives(self.cls, name, value)
            if as_it_is:
                direct[name] = value
            start = having[0] + 1 if as_it_is else 0
            for base in mro[start : having[-1 if behind else 0] + 1]:
                if base in stored:
                    stored[base][name] = vars(base).get(name, NOTHING)
        if direct:
            yield attributes_in, self.cls, direct
        for base, keys in stored.items():
            if keys:
                yield names_in, vars(base), keys


def _gives(cls: type, name: str, value: Any) -> bool:
    """Whether asking a class for a name gives what is stored there, and runs nothing."""
    meta: Any = type(cls)
    if meta.__getattribute__ is not type.__getattribute__:
        return False
    above = next((vars(base)[name] for base in meta.__mro__ if name in vars(base)), None)
    return not is_data(above) and (
        type(value) in _AS_THEY_ARE or not hasattr(type(value), "__get__")
    )


def is_data(value: Any) -> bool:
    """Whether what stands in a class comes before attributes of its objects."""
    return hasattr(type(value), "__set__") or hasattr(type(value), "__delete__")


@final
class Open:
    """An object, module or class, whose attributes count as far as code names them."""

    def __init__(self, item: Any, label: str, among: str, own: bool, depth: int) -> None:
        """Start without names."""
        space = getattr(item, "__dict__", None)
        self.item = item
        self.by_thread = isinstance(item, local)  # each thread has attributes of its own
        self.space: Mapping[str, Any] = (
            space if isinstance(space, Mapping) and not self.by_thread else {}
        )
        self.label = label
        self.among = among
        self.own = own
        self.depth = depth
        self.done: set[str] = set()
        self.keys: dict[str, Any] = {}
        self.slots: dict[str, Any] = {}
