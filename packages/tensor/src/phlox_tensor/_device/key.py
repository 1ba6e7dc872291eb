"""What tells two calls of an op apart: attributes, shapes and element types, as a key."""

from __future__ import annotations

from struct import pack
from types import NoneType
from typing import Any, Final

from .._values.dtype import DType

# What a key holds as it is.
_PLAIN: Final = frozenset({DType, NoneType, int, str})


def exact(attributes: tuple[Any, ...]) -> tuple[Any, ...] | None:
    """Attributes in a form in which no float equals an integer, nor 0.0 another zero.

    Nor is a truth value a number there: it and floats become bytes. None where an attribute is of a
    type that no key holds: a key must not keep a tensor alive, and a list changes.
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
        elif kind is bool:
            out.append(b"\1" if item else b"\0")
        elif kind is tuple and (inside := exact(item)) is not None:
            out.append(inside)
        else:
            return None
    return tuple(out)
