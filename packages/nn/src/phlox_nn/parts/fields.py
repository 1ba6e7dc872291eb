"""The fields of a module, and modules as nodes of trees.

Every field is a module, a container, a parameter, a tensor or a constant. Containers come apart by
``phlox_tensor.tree``; here stands what a module adds to it: that its constants are part of its
structure.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from phlox_tensor import Tensor, tree
from phlox_tensor.no_operand import NoOperand

from ..param.param import Param
from . import hidden as _hidden


class Structure(NamedTuple):
    """What is known of a module once it is complete; the same for those of one structure.

    Attributes:
        names: the names of the fields.
        has_params: whether it holds parameters.
        undecided: whether a part does not know yet if it trains.
        changeable: whether it holds lists or dicts of constants.
        height: how many modules stand inside each other, itself included.
    """

    names: tuple[str, ...]
    has_params: bool
    undecided: bool
    changeable: bool
    height: int


class ModuleNode(NoOperand):
    """What walks see of a module; the rest but ``_known`` is there once somebody asked."""

    __slots__ = ("__dict__", "__weakref__", "_flat", "_known", "_places", "_replayed")

    tensor_code = "model(x)"

    _known: Structure
    _flat: Any
    _places: dict[int, tuple[str, Any]]
    _replayed: Any


set_known: Final[Any] = ModuleNode.__dict__["_known"].__set__
set_flat: Final[Any] = ModuleNode.__dict__["_flat"].__set__
set_places: Final[Any] = ModuleNode.__dict__["_places"].__set__
# Makes a dict the attributes of a module; they are read faster than after ``vars(module).update``.
set_values: Final[Any] = ModuleNode.__dict__["__dict__"].__set__


PARTS: Final = (ModuleNode, Param, Tensor)
_CHANGING: Final = (deque, dict, list)
_CONTAINERS: Final = (*_CHANGING, tuple)


def fields_of(module: ModuleNode) -> dict[str, Any]:
    """Return the fields of a module by name: its attributes when it was complete.

    Raises:
        TreeError: for a parameter or module that came later, past ``__setattr__``.
    """
    values, names = vars(module), module._known.names
    if len(values) != len(names):
        _hidden.check_later(module, values, names, (ModuleNode, Param))
    return {name: values[name] for name in names}


def height(module: ModuleNode) -> int:
    """Return how many modules stand inside each other, the module itself included."""
    return module._known.height


def parts(value: Any) -> list[tuple[str, Any]]:
    """Return the named parts of a module or container; none for a leaf."""
    if isinstance(value, ModuleNode):
        return list(fields_of(value).items())
    return [] if isinstance(value, PARTS) else tree.children(value)


def join(path: str, name: str) -> str:
    """Return the path of a part."""
    return f"{path}.{name}" if path and name else path or name


def held_in(value: Any) -> list[tuple[str, Any]]:
    """The modules, parameters, tensors and constants in a field that holds more than constants."""
    if isinstance(value, PARTS):
        return [("", value)]
    return [] if holds_nothing(value) else tree.leaves_with_paths(value, leaf=PARTS)


def holds_nothing(value: Any) -> bool:
    """Whether no part can be in a field, as its type tells, or those of what it holds."""
    return _hidden.is_simple(value) or tree.is_plain(value)


def may_change(value: Any) -> bool:
    """Whether a field is a list or dict, or a tuple with one inside."""
    if isinstance(value, tuple):
        inside = any(issubclass(kind, _CONTAINERS) for kind in set(map(type, value)))
        return inside and any(may_change(item) for item in value)
    return isinstance(value, _CONTAINERS) and not isinstance(value, tuple)


def copy_of(value: Any) -> Any:
    """A container of constants, which only one module has."""
    return value.copy() if _hidden.is_flat(value) else tree.map(_itself, value)


def _itself(leaf: Any) -> Any:
    return leaf


# Modules as nodes of trees: parameters and modules are children, wherever in a field they stand;
# all else is part of the structure.


class _Held:
    """What stands in the place of a child among the constants of a module."""


_HELD: Final = _Held()


def flatten(module: ModuleNode) -> tuple[dict[str, Any], Any]:
    """Return parameters and modules by path, and what is needed to make the module again."""
    children: dict[str, Any] = {}
    constants: dict[str, Any] = {}
    # By field: what is around the parts in it, the other leaves, and the paths of the parts.
    containers: dict[str, tuple[tree.Structure, list[Any], list[str]]] = {}
    copied: list[str] = []  # so that no two modules share what could change
    for name, value in fields_of(module).items():
        constants[name] = value
        if tree.is_plain(value):
            continue
        if isinstance(value, ModuleNode | Param):
            children[name] = value
            constants[name] = None
        elif _hidden.is_simple(value):
            if may_change(value):
                copied.append(name)
        elif tree.is_node(value):
            named = tree.leaves_with_paths(value, leaf=PARTS)
            inside: dict[str, Any] = {}
            for at, part in named:
                if isinstance(part, ModuleNode | Param):
                    _hidden.add(inside, name, at, part)
            if inside:
                leaves, structure = tree.flatten(value, leaf=PARTS)
                held = [_HELD if isinstance(x, ModuleNode | Param) else x for x in leaves]
                constants[name] = None
                containers[name] = structure, held, list(inside)
                children |= inside
            elif may_change(value):
                copied.append(name)
    return children, (type(module), constants, containers, copied, module._known)


def rebuild(children: Mapping[str, Any], rest: Any) -> ModuleNode:
    """Make a module of other parameters and modules."""
    cls, constants, containers, copied, known = rest
    values = {**constants, **children} if not containers else dict(constants)
    for name in copied:
        values[name] = copy_of(values[name])
    if containers:
        given = dict(children)
        for name, (structure, held, paths) in containers.items():
            parts = iter([given.pop(path) for path in paths])
            values[name] = structure.rebuild([next(parts) if x is _HELD else x for x in held])
        values.update(given)
    made: ModuleNode = object.__new__(cls)
    set_values(made, values)
    set_known(made, known)
    return made


def _static(rest: Any) -> Any:
    """What tells modules apart whose parameters and parts are alike."""
    cls, constants, containers, _, _ = rest
    return cls, constants, containers


def _changing(rest: Any) -> tuple[str, ...]:
    """The fields that are containers, which may change although the module does not."""
    _, _, containers, copied, _ = rest
    if not containers and not copied:
        return ()
    return (*copied, *(n for n, (what, *_) in containers.items() if what.holds(_CHANGING)))


tree.register(
    ModuleNode,
    flatten,
    rebuild,
    _static,
    shared=True,
    slot="_replayed",
    whole=True,
    changing=_changing,
)
