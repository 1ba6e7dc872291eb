"""Watches: a place that a function reads, what stood there, and whether it still does."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from keyword import iskeyword
from operator import is_
from typing import Any, Final, NamedTuple

import numpy as np

from phlox_tensor.capture import same

from ..source import Source
from ..trees.plain import typed

NOTHING: Final = object()
_EQUAL: Final = (bytes, str)

# What stands behind the keys of a holder now; of a container, which has none, all of it.
Read = Callable[[Any, "tuple[Any, ...]"], "tuple[Any, ...]"]


class Watch(NamedTuple):
    """A place that a function reads, and what stood there.

    Attributes:
        read: says what stands there now.
        holder: the cell, namespace, object or container.
        keys: what is looked at in it; none: all of it.
        values: what stood there.
        label: what the holder is to the function, for errors; empty for its own names.
        among: what comes behind the place in errors.
        own: a name or argument of the function itself, which may not change it.
    """

    read: Read
    holder: Any
    keys: tuple[Any, ...]
    values: tuple[Any, ...]
    label: str
    among: str
    own: bool

    def holds(self) -> bool:
        """Whether it stands as it did, plain numbers and text by value."""
        now, values = self.read(self.holder, self.keys), self.values
        if len(now) != len(values):
            return False
        return all(map(is_, now, values)) or all(map(alike, now, values))

    def stands(self) -> bool:
        """Whether the very same objects stand there, or equal bytes."""
        now, values = self.read(self.holder, self.keys), self.values
        return len(now) == len(values) and all(map(_one, now, values))

    def left(self) -> Watch | None:
        """The watch without what a run has changed; None where nothing is left."""
        now = self.read(self.holder, self.keys)
        if not self.keys:
            held = len(now) == len(self.values) and all(map(alike, now, self.values))
            return self if held else None
        kept = [at for at, (a, b) in enumerate(zip(now, self.values, strict=True)) if alike(a, b)]
        if len(kept) == len(self.keys):
            return self
        keys = tuple(self.keys[at] for at in kept)
        values = tuple(self.values[at] for at in kept)
        return self._replace(keys=keys, values=values) if keys else None

    def changed(self) -> str | None:
        """The place of what the function may not have changed and has; else None.

        Attributes that are new do not count: an object may remember what it has found out.
        """
        now = self.read(self.holder, self.keys)
        if not self.keys:
            if len(now) != len(self.values):
                return f"{self.label}{self.among}"
            for at, (a, b) in enumerate(zip(now, self.values, strict=True)):
                if not alike(a, b):
                    return f"{self.label}{self._item(at)}{self.among}"
            return None
        for key, a, b in zip(self.keys, now, self.values, strict=True):
            if not alike(a, b) and not (b is NOTHING and self.label):
                return f"{self.label}.{key}{self.among}" if self.label else str(key)
        return None

    def altered(self) -> str | None:
        """The place of what stood there before and a run has changed; what is new is a cache."""
        now, place = self.read(self.holder, self.keys), f"{self.label}{self.among}"
        if self.keys:
            for key, a, b in zip(self.keys, now, self.values, strict=True):
                if b is not NOTHING and b is not None and not alike(a, b):
                    return f"{self.label}.{key}{self.among}" if self.label else str(key)
        elif self.read is items_of:
            half = len(self.values) // 2
            for key, value in zip(self.values[:half], self.values[half:], strict=True):
                if not alike(self.holder.get(key, NOTHING), value):
                    return f"{self.label}[{key!r}]{self.among}"
        elif self.read is members_of:
            return place if self.values[0] - now[0] else None
        elif len(now) != len(self.values) or not all(map(alike, now, self.values)):
            return place
        return None

    def _item(self, at: int) -> str:
        if self.read is items_of:
            keys = self.values[: len(self.values) // 2]
            return f"[{keys[at - len(keys)]!r}]" if at >= len(keys) else ""
        return f"[{at}]" if self.read is parts_of else ""


def alike(a: Any, b: Any) -> bool:
    """Whether two values are the same object, or equal plain values."""
    if a is b:
        return True
    if type(a) is not type(b):
        return False
    if type(a) in (bool, int, float):
        return same(a, b)
    if type(a) is tuple:
        return len(a) == len(b) and all(map(alike, a, b))
    if isinstance(a, np.generic):
        return a.tobytes() == b.tobytes()
    if type(a) is frozenset:
        return {*map(typed, a)} == {*map(typed, b)}
    return type(a) in _EQUAL and bool(a == b)


def _one(a: Any, b: Any) -> bool:
    return a is b or (type(a) is type(b) and type(a) in (*_EQUAL, frozenset) and alike(a, b))


# What stands in a holder


def content_of(cell: Any, keys: tuple[Any, ...]) -> tuple[Any, ...]:
    """What a name of an outer function stands for."""
    del keys
    return (inside(cell),)


def inside(cell: Any) -> Any:
    """What is in a cell; ``NOTHING`` where the name stands for nothing now."""
    try:
        return cell.cell_contents
    except ValueError:
        return NOTHING


def names_in(space: Mapping[str, Any], keys: tuple[Any, ...]) -> tuple[Any, ...]:
    """What names stand for in a namespace, or in the attributes of an object."""
    return tuple([space.get(key, NOTHING) for key in keys])


def variables_in(space: Mapping[str, Any], keys: tuple[Any, ...]) -> tuple[Any, ...]:
    """What variables of the environment are, each a text of its own each time."""
    return names_in(space, keys)


def attributes_in(item: Any, keys: tuple[Any, ...]) -> tuple[Any, ...]:
    """What attributes of an object are that are kept elsewhere, such as in slots."""
    return tuple([getattr(item, key, NOTHING) for key in keys])


def parts_of(item: Any, keys: tuple[Any, ...]) -> tuple[Any, ...]:
    """The parts of a list."""
    del keys
    return tuple(item)


def items_of(item: dict[Any, Any], keys: tuple[Any, ...]) -> tuple[Any, ...]:
    """The keys of a dict, and then its values."""
    del keys
    return (*item, *item.values())


def members_of(item: Any, keys: tuple[Any, ...]) -> tuple[Any, ...]:
    """What is in a set, each with its type, as what does not change."""
    del keys
    return (frozenset(map(typed, item)),)


def bytes_of(item: Any, keys: tuple[Any, ...]) -> tuple[Any, ...]:
    """The bytes of a bytearray, or of an array or a view of memory."""
    del keys
    return (memoryview(item).tobytes(),)


def class_of(item: Any, keys: tuple[Any, ...]) -> tuple[Any, ...]:
    """The class of an object."""
    del keys
    return (type(item),)


def size_of(item: Any, keys: tuple[Any, ...]) -> tuple[Any, ...]:
    """How much is in a container."""
    del keys
    return (len(item),)


def numbers_of(item: np.ndarray[Any, Any], keys: tuple[Any, ...]) -> tuple[Any, ...]:
    """What is in an array of NumPy."""
    del keys
    return (item.tobytes(), str(item.shape), item.dtype)


def objects_of(item: np.ndarray[Any, Any], keys: tuple[Any, ...]) -> tuple[Any, ...]:
    """The objects in an array of NumPy."""
    del keys
    return (str(item.shape), item.dtype, *item.reshape(-1).tolist())


# Asking of many places at once


def hold(watches: Sequence[Watch]) -> bool:
    """Whether all stands as it did."""
    return all(map(Watch.holds, watches))


def left_of(watches: Sequence[Watch]) -> list[Watch]:
    """The watches without what a run has changed."""
    return [left for watch in watches if (left := watch.left()) is not None]


def first_change(watches: Sequence[Watch]) -> str | None:
    """The place of what a function may not have changed and has; else None."""
    for watch in watches:
        place = watch.changed() if watch.own else None
        if place is not None:
            return place
    return None


def altered_by_a_helper(watches: Sequence[Watch]) -> str | None:
    """The place of what a helper changes each time it runs; None where there is none."""
    places = (watch.altered() for watch in watches if not watch.own)
    return next((place for place in places if place is not None), None)


def standing(watches: Sequence[Watch]) -> Callable[[], bool]:
    """Return what says at once whether the very same objects stand at all places."""
    source = Source()
    write(source, watches, "return False")
    source.line("return True")
    return source.function("stands", "")


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
    pairs = [*zip(watch.keys, watch.values, strict=False)]
    if watch.read is content_of and watch.values[0] is not NOTHING:
        yield f"if {holder}.cell_contents is not {source.held(watch.values[0])}: {miss}"
    elif watch.read is class_of:
        yield f"if type({holder}) is not {source.held(watch.values[0])}: {miss}"
    elif watch.read is names_in:
        for key, value in pairs:
            if value is NOTHING:
                yield f"if {key!r} in {holder}: {miss}"
            else:
                yield f"if {holder}[{key!r}] is not {source.held(value)}: {miss}"
    elif watch.read in (items_of, parts_of) and not watch.values:
        yield f"if {holder}: {miss}"
    elif watch.read is attributes_in and all(map(_is_name, watch.keys, watch.values)):
        for key, value in pairs:
            yield f"if {holder}.{key} is not {source.held(value)}: {miss}"
    else:
        yield f"if not {source.held(watch.stands, 'stands')}(): {miss}"


def _is_name(key: str, value: Any) -> bool:
    return value is not NOTHING and key.isidentifier() and not iskeyword(key)
