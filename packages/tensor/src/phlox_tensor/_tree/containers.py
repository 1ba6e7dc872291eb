"""How the containers of Python come apart and together again."""

from __future__ import annotations

import builtins
from array import array
from collections import OrderedDict, defaultdict, deque
from collections.abc import Callable, Collection, Sequence
from dataclasses import fields
from typing import Any, Final, NamedTuple

import numpy as np

from .._device.backend import Backend
from .._errors.classes import ArgumentError, WrongTypeError
from .._op.declaration import Spec
from .._values.tensor import Tensor
from ..by_class import ByClass

Children = dict[Any, Any] | Sequence[Any]
Flatten = Callable[[Any], tuple[Children, Any]]
Rebuild = Callable[[Any, Any], Any]


class Coming(NamedTuple):
    """A tensor that is not made yet.

    Attributes:
        spec: its shape and element type.
        device: its device.
        leaf: whether it is a leaf, of which gradients are wanted.
        make: makes it of its primitive on the base device.
    """

    spec: Spec
    device: Backend
    leaf: bool
    make: Callable[[Any], Tensor[Any]]


Late = Callable[[Any, Coming], Callable[[Any], Any] | None]
Changing = Callable[[Any], Sequence[str]]


class Node(NamedTuple):
    """How values of a type come apart and together again."""

    flatten: Flatten
    rebuild: Rebuild
    builtin: bool  # one of Python's own containers: holds a tensor only if a part does
    static: Callable[[Any], Any] | None = None
    shared: bool = False  # one object at two places is one part of a tree
    slot: str | None = None  # where values that never change keep what compiled functions find
    whole: bool = False  # one thing to whoever looks for what is hidden, and hides nothing itself
    late: Late | None = None  # how compiled functions make one whose tensor nobody may ask for
    changing: Changing | None = (
        None  # attributes that are lists or dicts, of values that never change
    )
    whole_parts: Flatten | None = None  # for compiled functions, which have to see all tensors


def attributes_of(value: Any) -> dict[str, Any]:
    """Return what an object keeps in its attributes, those in slots included."""
    found = dict(getattr(value, "__dict__", ()))
    for name in slots_of(type(value)):
        if hasattr(value, name):
            found[name] = getattr(value, name)
    return found


def slots_of(cls: type) -> tuple[str, ...]:
    """Return the names of the slots of a class and of those that it is made from."""
    return _SLOTS.of(cls)


def _slots(cls: type) -> tuple[str, ...]:
    found = [name for base in cls.__mro__ for name in _own_slots(base)]
    return tuple(name for name in found if name not in ("__dict__", "__weakref__"))


def _own_slots(cls: type) -> list[str]:
    given = vars(cls).get("__slots__", ())
    names = [given] if isinstance(given, str) else list(given)
    private = f"_{cls.__name__.lstrip('_')}"
    return [private + n if n.startswith("__") and not n.endswith("__") else n for n in names]


_SLOTS: Final = ByClass(_slots)


def takes_attributes(cls: type) -> bool:
    """Whether values of a class can have attributes."""
    return bool(getattr(cls, "__dictoffset__", 0)) or bool(slots_of(cls))


def with_attributes(node: Node) -> Node:
    """Return how values of subclasses come apart, whose attributes go along."""

    def flatten(value: Any) -> tuple[Children, Any]:
        children, rest = node.flatten(value)
        return children, (rest, attributes_of(value))

    def rebuild(children: Any, rest: tuple[Any, dict[str, Any]]) -> Any:
        made = node.rebuild(children, rest[0])
        for name, value in rest[1].items():
            object.__setattr__(made, name, value)
        return made

    return node._replace(flatten=flatten, rebuild=rebuild)


# Past constructors and methods of subclasses, which may want other arguments.


def _list(children: Any, cls: type[list[Any]]) -> Any:
    made: list[Any] = list.__new__(cls)
    list.extend(made, children)
    return made


def _dict(children: Any, cls: type[dict[Any, Any]]) -> Any:
    made: dict[Any, Any] = dict.__new__(cls)
    dict.update(made, children)
    return made


def _ordered(children: Any, cls: type[OrderedDict[Any, Any]]) -> Any:
    made: OrderedDict[Any, Any] = OrderedDict.__new__(cls)
    for key, value in children.items():
        OrderedDict.__setitem__(made, key, value)
    return made


def _defaultdict(children: Any, rest: tuple[type[defaultdict[Any, Any]], Any]) -> Any:
    cls, factory = rest
    made: defaultdict[Any, Any] = defaultdict.__new__(cls)
    defaultdict.__init__(made, factory)
    dict.update(made, children)
    return made


def _deque(children: Any, rest: tuple[type[deque[Any]], int | None]) -> Any:
    cls, longest = rest
    made: deque[Any] = deque.__new__(cls)
    deque.__init__(made, children, longest)
    return made


def _flatten_dataclass(value: Any) -> tuple[Children, Any]:
    names = [f.name for f in fields(value) if hasattr(value, f.name)]
    others = {k: v for k, v in attributes_of(value).items() if k not in names}
    return {name: getattr(value, name) for name in names}, (type(value), others)


def _rebuild_dataclass(children: dict[str, Any], rest: tuple[type, dict[str, Any]]) -> Any:
    """Past the constructor, which could refuse or change what was accepted once."""
    cls, others = rest
    made: Any = object.__new__(cls)
    for name, value in {**others, **children}.items():
        object.__setattr__(made, name, value)
    return made


DATACLASS: Final = Node(_flatten_dataclass, _rebuild_dataclass, builtin=True)
NAMED_TUPLE: Final = Node(
    lambda value: (dict(zip(value._fields, value, strict=True)), type(value)),
    lambda children, cls: tuple.__new__(cls, children.values()),
    builtin=True,
)
KNOWN: Final[dict[type, Node]] = {
    OrderedDict: Node(lambda value: (value, type(value)), _ordered, builtin=True),
    defaultdict: Node(
        lambda value: (value, (type(value), value.default_factory)), _defaultdict, builtin=True
    ),
    deque: Node(lambda value: (value, (type(value), value.maxlen)), _deque, builtin=True),
    dict: Node(lambda value: (value, type(value)), _dict, builtin=True),
    list: Node(lambda value: (value, type(value)), _list, builtin=True),
    tuple: Node(
        lambda value: (value, type(value)),
        lambda children, cls: tuple.__new__(cls, children),
        builtin=True,
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
    """Refuse to register what is no class or known already, and functions that are none."""
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
