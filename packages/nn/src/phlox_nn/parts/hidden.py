"""What a field hides: parameters, modules and tensors inside values that do not come apart."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import fields, is_dataclass
from functools import cache, partial
from inspect import get_annotations
from io import IOBase
from sys import stdlib_module_names
from types import CellType, FunctionType, MethodType, NoneType
from typing import Any, Final

from phlox_tensor import ArgumentError, Backend, Tensor, TreeError, tree
from phlox_tensor.by_class import ByClass
from phlox_tensor.no_operand import NoOperand

from ..param.param import Param

Inside = Callable[[Any], list[Any]]

_LEAVES: Final = (Backend, Param, Tensor)
# Values of these types hold nothing.
_SIMPLE: Final = frozenset({bool, bytes, complex, float, int, str, NoneType})
_TEXT: Final = frozenset({str})
_NESTED: Final = _SIMPLE | {dict, list, tuple}
_DEEP: Final = 32  # levels of containers for the quick look, which a list in itself would never end


def check(name: str, owner: str, value: Any, parts: tuple[type, ...]) -> None:
    """Refuse a field that hides what a walk over a module should see.

    Args:
        name: of the field.
        owner: the class of the module.
        value: of the field.
        parts: the types that a walk sees.
    """
    if _is_clear(value, parts, _DEEP):
        return
    try:
        _look(name, owner, value, parts)
    except TreeError as error:
        if error.op != "tree":
            raise
        what = f"{name} of {owner}: {error.what}"
        got, expected, hint = error.got, error.expected, error.hint
        raise TreeError("module", what, got=got, expected=expected, hint=hint) from error


def _look(name: str, owner: str, value: Any, parts: tuple[type, ...]) -> None:
    """Go through all that a field holds."""
    seen: dict[int, Any] = {}  # kept: an id belongs to one object only while that is there
    work: list[tuple[str, Any]] = [(name, value)]
    while work:
        path, item = work.pop()
        if isinstance(item, parts) or id(item) in seen or is_simple(item):
            continue
        seen[id(item)] = item
        for inner, node in tree.nodes_with_paths(item, leaf=parts):
            where, held = f"{path}.{inner}" if inner else path, _beside(node)
            _refuse(where, owner, node, held, parts)
            work += [(where, each) for each in held]
        for inner, leaf in tree.leaves_with_paths(item, leaf=parts):
            if type(leaf) in _SIMPLE or isinstance(leaf, parts):
                continue
            where = f"{path}.{inner}" if inner else path
            if is_used_up(type(leaf)):
                raise _used_up(where, owner, leaf)
            inside = opener(type(leaf))
            held = inside(leaf) if inside is not None else []
            _refuse(where, owner, leaf, held, parts)
            work += [(where, each) for each in held]


def add(found: dict[str, Any], name: str, path: str, part: Any) -> None:
    """Put a part of the container in a field by its path, unless that is no path of its own.

    Raises:
        TreeError: naming the path, for one that another part has, and for a key that is empty.
    """
    whole = f"{name}.{path}"
    if whole in found or "" in path.split("."):
        raise TreeError(
            "module",
            "two parts have one path" if whole in found else "a key of a dict makes no path",
            got=whole,
            expected="keys of dicts that differ as text and are not empty, without dots",
            hint='{"first": part, "second": part}',
        )
    found[whole] = part


def no_name(name: str, owner: str) -> TreeError:
    """Return the error for a field whose name could be the path of something else."""
    return TreeError(
        "module",
        f"the name of a field of {owner} makes no path",
        got=repr(name),
        expected="a name of Python",
        hint="self.parts = {name: part}",
    )


def no_field(name: str, owner: str) -> TreeError:
    """Return the error for a field that would hide what every module has, such as a method."""
    return TreeError(
        "module",
        f"a field of {owner} would hide what every module has",
        got=repr(name),
        expected="another name",
        hint=f"self.own_{name.strip('_')} = ...",
    )


def check_later(
    module: Any, values: dict[str, Any], names: tuple[str, ...], parts: tuple[type, ...]
) -> None:
    """Refuse parts that a complete module got past ``__setattr__``."""
    for name in values.keys() - set(names):
        if _leaves(values[name], parts):
            raise late(type(module).__name__, name, values[name])


def late(owner: str, name: str, value: Any) -> TreeError:
    """Return the error for a part that came when the fields of a module were settled."""
    return TreeError(
        "module",
        f"{name} of {owner} came after its fields, so it would never train or be saved",
        got=type(value).__name__,
        expected="a field, which is there when the constructor returns",
        hint=f"self.{name} = ... in __init__",
    )


def unseen(owner: str, path: str) -> ArgumentError:
    """Return the error for a tensor in a field that wants a gradient, and is no parameter."""
    return ArgumentError(
        "module",
        f"{path} of {owner} is not seen as a parameter",
        got="a tensor that wants a gradient",
        expected="a parameter, or a constant",
        hint="nn.Param(x) to train it, x.detach() for a constant",
    )


def is_simple(value: Any, depth: int = _DEEP) -> bool:
    """Whether a value is a number, text or None, or lists, tuples and dicts of them alone."""
    cls = type(value)
    if cls in _SIMPLE:
        return True
    if cls is dict:
        if not _TEXT.issuperset(map(type, value)):
            return False
        value = value.values()
    elif cls is not list and cls is not tuple:
        return False
    kinds = set(map(type, value))
    if kinds <= _SIMPLE:
        return True
    return depth > 0 and kinds <= _NESTED and all(is_simple(item, depth - 1) for item in value)


def is_flat(value: Any) -> bool:
    """Whether a value is a list of numbers and text alone, or a dict of them."""
    if type(value) is dict:
        return _SIMPLE.issuperset(map(type, value.values()))
    return type(value) is list and _SIMPLE.issuperset(map(type, value))


def _is_clear(value: Any, parts: tuple[type, ...], depth: int) -> bool:
    """Whether nothing is hidden, as far as a quick look tells."""
    cls = type(value)
    if isinstance(value, parts) or is_simple(value):
        return True
    if cls is list or cls is tuple:
        return depth > 0 and all(_is_clear(item, parts, depth - 1) for item in value)
    if cls is dict:
        named = depth > 0 and _TEXT.issuperset(map(type, value))
        return named and all(_is_clear(item, parts, depth - 1) for item in value.values())
    if cls is FunctionType:
        return not _in_function(value)
    return not tree.is_node(value) and opener(cls) is None and not is_used_up(cls)


def _refuse(path: str, owner: str, value: Any, held: list[Any], parts: tuple[type, ...]) -> None:
    for each in held:
        if is_simple(each):
            continue
        found = [each] if isinstance(each, parts) else _leaves(each, parts)
        if found:
            kind = type(value).__name__
            raise TreeError(
                "module",
                f"{path} of {owner} hides a {type(found[0]).__name__}",
                got=f"a {kind} that holds it",
                expected="a field, or a list, tuple, dict or dataclass in one",
                hint=_hint(path.partition(".")[0], value),
            )


def _leaves(value: Any, parts: tuple[type, ...]) -> list[Any]:
    return [leaf for leaf in tree.leaves(value, leaf=parts) if isinstance(leaf, parts)]


def _hint(name: str, value: Any) -> str:
    if _is_array(type(value)):
        return f"{name} = array.tolist()"
    if isinstance(value, FunctionType | MethodType | partial):
        return f"a field for what {name} binds, and the call written in forward"
    if isinstance(value, dict):
        return f'{name} = {{"first": part}}, where parts are values'
    kind = type(value).__name__
    return f"@dataclass for {kind}, or phlox_tensor.tree.register({kind}, flatten, rebuild)"


def _beside(node: Any) -> list[Any]:
    """What a container holds that is none of its children."""
    known = tree.node_of(node)
    if known is not None and not known.builtin:
        return [known.flatten(node)[1]]
    own = tree.attributes_of(node)
    if is_dataclass(node):
        names = {f.name for f in fields(node)}
        found = [value for name, value in own.items() if name not in names]
        return [*found, *_in_class(type(node))]
    keys = list(node) if isinstance(node, dict) else []
    return [*keys, getattr(node, "default_factory", None), *own.values(), *_in_class(type(node))]


def _is_used_up(cls: type) -> bool:
    """Whether values of a type go over something once, and do not tell what: files hold nothing."""
    if issubclass(cls, IOBase):
        return False
    return any(
        issubclass(base, Iterator) and _is_of_library(base) and base.__module__ not in _ABSTRACT
        for base in cls.__mro__
    )


is_used_up: Final = ByClass(_is_used_up).of


def _used_up(path: str, owner: str, value: Any) -> TreeError:
    name = path.partition(".")[0]
    return TreeError(
        "module",
        f"{path} of {owner} changes when it is used, and a module never does",
        got=type(value).__name__,
        expected="what can be gone over again",
        hint=f"{name} = list(parts), and iter(self.{name}) in forward",
    )


def opener(cls: type) -> Inside | None:
    """How to look into values of a type that does not come apart; None where nothing can hide."""
    return _OPENERS.of(cls)


def _opener(cls: type) -> Inside | None:
    if tree.is_closed(cls):
        return None
    if _is_array(cls):
        return lambda x: list(x.flat) if x.dtype.hasobject and x.dtype.names is None else []
    for base, inside in _INSIDE.items():
        if issubclass(cls, base):
            return inside
    if issubclass(cls, _LEAVES) or (_is_of_library(cls) and not tree.slots_of(cls)):
        return None
    # What a class keeps is asked each time: it may get more later.
    return lambda x: [*tree.attributes_of(x).values(), *_in_class(type(x))]


_OPENERS: Final = ByClass(_opener)


def _in_class(cls: type) -> list[Any]:
    """The parameters and modules that a class keeps for all its objects, but for annotated ones."""
    found: list[Any] = []
    for base in [each for each in cls.__mro__ if not _is_of_library(each)]:
        hints = get_annotations(base)
        fixed = [x for name, x in vars(base).items() if name not in hints and tree.is_node(x)]
        found += tree.leaves(fixed, leaf=NoOperand)
    return [x for x in found if isinstance(x, NoOperand)]


def _is_of_library(cls: type) -> bool:
    return cls.__module__.partition(".")[0] in stdlib_module_names


def _in_function(function: Any) -> list[Any]:
    """What a function brings along; what it finds by names of its module stays unseen."""
    found = [*(function.__defaults__ or ()), *(function.__kwdefaults__ or {}).values()]
    for cell in function.__closure__ or ():
        found += _in_cell(cell)
    return [*found, *vars(function).values()]


def _is_array(cls: type) -> bool:
    """Whether it is NumPy's, which this package does not need for anything else."""
    return any(b.__module__ == "numpy" and b.__name__ == "ndarray" for b in cls.__mro__)


def _in_cell(cell: CellType) -> list[Any]:
    try:
        return [cell.cell_contents]
    except ValueError:  # one that is not filled yet
        return []


# Modules of the bases that classes of users have.
_ABSTRACT: Final = ("collections.abc", "typing")
_INSIDE: Final[dict[type, Inside]] = {
    CellType: _in_cell,
    FunctionType: _in_function,
    MethodType: lambda x: [x.__self__],
    partial: lambda x: [x.func, *x.args, *x.keywords.values()],
    type: _in_class,
    type(cache(id)): lambda x: list(vars(x).values()),
}
