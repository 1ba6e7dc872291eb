"""What a function takes from outside: names, and what stands behind them, to be watched."""

from __future__ import annotations

import os
import sys
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from enum import Enum
from functools import partial
from random import Random
from types import CodeType, FunctionType, MethodType, ModuleType
from typing import Any, Final, NamedTuple, final

import numpy as np

from phlox_tensor import Backend, DType, Tensor, tree
from phlox_tensor.capture import is_ours

from ..trees.layout import Layout, NodePart, StatePart, StaticPart
from ..trees.plain import is_pythons, is_users
from .code import ASKING, Names, absolute, names_of
from .holders import behind, held_by, names_asked, writable
from .refused import (
    DEEPEST,
    MOST_NUMBERS,
    MOST_PARTS,
    MOST_VALUES,
    an_iterator,
    large_array,
    too_deep,
    too_large,
)
from .slots import Open, Slots, is_data
from .watch import (
    NOTHING,
    Read,
    Watch,
    attributes_in,
    class_of,
    content_of,
    inside,
    items_of,
    members_of,
    names_in,
    numbers_of,
    objects_of,
    parts_of,
    size_of,
    variables_in,
)

_LEAVES: Final = (bool, bytes, complex, float, int, str, type(None))
_OUR_LEAVES: Final = (Tensor, DType, Backend)
_FUNCTIONS: Final = (FunctionType, MethodType, partial)
_WRAPPED: Final = ("__wrapped__", "_called")
_ASKING: Final = ASKING | {"methodcaller"}
_WHOLE: Final = frozenset({"__dict__", "asdict", "astuple", "dir", "getmembers", "vars"})
_ENVIRONMENT: Final = frozenset({"environ", "getenv"})
_GENERATORS: Final = (Random, np.random.Generator, np.random.RandomState, np.random.BitGenerator)
_COMPUTING: Final = frozenset({"__getattr__"})
_OF_MEMBERS: Final = frozenset({"_name_", "_value_"})  # which name and value of a member read
_METHODS: Final = frozenset({"forward"})  # those that are called by no name of the user's


class Outside(NamedTuple):
    """What a function reads besides its arguments.

    Attributes:
        watches: what to watch, as it stands now.
        generators: what it may draw random numbers from.
        named: tensors and containers, by id, which code may tell from others by identity.
    """

    watches: list[Watch]
    generators: tuple[Any, ...]
    named: dict[int, Any]


def outside_of(function: Callable[..., Any], arguments: Iterable[Layout] = ()) -> Outside:
    """Return what a function reads besides its arguments.

    From its closure, its globals and its defaults a walk goes into what stands there: containers,
    objects, and further functions, as far as they are of the user's own.

    Args:
        function: the function.
        arguments: of a call. Objects among them that are no trees count as outside.

    Raises:
        CompileError: for what is too large or too deep to be compared at each call.
    """
    walk = _Walk()
    walk.start(function)
    for layout in arguments:
        for part in layout.parts:
            if isinstance(part, StaticPart):
                label = type(part.value).__name__
                walk.add(part.value, label, among=" among the arguments", own=True)
            elif isinstance(part, StatePart):
                walk.constants_in(part.static, part.type.__name__)
            elif isinstance(part, NodePart):
                walk.look_up(part.type)
                for key in part.keys or ():
                    walk.add(key, type(key).__name__, among=" among the arguments", own=True)
                walk.constants_in(part.rest, part.type.__name__)
    return walk.found()


