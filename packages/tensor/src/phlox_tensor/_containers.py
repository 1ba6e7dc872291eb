"""How the containers of Python come apart and together again."""

from __future__ import annotations

import builtins
from array import array
from collections import OrderedDict, defaultdict, deque
from collections.abc import Callable, Collection, Sequence
from dataclasses import fields
from typing import Any, Final, NamedTuple

import numpy as np

from ._backend import Backend
from ._errors import ArgumentError, WrongTypeError
from ._tensor import Tensor

Children = dict[Any, Any] | Sequence[Any]
Flatten = Callable[[Any], tuple[Children, Any]]
Rebuild = Callable[[Any, Any], Any]


class Node(NamedTuple):
    """How values of a type come apart and together again."""

    flatten: Flatten
    rebuild: Rebuild
    known: bool  # one of Python's own containers: holds a tensor only if a part does
    static: Callable[[Any], Any] | None = None
    shared: bool = False  # one object at two places is one part of a tree
    slot: str | None = None  # where values that never change keep what compiled functions find


def _list(children: Any, cls: type[list[Any]]) -> Any:
    made: list[Any] = cls.__new__(cls)
    made.extend(children)
    return made


def _dict(children: Any, cls: type[dict[Any, Any]]) -> Any:
    made: dict[Any, Any] = cls.__new__(cls)
    made.update(children)
    return made


def _flatten_dataclass(value: Any) -> tuple[Children, Any]:
    names = [f.name for f in fields(value) if hasattr(value, f.name)]
    others = {k: v for k, v in getattr(value, "__dict__", {}).items() if k not in names}
    return {name: getattr(value, name) for name in names}, (type(value), others)


def _rebuild_dataclass(children: dict[str, Any], rest: tuple[type, dict[str, Any]]) -> Any:
    """Past the constructor, which could refuse or change what was accepted once."""
    cls, others = rest
    made: Any = object.__new__(cls)
    for name, value in {**others, **children}.items():
        object.__setattr__(made, name, value)
    return made


DATACLASS: Final = Node(_flatten_dataclass, _rebuild_dataclass, known=True)
NAMED_TUPLE: Final = Node(
    lambda value: (dict(zip(value._fields, value, strict=True)), type(value)),
    lambda children, cls: tuple.__new__(cls, children.values()),
    known=True,
)
KNOWN: Final[dict[type, Node]] = {
    OrderedDict: Node(
        lambda value: (value, type(value)), lambda children, cls: cls(children), known=True
    ),
    defaultdict: Node(
        lambda value: (value, (type(value), value.default_factory)),
        lambda children, rest: rest[0](rest[1], children),
        known=True,
    ),
    deque: Node(
        lambda value: (value, (type(value), value.maxlen)),
        lambda children, rest: rest[0](children, rest[1]),
        known=True,
    ),
    dict: Node(lambda value: (value, type(value)), _dict, known=True),
    list: Node(lambda value: (value, type(value)), _list, known=True),
    tuple: Node(
        lambda value: (value, type(value)),
        lambda children, cls: tuple.__new__(cls, children),
        known=True,
    ),
}

# Each iterates over numbers or characters, if at all, or holds tensors only while an op runs.
LEAVES: Final = (
    array,
    Backend,
    bytearray,
    bytes,
    memoryview,
    np.generic,
    np.ndarray,
    range,
    str,
    Tensor,
    type,
)


def check_registration(
    type: Any, flatten: Any, rebuild: Any, registered: Collection[builtins.type]
) -> None:
    """Refuse to register what is no class or known already, and functions that are none.

    Raises:
        ArgumentError: for the class.
        WrongTypeError: for what is no class, and for a function.
    """
    if not isinstance(type, builtins.type):
        raise WrongTypeError("tree", "not a class", got=repr(type), expected="a class")
    if type in registered or type in KNOWN:
        raise ArgumentError("tree", "the type is registered already", got=type.__qualname__)
    if issubclass(type, (*LEAVES, int, float, complex)):
        got = type.__qualname__
        raise ArgumentError("tree", "a leaf holds nothing", got=got, expected="a container")
    for name, function in (("flatten", flatten), ("rebuild", rebuild)):
        if not callable(function):
            raise WrongTypeError(
                "tree", f"{name} is no function", got=repr(function), expected="a function"
            )
