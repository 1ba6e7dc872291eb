"""What does a function read besides its arguments? One walk over names and what stands there."""

from __future__ import annotations

import builtins
import os
import sys
import types
from array import array
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextvars import ContextVar
from functools import cached_property, partial, partialmethod, singledispatchmethod
from operator import attrgetter, methodcaller
from random import Random
from threading import local
from types import CodeType, FunctionType, MappingProxyType, MethodType, ModuleType
from typing import Any, Final, NamedTuple, final
from weakref import ReferenceType

import numpy as np

from phlox_tensor import Backend, DType, Tensor, tree
from phlox_tensor.capture import is_ours

from .. import refused
from ..trees.layout import Layout, NodePart, StatePart, StaticPart
from ..trees.plain import is_frozen, is_pythons, is_users
from .code import ENVIRONMENT, WHOLE, absolute, names_of, words
from .watch import (
    NOTHING,
    Read,
    Watch,
    Where,
    attribute_of,
    data_of,
    given_by,
    items_of,
    members_of,
    name_in,
    parts_of,
    size_of,
)

_LEAVES: Final = (CodeType, bool, bytes, complex, float, int, str, type(None))
_OUR_LEAVES: Final = (Tensor, DType, Backend)
_FUNCTIONS: Final = (FunctionType, MethodType, partial)
_CONTAINERS: Final = (deque, dict, frozenset, list, MappingProxyType, set, tuple)
_GENERATORS: Final = (Random, np.random.Generator, np.random.RandomState, np.random.BitGenerator)
_MAKING: Final = frozenset({"__init__", "__new__", "__post_init__"})
_ASIDE: Final = frozenset(
    {"__annotate__", "__del__", "__getstate__", "__reduce__", "__repr__", "__setstate__"}
)

# What each runs, and what it is bound to.
_BEHIND: Final[dict[type, tuple[str, ...]]] = {
    types.BuiltinMethodType: ("__self__",),
    MethodType: ("__func__", "__self__"),
    types.MethodWrapperType: ("__self__",),
    cached_property: ("func",),
    classmethod: ("__func__",),
    partial: ("func", "args", "keywords"),
    partialmethod: ("func", "args", "keywords"),
    property: ("fget",),
    singledispatchmethod: ("func", "dispatcher"),
    staticmethod: ("__func__",),
}

# Classes of these modules keep what they hold in ``data`` or ``maps``, which methods may replace.
_HOLDING: Final = frozenset({"_weakrefset", "collections", "weakref"})


class Outside(NamedTuple):
    """What a function reads besides its arguments.

    Attributes:
        generators: what it may draw random numbers from.
        identities: tensors and containers, by id, which code may tell from others by `is`.
        does: what code does beside reading (``code.Names.does``).
    """

    watches: list[Watch]
    generators: tuple[Any, ...]
    identities: dict[int, Any]
    does: frozenset[str]


def outside_of(function: Callable[..., Any], arguments: Layout | None = None) -> Outside:
    """Return what a function reads besides its arguments.

    From its closure, its globals and its defaults a walk goes into what stands there: containers,
    objects, and further functions, as far as they are of the user's own.

    Args:
        arguments: of a call. Objects among them that are no trees count as outside.

    Raises:
        CompileError: for what is too large or too deep to be compared at each call.
    """
    walk = _Walk()
    walk.start(function)
    for part in () if arguments is None else arguments.parts:
        if isinstance(part, StaticPart):
            walk.add(part.value, _argument(part.value))
        elif isinstance(part, StatePart | NodePart):
            walk.add_class(part.type)
            for key in part.keys or () if isinstance(part, NodePart) else ():
                walk.add(key, _argument(key))
            rest = part.rest if isinstance(part, NodePart) else part.static
            walk.add_constants(rest, Where(part.type.__name__))
    return walk.found()


def _argument(value: Any) -> Where:
    return Where(type(value).__name__, " among the arguments", own=True)


@final
class _Open:
    """An object, module or class, whose attributes count as far as code names them."""

    def __init__(self, item: Any, place: Where, extra: Iterable[str] = ()) -> None:
        self.item, self.place, self.extra = item, place, {*extra}
        space: Any = getattr(item, "__dict__", None)
        self.by_thread = isinstance(item, local)  # each thread has attributes of its own
        known = isinstance(space, Mapping) and not self.by_thread
        self.space: Mapping[str, Any] = space if known else {}
        self.done: set[str] = set()