@final
class _Walk:
    """One way through all that a function reaches."""

    def __init__(self) -> None:
        self._work: deque[tuple[Any, str, str, bool, int]] = deque()
        self._seen: dict[int, Any] = {}
        self._globals: dict[int, set[str]] = {}
        self._imported: set[str] = set()
        self._watches: list[Watch] = []
        self._open: list[Open] = []
        self._classes: dict[type, Slots] = {}
        self._names = set(_METHODS)  # attributes that some code names
        self._asked: set[str] = set()  # those that may be absent
        self._whole = False  # code looks at all attributes at once
        self._identity = False  # code asks whether two objects are one
        self._generators: list[Any] = []
        self._super = False  # code goes on behind the class that has a method
        self._count = 0

    def found(self) -> Outside:
        """Go on until nothing is new, and return what there is."""
        more = True
        while more:
            while self._work:
                self._visit(*self._work.popleft())
            for item in self._open:
                self._look_into(item)
            for slots in [*self._classes.values()]:
                for label, value in slots.look(self._names):
                    self.add(value, label)
            more = bool(self._work)
        for item in self._open:
            if is_users(type(item.item).__module__):
                self._watch(class_of, item.item, {}, item.label)
            if self._whole and not isinstance(item.item, ModuleType):
                self._watch(size_of if item.space else items_of, item.space, {}, item.label)
            if item.keys:
                self._watch(names_in, item.space, item.keys, item.label, item.among, own=item.own)
            if item.slots:
                self._watch(
                    attributes_in, item.item, item.slots, item.label, item.among, own=item.own
                )
        for slots in self._classes.values():
            for read, holder, keys in slots.places(behind=self._super):
                self._watch(read, holder, keys, slots.cls.__name__)
        seen = filter(tree.is_node, self._seen.values()) if self._identity else ()
        values = (value for watch in self._watches for value in watch.values)
        tensors = [x for x in values if isinstance(x, Tensor)] if self._identity else []
        named = {id(x): x for x in [*seen, *tensors, *map(_base_of, tensors)]}
        return Outside(self._watches, tuple(self._generators), named)

    def add(
        self, item: Any, label: str, among: str = "", *, own: bool = False, depth: int = 0
    ) -> None:
        """Go on to a value."""
        if not _is_leaf(item) and item is not NOTHING and id(item) not in self._seen:
            self._work.append((item, label, among, own, depth))

    def start(self, function: Any) -> None:
        """Begin with the function itself: what its own names stand for it may not change."""
        if isinstance(function, MethodType):
            self.add(function.__self__, "self", own=True)
            function = function.__func__
        if isinstance(function, FunctionType):
            self._seen[id(function)] = function
            self._function(function, own=True)
            return
        call = vars(type(function)).get("__call__")
        if isinstance(call, FunctionType) and not isinstance(function, partial):
            self.add(function, "self", own=True)
            self.start(call)
            return
        self.add(function, getattr(function, "__name__", type(function).__name__))

    def look_up(self, cls: type, *, called: bool = False) -> None:
        """Go on to the methods and attributes of a class that code names, and what calls run."""
        if is_users(cls.__module__):
            slots = self._classes.setdefault(cls, Slots(cls, is_users))
            slots.called = slots.called or called

    def constants_in(self, rest: Any, label: str, depth: int = 0) -> None:
        """Go on to functions, classes and objects of the user's among the constants of a node."""
        work, seen = [rest], set[int]()  # a dict may contain itself
        for item in work:
            if isinstance(item, list | tuple | dict | deque):
                if id(item) not in seen:
                    seen.add(id(item))
                    work += (*item, *item.values()) if isinstance(item, dict) else item
                    work += getattr(item, "__dict__", {}).values()
                    self.look_up(type(item))
            elif isinstance(item, type):
                if item not in self._classes:
                    self.add(item, label, depth=depth)
            elif isinstance(item, _FUNCTIONS) or behind(item) is not None or _is_object(item):
                self.add(item, label, depth=depth)

    def _watch(
        self,
        read: Read,
        holder: Any,
        keys: dict[str, Any],
        label: str = "",
        among: str = "",
        *,
        own: bool = False,
    ) -> None:
        values = tuple(keys.values()) if keys else read(holder, ())
        self._watches.append(Watch(read, holder, tuple(keys), values, label, among, own))
        self._count += len(values)

    # One value

    def _visit(self, item: Any, label: str, among: str, own: bool, depth: int) -> None:
        if id(item) in self._seen:
            return
        if self._count > MOST_VALUES or (depth > DEEPEST and not isinstance(item, FunctionType)):
            raise too_deep(f"{label}{among}")
        self._seen[id(item)] = item
        self._moving(item, f"{label}{among}")
        if isinstance(item, FunctionType):
            self._function(item)
        elif isinstance(item, partial):
            self._container(item.keywords, label, among, own=own, depth=depth)
            for part in (item.func, *item.args):
                self.add(part, label, depth=depth + 1)
        elif (parts := behind(item)) is not None:
            for part in parts:
                self.add(part, label, depth=depth + 1)
        elif isinstance(item, np.ndarray):
            self._array(item, label, among, own=own, depth=depth)
        elif isinstance(item, list | tuple | dict | set | frozenset | deque):
            self._container(item, label, among, own=own, depth=depth)
        elif (held := held_by(item)) is not None:
            if held.read is size_of:
                raise too_large(item, f"{label}{among}")
            self._watch(held.read, item, held.keys, label, among, own=own)
            for part in held.parts:
                self.add(part, label, among, own=own, depth=depth + 1)
        else:
            self._object(item, label, among, own=own, depth=depth)
            return
        if is_users(type(item).__module__):  # a class made from one of Python's own
            self.look_up(type(item))
            self._open.append(Open(item, label, among, own, depth))

    def _moving(self, item: Any, where: str) -> None:
        """Refuse what gives another value each time, and note what random numbers come from."""
        if isinstance(item, Iterator) and type(item).__module__ in ("builtins", "itertools"):
            raise an_iterator(item, where)
        if isinstance(item, _GENERATORS):
            self._generators.append(item)

    def _object(self, item: Any, label: str, among: str, *, own: bool, depth: int) -> None:
        if isinstance(item, ModuleType | type):
            module = item.__name__ if isinstance(item, ModuleType) else item.__module__
            self.look_up(type(item))
            if isinstance(item, type):
                self.look_up(item, called=True)
            elif is_users(module) or not is_pythons(module):
                self._open.append(Open(item, label, among, own, depth))
        elif is_ours(type(item).__module__):
            self._ours(item, label, depth)
        else:
            self.look_up(type(item))
            self._wrapped(item, label)
            asked = names_asked(item)
            self._names.update(asked)
            self._asked.update(asked)
            if isinstance(item, Enum):
                self._names |= _OF_MEMBERS
            if is_frozen(item):
                self._ours(item, label, depth)
            else:
                self._open.append(Open(item, label, among, own, depth))

    def _function(self, function: FunctionType, *, own: bool = False) -> None:
        """Watch what the names of a function stand for, and go on there."""
        space = function.__globals__
        free = function.__code__.co_freevars
        cells = [*zip(free, function.__closure__ or (), strict=True)]
        if space.get("__name__") == "functools":  # of singledispatch: functions by type
            self.add(vars(function).get("registry"), function.__name__)
        if not own and not is_users(str(space.get("__name__", ""))):
            for name, cell in cells:
                self._function_in(inside(cell), name)
            self._wrapped(function, function.__name__)
            return
        for name, cell in cells:
            now = inside(cell)
            self._watch(content_of, cell, {name: now}, own=own)
            self.add(now, name, own=own)
        known = self._code(function.__code__)
        seen = self._globals.setdefault(id(space), set())
        named = known.of_globals | (known.texts if "globals" in known.of_globals else set())
        new = [name for name in named if name not in seen]
        seen.update(new)
        keys = {name: space.get(name, NOTHING) for name in new}
        for name, item in keys.items():
            self.add(item, name, own=own)
        self._imports(known, space, own=own)
        looked = {k: v for k, v in keys.items() if _may_change(k, v)}
        if looked:
            self._watch(names_in, space, looked, own=own)
        its = {
            k: v
            for k in ("__code__", "__defaults__", "__kwdefaults__")
            if (v := getattr(function, k))
        }
        self._watch(attributes_in, function, its, function.__name__)
        self.add(function.__defaults__, function.__name__)
        self.add(function.__kwdefaults__, function.__name__)
        self._open.append(Open(function, function.__name__, "", False, 0))
        self._wrapped(function, function.__name__)

    def _imports(self, known: Names, space: dict[str, Any], *, own: bool) -> None:
        """Go on to modules of the user's that code imports as it runs, and watch which they are."""
        for level, name in known.imports:
            full = absolute(name, level, space)
            for place in {full, full.partition(".")[0]} - self._imported:
                self._imported.add(place)
                found = sys.modules.get(place, NOTHING)
                if found is NOTHING or is_users(place):
                    self._watch(names_in, sys.modules, {place: found})
                self.add(found, place, own=own)

    def _code(self, code: CodeType) -> Names:
        known = names_of(code)
        self._names |= known.attributes
        if known.attributes & _ASKING or known.of_globals & _ASKING:
            self._asked |= known.texts
            self._names |= known.texts
        names = known.attributes | known.of_globals
        if names & _ENVIRONMENT:
            keys = {name: os.environ.get(name, NOTHING) for name in sorted(known.texts)}
            self._watch(variables_in, os.environ, keys, "os.environ")
        self._identity = self._identity or known.identity
        self._whole = self._whole or known.whole or bool(names & _WHOLE)
        self._super = self._super or "super" in known.of_globals
        return known

    def _function_in(self, item: Any, label: str) -> None:
        """Go on to what is a function of the user's, or holds one and never changes."""
        known = isinstance(item, (*_FUNCTIONS, tuple)) or is_frozen(item)
        if known or "__wrapped__" in getattr(item, "__dict__", ()):
            self.add(item, label)

    def _ours(self, item: Any, label: str, depth: int) -> None:
        """Go on to functions and modules of the user's in what never changes by itself."""
        self._wrapped(item, label)
        if is_frozen(item):
            for name, part in tree.children(item):
                self.add(part, f"{label}.{name}", depth=depth)
            node = tree.node_of(item)
            assert node is not None
            _, rest = node.flatten(item)
            self.constants_in(rest, label, depth + 1)
            for name in node.changing(rest) if node.changing is not None else ():
                self.add(getattr(item, name), f"{label}.{name}", depth=depth + 1)
        for name, part in tree.attributes_of(item).items():
            if isinstance(part, _FUNCTIONS) or (_is_object(part) and not isinstance(part, type)):
                self.add(part, f"{label}.{name}", depth=depth + 1)

    def _wrapped(self, item: Any, label: str) -> None:
        for name in _WRAPPED:
            self._function_in(getattr(item, "__dict__", {}).get(name), label)

    def _container(self, item: Any, label: str, among: str, *, own: bool, depth: int) -> None:
        if len(item) > MOST_PARTS:
            if isinstance(item, tuple | frozenset) and all(map(_is_leaf, item)):
                return
            raise too_large(item, f"{label}{among}")
        if isinstance(item, dict):
            self._watch(items_of, item, {}, label, among, own=own)
        elif isinstance(item, set):
            self._watch(members_of, item, {}, label, among, own=own)
        elif isinstance(item, list | deque):
            self._watch(parts_of, item, {}, label, among, own=own)
        pairs = item.items() if isinstance(item, dict) else enumerate(item)
        for key, part in pairs:
            self.add(key, label, among, depth=depth + 1)
            self.add(part, f"{label}[{key!r}]", among, depth=depth + 1)

    def _array(
        self, item: np.ndarray[Any, Any], label: str, among: str, *, own: bool, depth: int
    ) -> None:
        objects = item.dtype.hasobject  # whose bytes are places in memory
        if objects and item.size <= MOST_NUMBERS:
            for part in item.reshape(-1).tolist():
                self.add(part, label, among, depth=depth + 1)
        by = writable(item)
        if by is None:
            return
        if item.size > MOST_NUMBERS:
            place = label if by is item else f"{label}.base"
            raise large_array(item, f"{label}{among}", place)
        self._watch(objects_of if objects else numbers_of, item, {}, label, among, own=own)

    # Attributes

    def _look_into(self, item: Open) -> None:
        """Take up attributes of an object that code names since the last look."""
        names = self._names | (_COMPUTING & item.space.keys())  # of a module
        if self._whole:
            names |= {*filter(_is_text, item.space)}
        cls = type(item.item)
        slots = tree.slots_of(cls)
        for name in names - item.done:
            if name in item.space:
                value = item.space[name]
                if not isinstance(value, ModuleType):
                    item.keys[name] = value
            elif name in slots or (item.by_thread and hasattr(item.item, name)):
                value = item.slots[name] = getattr(item.item, name, NOTHING)
            elif _may_come(item, name, self._asked):
                value = item.keys[name] = NOTHING
            else:
                continue
            own, depth = item.own and item.label == "self", item.depth + 1
            self.add(value, f"{item.label}.{name}", item.among, own=own, depth=depth)
        item.done |= names


