"""Is a place that a function reads as it was? What stood there, and how to look again."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import count
from keyword import iskeyword
from operator import is_
from types import CellType
from typing import Any, Final, NamedTuple
from weakref import ReferenceType

import numpy as np

from ..source import Source
from ..trees.plain import typed
from ..trees.static import same_value

NOTHING: Final = object()
_PLAIN: Final = frozenset({bool, bytes, float, frozenset, int, str})

# What stands behind the keys of a holder now; of a container, which has none, all of it.
Read = Callable[[Any, "tuple[Any, ...]"], "tuple[Any, ...]"]


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
    """What stood behind keys of a namespace or object; without keys all of a container."""

    read: Read
    holder: Any
    keys: tuple[Any, ...]
    values: tuple[Any, ...]
    where: Where

    def now(self) -> tuple[Any, ...]:
        """What stands there now."""
        return self.read(self.holder, self.keys)

    def unchanged(self) -> bool:
        """Whether it is as it was, plain numbers and text by value."""
        now = self.now()
        return len(now) == len(self.values) and all(map(alike, now, self.values))

    def same_objects(self) -> bool:
        """Whether the very same objects stand there, or equal bytes."""
        now, values = self.now(), self.values
        return len(now) == len(values) and (
            all(map(is_, now, values)) or all(map(_one, now, values))
        )

    def without_changed(self) -> Watch | None:
        """The watch without what a run has changed; None where nothing is left."""
        if self.unchanged():
            return self
        found = zip(self.keys, self.values, self.now(), strict=False)  # none without keys
        kept = {key: before for key, before, value in found if alike(value, before)}
        return self._replace(keys=(*kept,), values=(*kept.values(),)) if kept else None

    def pairs(self) -> Iterator[tuple[Any, Any]]:
        """What stood behind each key."""
        return zip(self.keys, self.values, strict=True)

    def changes(self) -> Iterator[tuple[str, Any]]:
        """Where something else stands now, and what stood there: ``NOTHING`` where it is new."""
        now, values = self.now(), self.values
        if len(now) != len(values) and self.read is not items_of:
            yield self.where.label, values
            return
        before, after = self._by_key(values), self._by_key(now)
        for at, (key, value) in before.items():
            then = after[at][1] if at in after else value
            if not alike(then, value):
                grown = self.read in (members_of, size_of) and value < then
                yield self._place(key), NOTHING if grown else value
        if before.keys() != after.keys():
            yield self.where.label, before if before.keys() - after.keys() else NOTHING

    def _by_key(self, found: tuple[Any, ...]) -> dict[Any, tuple[Any, Any]]:
        """Keys and values, those of a dict by the id of the key, whose ``==`` is the user's."""
        half = len(found) // 2
        if self.read is items_of:
            return {id(k): (k, v) for k, v in zip(found[:half], found[half:], strict=True)}
        return {at: (at, value) for at, value in zip(self.keys or count(), found, strict=False)}

    def _place(self, key: Any) -> str:
        """What a key of the holder is to the function."""
        label = self.where.label
        if self.read in (items_of, parts_of):
            return f"{label}[{key!r}]"
        return label if not self.keys else f"{label}.{key}" if label else str(key)


def alike(a: Any, b: Any) -> bool:
    """Whether two values are the same object, or equal plain values."""
    if a is b:
        return True
    if type(a) is not type(b):
        return False
    if type(a) is tuple:
        return len(a) == len(b) and all(map(alike, a, b))
    return (type(a) in _PLAIN or isinstance(a, np.generic)) and same_value(a, b)


def _one(a: Any, b: Any) -> bool:
    return a is b or (type(a) in (bytes, frozenset, str) and alike(a, b))


# What stands in a holder


def names_in(space: Mapping[Any, Any], keys: tuple[Any, ...]) -> tuple[Any, ...]:
    """What names stand for in a namespace, or in the attributes of an object."""
    return tuple([space.get(key, NOTHING) for key in keys])


def attributes_in(item: Any, keys: tuple[Any, ...]) -> tuple[Any, ...]:
    """What attributes of an object are that are kept elsewhere, such as in slots."""
    return tuple([getattr(item, key, NOTHING) for key in keys])


def parts_of(item: Any, _: tuple[Any, ...]) -> tuple[Any, ...]:
    """The parts of a list."""
    return tuple(item)