@final
class _Walk:
    """One way through all that a function reaches."""

    def __init__(self) -> None:
        self._work: deque[tuple[Any, Where]] = deque()
        self._seen: dict[int, Any] = {}
        self._seen_names: set[tuple[int, Any]] = set()
        self._watches: list[Watch] = []
        self._open: list[_Open] = []
        self._classes: dict[type, _Open] = {}
        # Attributes that some code names, that calls read, or a member of an Enum is read by.
        self._names = {"__wrapped__", "_name_", "_value_", "forward"}
        self._asked: set[str] = set()  # those that may be absent
        self._does = set[str]()  # what else code does
        self._identity = False  # it asks whether two objects are one
        self._generators: list[Any] = []
        self._count = 0

    def found(self) -> Outside:
        """Go on until nothing is new, and return what there is."""
        more = True
        while more:
            while self._work:
                self._visit(*self._work.popleft())
            for item in [*self._open, *self._classes.values()]:
                self._look_into(item)
            more = bool(self._work)
        for item in [*self._open, *self._classes.values()]:
            if not isinstance(item.item, ModuleType):  # attributes to come may decide anything
                self._watch(size_of, item.space, item.place._replace(own=False))
        told: dict[int, Any] = {}
        if self._identity:
            values = (value for watch in self._watches for value in watch.values())
            tensors = [x for x in values if isinstance(x, Tensor)]
            seen = filter(tree.is_node, self._seen.values())
            told = {id(x): x for x in [*seen, *tensors, *map(_base_of, tensors)]}
        return Outside(self._watches, tuple(self._generators), told, frozenset(self._does))

    def start(self, function: Any) -> None:
        """Begin with the function itself: what its own names stand for it may not change."""
        if isinstance(function, MethodType):
            self.add(function.__self__, Where("self", own=True))
            function = function.__func__
        call = vars(type(function)).get("__call__")
        if isinstance(function, FunctionType):
            self._seen[id(function)] = function
            self._function(function, own=True)
        elif isinstance(call, FunctionType) and not isinstance(function, partial):
            self.add(function, Where("self", own=True))
            self.start(call)
        else:
            self.add(function, Where(getattr(function, "__name__", type(function).__name__)))

    def add(self, item: Any, place: Where) -> None:
        """Go on to a value."""
        if not _is_leaf(item) and item is not NOTHING and id(item) not in self._seen:
            self._work.append((item, place))

    def add_class(self, cls: type, *, called: bool = False) -> None:
        """Go on to the methods and attributes of a class that code names, and what calls run."""
        bases = [base for base in cls.__mro__ if is_users(base.__module__)]
        every = {name: value for base in bases for name, value in vars(base).items()}
        own = {name for name, value in every.items() if name[:2] == "__" and callable(value)}
        for base in bases if is_users(cls.__module__) else ():
            if base not in self._classes:
                self._classes[base] = _Open(base, Where(base.__name__))
                self._watch(attribute_of, base, Where(base.__name__), "__mro__")
            item = self._classes[base]
            item.extra |= own - (_ASIDE if called else _ASIDE | _MAKING)

    def add_constants(self, rest: Any, place: Where) -> None:
        """Go on to what is behind constants, whose containers are compared with the arguments."""
        work, seen = [rest], set[int]()  # a dict may contain itself
        for item in work:
            if isinstance(item, deque | dict | list | tuple):
                if id(item) not in seen:
                    seen.add(id(item))
                    work += (*item, *item.values()) if isinstance(item, dict) else item
                    work += getattr(item, "__dict__", {}).values()
                    self.add_class(type(item))
            elif (isinstance(item, type) and item not in self._classes) or (
                isinstance(item, _FUNCTIONS) or _may_lead_on(item)
            ):
                self.add(item, place)

    def _watch(self, read: Read, holder: Any, place: Where, key: Any = None) -> Any:
        """Note what stands at a place, and return it."""
        watch = Watch(read, holder, key, read(holder, key), place)
        self._watches.append(watch)
        self._count += len(watch.values())
        return watch.value

    def _name(self, space: Any, name: Any, place: Where, *, own: bool = False) -> None:
        """Watch what a name stands for in a namespace, and go on there."""
        if (id(space), name) not in self._seen_names:
            self._seen_names.add((id(space), name))
            found = space.get(name, NOTHING)
            self.add(found, Where(place.label or str(name), own=own))
            if isinstance(found, ModuleType):
                changes = space is sys.modules and is_users(name)
            else:  # nobody need look at names of Python itself
                changes = found is not NOTHING or not hasattr(builtins, str(name))
            if changes:
                self._watch(name_in, space, place, name)

    # One value

    def _visit(self, item: Any, place: Where) -> None:
        if id(item) in self._seen:
            return
        deep = place.depth > refused.DEEPEST and not isinstance(item, FunctionType)
        if deep or self._count > refused.MOST_VALUES:
            raise refused.TOO_DEEP.of(f"more behind {place.name}")
        self._seen[id(item)] = item
        if isinstance(item, Iterator) and type(item).__module__ in ("builtins", "itertools"):
            raise refused.ITERATOR.of(f"{place.name}, a {type(item).__name__}")
        if isinstance(item, _GENERATORS):
            self._generators.append(item)
        if isinstance(item, FunctionType):
            self._function(item)
        elif isinstance(item, ModuleType | type):
            self._module_or_class(item, place)
        elif is_ours(type(item).__module__):
            self._ours(item, place)
        elif is_frozen(item):
            self.add_class(type(item))
            self._ours(item, place)
        elif self._of_python(item, place):
            if is_users(type(item).__module__):  # a class made from one of Python's own
                self._object(item, place)
        else:
            self._object(item, place)

    def _of_python(self, item: Any, place: Where) -> bool:
        """Watch what stands in a container or holder; False for any other object."""
        if (parts := _behind(item)) is not None:
            for part in parts:
                self.add(part, place.inside())
        elif isinstance(item, _CONTAINERS):
            self._container(item, place)
        elif isinstance(item, np.ndarray):
            self._array(item, place)
        elif isinstance(item, ContextVar | ReferenceType):
            self.add(self._watch(given_by, item, place), place.inside())
        elif isinstance(item, array | bytearray | memoryview):
            if memoryview(item).nbytes > refused.MOST_BYTES:
                raise refused.too_large(item, place.name)
            self._watch(data_of, item, place)
        else:
            return False
        return True

    def _container(self, item: Any, place: Where) -> None:
        if len(item) > refused.MOST_PARTS:
            if isinstance(item, tuple | frozenset) and all(map(_is_leaf, item)):
                return
            raise refused.too_large(item, place.name)
        pairs = item.items() if isinstance(item, Mapping) else enumerate(item)
        if not isinstance(item, tuple | frozenset):
            by_kind = members_of if isinstance(item, set) else parts_of
            self._watch(items_of if isinstance(item, Mapping) else by_kind, item, place)
        for key, part in pairs:
            self.add(key, place.inside())
            self.add(part, place.inside(f"[{key!r}]"))

    def _array(self, item: np.ndarray[Any, Any], place: Where) -> None:
        by, small = _writable(item), item.size <= refused.MOST_NUMBERS
        if by is not None and not small:
            base = place.label if by is item else f"{place.label}.base"
            raise refused.large_array(item, place.name, base)
        if by is not None:
            self._watch(data_of, item, place)
        if item.dtype.hasobject and small:
            for part in item.reshape(-1).tolist():
                self.add(part, place.inside())

    def _module_or_class(self, item: Any, place: Where) -> None:
        self.add_class(type(item))
        if isinstance(item, type):
            self.add_class(item, called=True)
        elif is_users(item.__name__) or not is_pythons(item.__name__):
            self._open.append(_Open(item, place))

    def _object(self, item: Any, place: Where) -> None:
        self.add_class(type(item))
        if is_users(type(item).__module__):
            self._watch(attribute_of, item, place, "__class__")
        if isinstance(item, attrgetter | methodcaller):
            self._asked |= words(repr(item))
            self._names |= self._asked
        holds = not _HOLDING.isdisjoint(base.__module__ for base in type(item).__mro__)
        self._open.append(_Open(item, place, ("data", "maps") if holds else ()))

    def _function(self, function: FunctionType, *, own: bool = False) -> None:
        """Watch what the names of a function stand for, and go on there."""
        space, code, place = function.__globals__, function.__code__, Where(function.__name__)
        users = own or is_users(str(space.get("__name__", "")))
        for part in vars(function).values():  # such as what it wraps, or one for each type
            if _holds_functions(part):
                self.add(part, place)
        for name, cell in zip(code.co_freevars, function.__closure__ or (), strict=True):
            now = given_by(cell)
            if users:
                self._watch(given_by, cell, Where("", own=own), name)
            if users or _holds_functions(now):
                self.add(now, Where(name, own=own))
        if not users:
            return
        known = names_of(code)
        self._names |= known.attributes
        self._asked |= known.asked
        self._does |= known.does
        self._identity |= not all(_is_class(name, space) for name in known.told_apart)
        for name in known.of_globals:
            self._name(space, name, Where("", own=own), own=own)
        for level, name in known.imports:
            full = absolute(name, level, space)
            for module in (full, full.partition(".")[0]):
                self._name(sys.modules, module, Where(""), own=own)
        if known.attributes & ENVIRONMENT:
            data: Any = vars(os.environ)["_data"]  # whose texts are the same objects each time
            for name in known.asked:
                self._name(data, os.environ.encodekey(name), Where("os.environ"))
        for name in ("__code__", "__defaults__", "__kwdefaults__"):
            if getattr(function, name):
                self.add(self._watch(attribute_of, function, place, name), place)
        self._open.append(_Open(function, place))

    def _ours(self, item: Any, place: Where) -> None:
        """Go on to functions and modules of the user's in what never changes by itself."""
        node = tree.node_of(item) if is_frozen(item) else None
        if node is not None:
            children, rest = node.flatten(item)
            for part in children.values() if isinstance(children, dict) else children:
                self.add(part, place)
            self.add_constants(rest, place.inside())
            for name in node.changing(rest) if node.changing is not None else ():
                self.add(getattr(item, name), place.inside(f".{name}"))
        for name, part in tree.attributes_of(item).items():
            if isinstance(part, _FUNCTIONS) or is_frozen(part) or _may_lead_on(part):
                self.add(part, place.inside(f".{name}"))

    # Attributes

    def _look_into(self, item: _Open) -> None:
        """Take up attributes of an object that code names since the last look."""
        names = self._names | item.extra | ({"__getattr__"} & item.space.keys())  # of a module
        if WHOLE in self._does and not isinstance(item.item, type):
            names |= {name for name in item.space if type(name) is str}
        slots = tree.slots_of(type(item.item))
        is_module = isinstance(item.item, ModuleType)
        absent = (names if "__getattr__" in item.space else self._asked) if is_module else ()
        for name in names - item.done:
            read: Read = name_in
            holder: Any = item.space
            if name in slots or (item.by_thread and hasattr(item.item, name)):
                read, holder = attribute_of, item.item
            elif name not in item.space and name not in absent:
                continue
            value = read(holder, name)
            own = item.place.own and item.place.label == "self"
            self.add(value, item.place.inside(f".{name}", own=own))
            if not isinstance(value, ModuleType):
                self._watch(read, holder, item.place, name)
        item.done |= names


