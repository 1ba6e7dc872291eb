"""What a field hides: parameters, modules and tensors inside values that do not come apart."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import fields, is_dataclass
from functools import partial
from inspect import get_annotations
from sys import stdlib_module_names
from types import (
    BuiltinMethodType,
    CellType,
    CoroutineType,
    FunctionType,
    GeneratorType,
    MethodType,
    MethodWrapperType,
    ModuleType,
)
from typing import Any, Final
from weakref import ReferenceType

from phlox_tensor import ArgumentError, Backend, Tensor, TreeError, tree
from phlox_tensor.no_operand import NoOperand

from ._config import Config
from ._param import Param

Inside = Callable[[Any], list[Any]]

_LEAVES: Final = (Backend, Config, Param, Tensor, type)
_OWN: Final = (NoOperand,)  # modules and parameters
_OPENERS: Final[dict[type, Inside | None]] = {}
_OF_CLASSES: Final[dict[type, list[Any]]] = {}
_DEEP: Final = 32  # levels of containers for the quick look, which a list in itself would never end
_OF_PYTHON: Final = ("builtins", "functools", "itertools", "operator")


def check(name: str, owner: str, value: Any, parts: tuple[type, ...]) -> None:
    """Refuse a field that hides what a walk over a module should see.

    Args:
        name: of the field.
        owner: the class of the module.
        value: of the field.
        parts: the types that a walk sees.

    Raises:
        TreeError: when it does.
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
    seen: set[int] = set()
    work: list[tuple[str, Any]] = [(name, value)]
    while work:
        path, item = work.pop()
        if isinstance(item, parts) or id(item) in seen:
            continue
        seen.add(id(item))
        for inner, node in tree.nodes_with_paths(item, leaf=parts):
            where, held = f"{path}.{inner}" if inner else path, _beside(node)
            _refuse(where, owner, node, held, parts)
            work += [(where, each) for each in held]
        for inner, leaf in tree.leaves_with_paths(item, leaf=parts):
            if isinstance(leaf, parts):
                continue
            where = f"{path}.{inner}" if inner else path
            inside = opener(type(leaf))
            held = inside(leaf) if inside is not None else []
            _refuse(where, owner, leaf, held, parts)
            work += [(where, each) for each in held]


def add(found: dict[str, Any], path: str, part: Any) -> None:
    """Put a part where its path says, unless another one has that path, which it would hide.

    Raises:
        TreeError: naming the path.
    """
    if path in found:
        raise TreeError(
            "module",
            "two parts have one path",
            got=path,
            expected="keys of dicts that differ as text, without dots",
            hint='{"first": part, "second": part}',
        )
    found[path] = part


def unseen(owner: str, path: str) -> ArgumentError:
    """Return the error for a tensor in a field that wants a gradient, and is no parameter."""
    return ArgumentError(
        "module",
        f"{path} of {owner} is not seen as a parameter",
        got="a tensor that wants a gradient",
        expected="a parameter, or a constant",
        hint="nn.Param(x) to train it, x.detach() for a constant",
    )


def _is_clear(value: Any, parts: tuple[type, ...], depth: int) -> bool:
    """Whether nothing is hidden, as far as a quick look tells."""
    cls = type(value)
    if isinstance(value, parts):
        return True
    if cls is list or cls is tuple:
        return depth > 0 and all(_is_clear(item, parts, depth - 1) for item in value)
    if cls is dict:
        named = depth > 0 and all(type(key) is str for key in value)
        return named and all(_is_clear(item, parts, depth - 1) for item in value.values())
    if cls is FunctionType:
        return not _of_function(value)
    return not tree.is_node(value) and opener(cls) is None


def _refuse(path: str, owner: str, value: Any, held: list[Any], parts: tuple[type, ...]) -> None:
    for each in held:
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
    if isinstance(value, Iterator):
        return f"{name} = list(parts)"
    if isinstance(value, FunctionType | MethodType | partial):
        return f"a field for what {name} binds, and the call written in forward"
    if isinstance(value, dict):
        return f'{name} = {{"first": part}}, where parts are values'
    kind = type(value).__name__
    return f"@dataclass for {kind}, or phlox_tensor.tree.register({kind}, flatten, rebuild)"


