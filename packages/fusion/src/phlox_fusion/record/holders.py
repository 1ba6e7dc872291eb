"""What stands in or behind holders of Python's own modules that are no plain containers?"""

from __future__ import annotations

from array import array
from collections import ChainMap, UserDict, UserList, UserString
from contextvars import ContextVar
from functools import cached_property, partial, partialmethod, singledispatchmethod
from types import BuiltinMethodType, MethodType, MethodWrapperType
from typing import Any, Final
from weakref import ReferenceType, WeakKeyDictionary, WeakSet, WeakValueDictionary

import numpy as np

# What each runs, and what it is bound to.
_BEHIND: Final[dict[type, tuple[str, ...]]] = {
    BuiltinMethodType: ("__self__",),
    MethodType: ("__func__", "__self__"),
    MethodWrapperType: ("__self__",),
    cached_property: ("func",),
    classmethod: ("__func__",),
    partial: ("func", "args", "keywords"),
    partialmethod: ("func", "args", "keywords"),
    property: ("fget",),
    singledispatchmethod: ("func", "dispatcher"),
    staticmethod: ("__func__",),
}

# Each keeps all in one attribute, which its methods may put another object into.
IN_ATTRIBUTES: Final = (
    *(ChainMap, UserDict, UserList, UserString),
    *(WeakKeyDictionary, WeakSet, WeakValueDictionary),
)
DATA: Final = ("data", "maps")  # those attributes
GIVING: Final = (ContextVar, ReferenceType)
BYTES: Final = (array, bytearray, memoryview)


def behind(item: Any) -> list[Any] | None:
    """What a method or descriptor runs, and what it is bound to; None for anything else."""
    for kind, names in _BEHIND.items():
        if isinstance(item, kind):
            return [getattr(item, name) for name in names]
    return None


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
