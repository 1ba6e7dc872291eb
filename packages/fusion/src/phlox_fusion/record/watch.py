"""Is a place that a function reads as it was? What stood there, and how to look again."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from keyword import iskeyword
from types import CellType
from typing import Any, Final, NamedTuple
from weakref import ReferenceType

import numpy as np

from ..source import Source
from ..trees.plain import typed
from ..trees.static import same_value

NOTHING: Final = object()
_PLAIN: Final = frozenset({bool, bytes, float, frozenset, int, str})

# What stands in a holder now: behind a key, or all of it.
Read = Callable[[Any, Any], Any]


class Where(NamedTuple):
    """Where a value stands.

    Attributes:
        label: what it is to the function, for errors; empty for its own names.
        among: what comes behind that in errors.
        own: a name or argument of the function itself, which may not change it.
        depth: how many containers and objects it stands in.
    """

    label: str
    among: str = ""
    own: bool = False
    depth: int = 0

    @property
    def name(self) -> str:
        """What errors say."""
        return f"{self.label}{self.among}"

    def inside(self, label: str = "", *, own: bool = False) -> Where:
        """Where a part of the value stands."""
        return self._replace(label=f"{self.label}{label}", own=own, depth=self.depth + 1)


class Watch(NamedTuple):
    """One place, and what stood there: behind a key, or all that is in a container."""

    read: Read
    holder: Any
    key: Any
    value: Any
    where: Where

    def unchanged(self) -> bool:
        """Whether it is as it was, plain numbers and text by value."""
        return alike(self.read(self.holder, self.key), self.value)

    def values(self) -> tuple[Any, ...]:
        """What stood there: the parts of a container."""
        inside = self.read in (data_of, items_of, parts_of)
        return tuple(self.value) if inside else (self.value,)

    def changes(self) -> Iterator[tuple[str, Any]]:
        """Where something else stands now, and what stood there: ``NOTHING`` where it is new."""
        now, label = self.read(self.holder, self.key), self.where.label
        if alike(now, self.value):
            return
        if self.read not in (items_of, parts_of):
            grown = self.read in (members_of, size_of) and self.value < now
            place = f"{label}.{self.key}" if label and self.key else label or str(self.key)
            yield place, NOTHING if grown else self.value
            return
        before, after = self._parts(self.value), self._parts(now)
        if before.keys() != after.keys():
            grown = self.read is items_of and before.keys() <= after.keys()
            yield label, NOTHING if grown else self.value
        for at, (key, value) in before.items():
            if at in after and not alike(after[at][1], value):
                yield f"{label}[{key!r}]", value

    def _parts(self, found: tuple[Any, ...]) -> dict[Any, tuple[Any, Any]]:
        """Parts with their keys, those of a dict by the id of the key, whose ``==`` may lie."""
        half = len(found) // 2
        if self.read is items_of:
            return {id(key): (key, found[half + at]) for at, key in enumerate(found[:half])}
        return {at: (at, part) for at, part in enumerate(found)}


def alike(a: Any, b: Any) -> bool:
    """Whether two values are the same object, or equal plain values."""
    if a is b:
        return True
    if type(a) is not type(b):
        return False
    if type(a) is tuple:
        return len(a) == len(b) and all(map(alike, a, b))
    return (type(a) in _PLAIN or isinstance(a, np.generic)) and same_value(a, b)


# What stands in a holder


def name_in(space: Any, name: Any) -> Any:
    """What a name stands for in a namespace, or in the attributes of an object."""
    return space.get(name, NOTHING)


def attribute_of(item: Any, name: Any) -> Any:
    """An attribute of an object that is kept elsewhere, such as in slots."""
    return getattr(item, name, NOTHING)


def parts_of(item: Any, _: Any) -> Any:
    """The parts of a list."""
    return tuple(item)


def items_of(item: Any, _: Any) -> Any:
    """The keys of a dict, and then its values."""
    return (*item, *item.values())


def members_of(item: Any, _: Any) -> Any:
    """What is in a set, each with its type, as what does not change."""
    return frozenset(map(typed, item))


def size_of(item: Any, _: Any) -> Any:
    """How much is in a container."""
    return len(item)


def data_of(item: Any, _: Any) -> Any:
    """What is in an array of NumPy, a bytearray, or an array or a view of memory."""
    if not isinstance(item, np.ndarray):
        return (memoryview(item).tobytes(),)
    objects = item.dtype.hasobject  # whose bytes are places in memory
    data = item.reshape(-1).tolist() if objects else [item.tobytes()]
    return (str(item.shape), item.dtype, *data)


def given_by(item: Any, _: Any = None) -> Any:
    """What a name of an outer function, a context variable or a weak reference stands for here."""
    try:
        if isinstance(item, CellType):
            return item.cell_contents
        return item() if isinstance(item, ReferenceType) else item.get()
    except (LookupError, ValueError):
        return NOTHING


# Asking of many places at once


def unchanged(watches: Sequence[Watch]) -> bool:
    """Whether all is as it was."""
    return all(map(Watch.unchanged, watches))


def first_change(watches: Iterable[Watch], *, own: bool) -> str | None:
    """The place of what a run has changed and a replay would leave as it is; None where none is.

    What is new in an object, or was None there, is a cache: it may remember what it has found out.

    Args:
        own: at what the function has by its own names, which it may not change; else at what
            helpers change, where new items of containers are a cache too.
    """
    for watch in watches:
        for place, before in watch.changes() if watch.where.own is own else ():
            new = before is NOTHING and bool(not own or (watch.key and watch.where.label))
            if not new and (own or before is not None):
                return f"{place}{watch.where.among}"
    return None


def write(source: Source, watches: Sequence[Watch], miss: str) -> None:
    """Add lines that do ``miss`` where another object may stand at a place than did."""
    lines = [f" if {_other(source, watch)}: {miss}" for watch in watches]
    if lines:
        for line in ("try:", *lines, f"except (AttributeError, KeyError, ValueError): {miss}"):
            source.line(line)


def _other(source: Source, watch: Watch) -> str:
    """What says that a place is not as it was; what is gone raises."""
    read, held, key, value, _ = watch
    holder = source.held(held, "outside")
    if value is NOTHING and read is name_in:
        return f"{source.constant(key)} in {holder}"
    if value is not NOTHING:
        if isinstance(held, CellType):
            return f"{holder}.cell_contents is not {source.held(value)}"
        if read is name_in:
            return f"{holder}[{source.constant(key)}] is not {source.held(value)}"
        if read is attribute_of and key.isidentifier() and not iskeyword(key):
            return f"{holder}.{key} is not {source.held(value)}"
    if read is size_of:
        return f"len({holder}) != {value}"
    if read in (items_of, parts_of) and not value:
        return holder
    return f"not {source.held(watch.unchanged, 'unchanged')}()"
