"""What tells two calls of an op apart: attributes, shapes and element types, as a key."""

from __future__ import annotations

from struct import pack
from types import NoneType
from typing import Any, Final

from .._values.dtype import DType

# What a key holds as it is. Of bools and ints that compare equal, no op tells one from the other.
_PLAIN: Final = frozenset({DType, NoneType, bool, int, str})


def exact(attributes: tuple[Any, ...]) -> tuple[Any, ...] | None:
    """Attributes in a form in which no float equals an integer, nor 0.0 another zero.

    Floats become bytes. None where an attribute is of a type that no key holds: a key must not
    keep a tensor alive, and a list changes.
    """
    if _PLAIN.issuperset(map(type, attributes)):
        return attributes
    out: list[Any] = []
    for item in attributes:
        kind = type(item)
        if kind in _PLAIN:
            out.append(item)
        elif kind is float:
            out.append(pack("d", item))
        elif kind is tuple and (inside := exact(item)) is not None:
            out.append(inside)
        else:
            return None
    return tuple(out)