def _is_leaf(item: Any) -> bool:
    """Whether there is nothing behind a value: of a class of the user's there may be methods."""
    if isinstance(item, _LEAVES):
        return not is_users(type(item).__module__)
    return isinstance(item, _OUR_LEAVES)


def _base_of(tensor: Tensor[Any]) -> Any:
    """The primitive of the base device."""
    device, primitive = tensor.device, tensor.primitive
    while device.inner is not None:
        primitive, device = device.lower(primitive), device.inner
    return primitive


def _is_object(item: Any) -> bool:
    """Whether a constant is an object of the user's, or a set, both of which may change."""
    return isinstance(item, set) or is_users(type(item).__module__)


def _is_text(key: object) -> bool:
    return type(key) is str


def _may_come(item: Open, name: str, asked: set[str]) -> bool:
    """Whether an attribute that an object lacks may be given to it and then be read."""
    cls = type(item.item)
    if not isinstance(item.space, dict):
        return False
    found = next((vars(base)[name] for base in cls.__mro__ if name in vars(base)), NOTHING)
    if found is NOTHING:
        return name in asked or bool(_COMPUTING & item.space.keys()) or _computes(cls)
    if not hasattr(type(found), "__get__"):
        return True
    return name[:2] != "__" and is_users(cls.__module__) and not is_data(found)


def _computes(cls: type) -> bool:
    """Whether a class of the user's says what attributes are that its objects lack."""
    return any("__getattr__" in vars(base) for base in cls.__mro__ if is_users(base.__module__))


def _may_change(name: str, value: Any) -> bool:
    """Whether to look at a global name: at those of modules and of Python itself nobody need."""
    if value is NOTHING:
        return not hasattr(sys.modules["builtins"], name)
    return not isinstance(value, ModuleType)


def is_frozen(item: Any) -> bool:
    """Whether an object never changes: a module, or another immutable node of trees."""
    node = tree.node_of(item) if tree.is_node(item) else None
    return node is not None and node.static is not None