def items_of(item: dict[Any, Any], _: tuple[Any, ...]) -> tuple[Any, ...]:
    """The keys of a dict, and then its values."""
    return (*item, *item.values())


def members_of(item: Any, _: tuple[Any, ...]) -> tuple[Any, ...]:
    """What is in a set, each with its type, as what does not change."""
    return (frozenset(map(typed, item)),)


def size_of(item: Any, _: tuple[Any, ...]) -> tuple[Any, ...]:
    """How much is in a container."""
    return (len(item),)


def data_of(item: Any, _: tuple[Any, ...]) -> tuple[Any, ...]:
    """What is in an array of NumPy, a bytearray, or an array or a view of memory."""
    if not isinstance(item, np.ndarray):
        return (memoryview(item).tobytes(),)
    objects = item.dtype.hasobject  # whose bytes are places in memory
    return (
        str(item.shape),
        item.dtype,
        *(item.reshape(-1).tolist() if objects else [item.tobytes()]),
    )


def given_by(item: Any, _: tuple[Any, ...] = ()) -> tuple[Any, ...]:
    """What a name of an outer function, a context variable or a weak reference stands for here."""
    try:
        if isinstance(item, CellType):
            return (item.cell_contents,)
        return (item() if isinstance(item, ReferenceType) else item.get(),)
    except (LookupError, ValueError):
        return (NOTHING,)


# Asking of many places at once


def unchanged(watches: Sequence[Watch]) -> bool:
    """Whether all is as it was."""
    return all(map(Watch.unchanged, watches))


def without_changed(watches: Sequence[Watch]) -> list[Watch]:
    """The watches without what a run has changed."""
    return [left for watch in watches if (left := watch.without_changed()) is not None]


def first_change(watches: Iterable[Watch], *, own: bool) -> str | None:
    """The place of what a run has changed and a replay would leave as it is; None where none is.

    What is new in an object, or was None there, is a cache: it may remember what it has found out.

    Args:
        own: at what the function has by its own names, which it may not change; else at what
            helpers change, where new items of containers are a cache too.
    """
    for watch in watches:
        for place, before in watch.changes() if watch.where.own is own else ():
            new = before is NOTHING and bool(not own or (watch.keys and watch.where.label))
            if not new and (own or before is not None):
                return f"{place}{watch.where.among}"
    return None


def watching(watches: Sequence[Watch]) -> Callable[[], bool]:
    """Return what says at once whether the very same objects stand at all places."""
    source = Source()
    write(source, watches, "return False")
    source.line("return True")
    return source.function("same_objects", "")


def write(source: Source, watches: Sequence[Watch], miss: str) -> None:
    """Add lines that do ``miss`` where another object stands at a place than did."""
    lines = [line for watch in watches for line in _lines(source, watch, miss)]
    if lines:
        source.line("try:")
        for line in lines:
            source.line(f" {line}")
        source.line(f"except (AttributeError, KeyError, ValueError): {miss}")


def _lines(source: Source, watch: Watch, miss: str) -> Iterator[str]:
    """The lines for one place; what is gone raises."""
    holder = source.held(watch.holder, "outside")
    if isinstance(watch.holder, CellType) and watch.values[0] is not NOTHING:
        yield f"if {holder}.cell_contents is not {source.held(watch.values[0])}: {miss}"
    elif watch.read is names_in:
        for key, value in watch.pairs():
            name = source.constant(key)
            if value is NOTHING:
                yield f"if {name} in {holder}: {miss}"
            else:
                yield f"if {holder}[{name}] is not {source.held(value)}: {miss}"
    elif watch.read is size_of:
        yield f"if len({holder}) != {watch.values[0]}: {miss}"
    elif watch.read in (items_of, parts_of) and not watch.values:
        yield f"if {holder}: {miss}"
    elif watch.read is attributes_in and all(map(_is_name, watch.keys, watch.values)):
        for key, value in watch.pairs():
            yield f"if {holder}.{key} is not {source.held(value)}: {miss}"
    else:
        yield f"if not {source.held(watch.same_objects, 'same_objects')}(): {miss}"


def _is_name(key: str, value: Any) -> bool:
    return value is not NOTHING and key.isidentifier() and not iskeyword(key)
