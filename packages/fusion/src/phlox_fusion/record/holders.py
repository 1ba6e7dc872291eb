"""Holders of Python's own modules that are no plain containers: what is in or behind them."""

from __future__ import annotations

from array import array
from collections import ChainMap, UserDict, UserList, UserString
from collections.abc import Iterable
from contextvars import ContextVar
from functools import cached_property, partial, partialmethod, singledispatchmethod
from operator import attrgetter, methodcaller
from types import BuiltinMethodType, MappingProxyType, MethodType, MethodWrapperType
from typing import Any, Final, NamedTuple
from weakref import ReferenceType, WeakKeyDictionary, WeakSet, WeakValueDictionary

import numpy as np

from .refused import MOST_BYTES
from .watch import NOTHING, Read, attributes_in, bytes_of, items_of, size_of

# Each keeps all in one attribute, which its methods may put another object into.
_INSIDE: Final[dict[type, str]] = {
    ChainMap: "maps",
    UserDict: "data",
    UserList: "data",
    UserString: "data",
    WeakKeyDictionary: "data",
    WeakSet: "data",
    WeakValueDictionary: "data",
}


class Held(NamedTuple):
    """What to watch of a holder.

    Attributes:
        read: says what stands there.
        keys: attributes that are looked at; none: what ``read`` gives by itself.
        parts: what stands in it, to go on to.
    """

    read: Read
    keys: dict[str, Any]
    parts: tuple[Any, ...]


def held_by(item: Any) -> Held | None:
    """What is in a holder of Python's own modules; None for anything else."""
    if isinstance(item, ContextVar):
        return Held(value_in, {}, value_in(item, ()))
    if isinstance(item, ReferenceType):
        return Held(referred_by, {}, referred_by(item, ()))
    if isinstance(item, MappingProxyType):
        return Held(items_of, {}, (*item, *item.values()))
    if isinstance(item, array | bytearray | memoryview):
        small = memoryview(item).nbytes <= MOST_BYTES
        return Held(bytes_of if small else size_of, {}, ())
    for base, name in _INSIDE.items():
        if isinstance(item, base):
            return Held(attributes_in, {name: (now := getattr(item, name))}, (now,))
    return None


def behind(item: Any) -> tuple[Any, ...] | None:
    """What a method or descriptor runs, and what it is bound to; None for anything else."""
    match item:
        case MethodType():
            return item.__func__, item.__self__
        case BuiltinMethodType() | MethodWrapperType():
            return (item.__self__,)
        case classmethod() | staticmethod():
            return (item.__func__,)
        case property():
            return (item.fget,)
        case cached_property():
            return (item.func,)
        case partialmethod():
            return item.func, item.args, item.keywords
        case singledispatchmethod():
            return item.func, item.dispatcher
        case _:
            return None


def names_asked(item: Any) -> Iterable[str]:
    """The attributes that a function of ``operator`` asks for."""
    if not isinstance(item, attrgetter | methodcaller):
        return ()
    reduced: Any = item.__reduce__()
    made, given = reduced[0], reduced[1]
    if isinstance(item, methodcaller):  # keywords are bound to what makes it
        given = (made.args if isinstance(made, partial) else given)[:1]
    return [part for text in given for part in text.split(".")]


def value_in(item: ContextVar[Any], keys: tuple[Any, ...]) -> tuple[Any, ...]:
    """What a context variable stands for here."""
    del keys
    try:
        return (item.get(),)
    except LookupError:
        return (NOTHING,)


def referred_by(item: ReferenceType[Any], keys: tuple[Any, ...]) -> tuple[Any, ...]:
    """What a weak reference stands for."""
    del keys
    return (item(),)


def writable(item: np.ndarray[Any, Any]) -> Any:
    """What the numbers of an array can be changed by: itself or what it is a view of; else None."""
    part: Any = item
    while isinstance(part, np.ndarray):
        if part.flags.writeable:
            return part
        part = part.base
    try:
        return None if part is None or memoryview(part).readonly else part
    except TypeError:
        return None