def _is_leaf(item: Any) -> bool:
    """Whether there is nothing behind a value: of a class of the user's there may be methods."""
    if isinstance(item, _LEAVES):
        return not is_users(type(item).__module__)
    return isinstance(item, _OUR_LEAVES)


def _may_lead_on(item: Any) -> bool:
    """Whether a constant is an object of the user's, a set, or leads to functions."""
    return isinstance(item, set) or is_users(type(item).__module__) or _behind(item) is not None


def _holds_functions(item: Any) -> bool:
    """Whether something installed is a function that may be the user's, or leads to one."""
    known = isinstance(item, (*_FUNCTIONS, MappingProxyType, tuple)) or is_frozen(item)
    return known or "__wrapped__" in getattr(item, "__dict__", ())


def _is_class(dotted: str, space: Mapping[str, Any]) -> bool:
    """Whether a name stands for a class: no tensor or container is the same object as one."""
    first, *rest = dotted.split(".")
    found = space.get(first, vars(builtins).get(first))
    for name in rest:
        found = getattr(found, name, None) if isinstance(found, ModuleType) else None
    return isinstance(found, type)


def _behind(item: Any) -> list[Any] | None:
    """What a method or descriptor runs, and what it is bound to; None for anything else."""
    for kind, names in _BEHIND.items():
        if isinstance(item, kind):
            return [getattr(item, name) for name in names]
    return None


def _writable(item: np.ndarray[Any, Any]) -> Any:
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


def _base_of(tensor: Tensor[Any]) -> Any:
    """The primitive of the base device."""
    device, primitive = tensor.device, tensor.primitive
    while device.inner is not None:
        primitive, device = device.lower(primitive), device.inner
    return primitive