def _beside(node: Any) -> list[Any]:
    """What a container holds that is none of its children."""
    known = tree.node_of(node)
    if known is not None and not known.known:
        return [known.flatten(node)[1]]
    own = tree.attributes_of(node)
    if is_dataclass(node):
        names = {f.name for f in fields(node)}
        found = [value for name, value in own.items() if name not in names]
        return [*found, *_of_class(type(node))]
    keys = list(node) if isinstance(node, dict) else []
    return [*keys, getattr(node, "default_factory", None), *own.values(), *_of_class(type(node))]


def opener(cls: type) -> Inside | None:
    """How to look into values of a type that does not come apart; None where nothing can hide."""
    if cls not in _OPENERS:
        _OPENERS[cls] = _opener(cls)
    return _OPENERS[cls]


def _opener(cls: type) -> Inside | None:
    if _is_array(cls):
        return lambda x: list(x.flat) if x.dtype.hasobject and x.dtype.names is None else []
    for base, inside in _INSIDE.items():
        if issubclass(cls, base):
            return inside
    if cls.__module__ in _OF_PYTHON:
        return _of_python(cls)
    if issubclass(cls, _LEAVES):
        return None
    shared = _of_class(cls)
    plain = _is_of_library(cls) or not tree.takes_attributes(cls)
    if plain and not shared and not tree.slots_of(cls):
        return None
    return lambda x: [*tree.attributes_of(x).values(), *shared]


def _of_class(cls: type) -> list[Any]:
    """The parameters and modules that a class keeps for all its objects, but for annotated ones."""
    if cls not in _OF_CLASSES:
        found: list[Any] = []
        for base in [each for each in cls.__mro__ if not _is_of_library(each)]:
            hints = get_annotations(base)
            fixed = [x for name, x in vars(base).items() if name not in hints and tree.is_node(x)]
            found += tree.leaves(fixed, leaf=_OWN)
        _OF_CLASSES[cls] = [x for x in found if isinstance(x, _OWN)]
    return _OF_CLASSES[cls]


def _is_of_library(cls: type) -> bool:
    return cls.__module__.partition(".")[0] in stdlib_module_names


def _of_python(cls: type) -> Inside | None:
    """What values of Python's own types hold; caches of functions are among them."""
    if cls.__module__ == "functools":
        return lambda x: list(getattr(x, "__dict__", {}).values())
    return _reduced if issubclass(cls, Iterator) or cls.__module__ == "operator" else None


def _of_function(function: Any) -> list[Any]:
    """What a function brings along; what it finds by names of its module stays unseen."""
    found = [*(function.__defaults__ or ()), *(function.__kwdefaults__ or {}).values()]
    for cell in function.__closure__ or ():
        found += _of_cell(cell)
    return [*found, *vars(function).values()]


def _is_array(cls: type) -> bool:
    """Whether it is NumPy's, which this package does not need for anything else."""
    return any(b.__module__ == "numpy" and b.__name__ == "ndarray" for b in cls.__mro__)


def _reduced(iterator: Any) -> list[Any]:
    """What an iterator of Python goes over, which asking for does not use up."""
    try:
        return list(iterator.__reduce__()[1])
    except TypeError:  # one that cannot be copied, such as over a file
        return []


def _of_generator(generator: GeneratorType[Any, Any, Any]) -> list[Any]:
    return [] if generator.gi_frame is None else list(generator.gi_frame.f_locals.values())


def _of_coroutine(coroutine: CoroutineType[Any, Any, Any]) -> list[Any]:
    return [] if coroutine.cr_frame is None else list(coroutine.cr_frame.f_locals.values())


def _of_cell(cell: CellType) -> list[Any]:
    try:
        return [cell.cell_contents]
    except ValueError:  # one that is not filled yet
        return []


_INSIDE: Final[dict[type, Inside]] = {
    BaseException: lambda x: [*x.args, *vars(x).values()],
    BuiltinMethodType: lambda x: [] if isinstance(x.__self__, ModuleType) else [x.__self__],
    CellType: _of_cell,
    CoroutineType: _of_coroutine,
    FunctionType: _of_function,
    GeneratorType: _of_generator,
    MethodType: lambda x: [x.__self__],
    MethodWrapperType: lambda x: [x.__self__],
    ReferenceType: lambda x: [x()],
    classmethod: lambda x: [x.__func__],
    partial: lambda x: [x.func, *x.args, *x.keywords.values()],
    property: lambda x: [x.fget, x.fset, x.fdel],
    slice: lambda x: [x.start, x.stop, x.step],
    staticmethod: lambda x: [x.__func__],
}
