"""What a field hides: parameters, modules and tensors inside values that do not come apart."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import fields, is_dataclass
from functools import partial
from types import FunctionType, GeneratorType, MethodType
from typing import Any, Final

from phlox_tensor import Backend, Tensor, TreeError, tree

from ._param import Param

Inside = Callable[[Any], list[Any]]

_LEAVES: Final = (Backend, Param, Tensor, type)
_OPENERS: Final[dict[type, Inside | None]] = {}
_DEEP: Final = 32  # levels of containers for the quick look, which a list in itself would never end
_OF_PYTHON: Final = ("builtins", "functools", "itertools")


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
    seen: set[int] = set()
    work: list[tuple[str, Any]] = [(name, value)]
    while work:
        path, item = work.pop()
        if isinstance(item, parts) or id(item) in seen:
            continue
        seen.add(id(item))
        for inner, node in tree.nodes_with_paths(item, leaf=parts):
            _refuse(f"{path}.{inner}" if inner else path, owner, node, _beside(node), parts)
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
    own = getattr(node, "__dict__", {})
    keys = list(node) if isinstance(node, dict) else []
    if is_dataclass(node):
        names = {f.name for f in fields(node)}
        return [value for name, value in own.items() if name not in names]
    if isinstance(node, dict | list | tuple):
        return [*keys, *own.values()]
    return []


def opener(cls: type) -> Inside | None:
    """How to look into values of a type that does not come apart; None where nothing can hide."""
    if cls not in _OPENERS:
        _OPENERS[cls] = _opener(cls)
    return _OPENERS[cls]


def _opener(cls: type) -> Inside | None:
    if _is_array(cls):
        return lambda x: list(x.flat) if x.dtype.hasobject and x.dtype.names is None else []
    if issubclass(cls, partial):
        return lambda x: [x.func, *x.args, *x.keywords.values()]
    if cls is MethodType:
        return lambda x: [x.__self__]
    if cls is FunctionType:
        return _of_function
    if cls is GeneratorType:
        return lambda x: [] if x.gi_frame is None else list(x.gi_frame.f_locals.values())
    if cls.__module__ in _OF_PYTHON:
        return _of_python(cls)
    slots = [name for base in cls.__mro__ for name in _slots(base)]
    if not slots or issubclass(cls, _LEAVES):
        return None
    return lambda x: [getattr(x, name) for name in slots if hasattr(x, name)]


def _of_python(cls: type) -> Inside | None:
    """What values of Python's own types hold; caches of functions are among them."""
    if cls.__module__ == "functools":
        return lambda x: list(getattr(x, "__dict__", {}).values())
    return _reduced if issubclass(cls, Iterator) else None


def _of_function(function: Any) -> list[Any]:
    """What a function brings along; what it finds by names of its module stays unseen."""
    found = [*(function.__defaults__ or ()), *(function.__kwdefaults__ or {}).values()]
    for cell in function.__closure__ or ():
        with suppress(ValueError):  # a cell that is not filled yet
            found.append(cell.cell_contents)
    return [*found, *vars(function).values()]


def _is_array(cls: type) -> bool:
    """Whether it is NumPy's, which this package does not need for anything else."""
    return any(b.__module__ == "numpy" and b.__name__ == "ndarray" for b in cls.__mro__)


def _slots(base: type) -> list[str]:
    given = vars(base).get("__slots__", ())
    names = [given] if isinstance(given, str) else list(given)
    private = f"_{base.__name__.lstrip('_')}"
    return [
        private + n if n.startswith("__") and not n.endswith("__") else n
        for n in names
        if n not in ("__dict__", "__weakref__")
    ]


def _reduced(iterator: Any) -> list[Any]:
    """What an iterator of Python goes over, which asking for does not use up."""
    try:
        return list(iterator.__reduce__()[1])
    except TypeError:  # one that cannot be copied, such as over a file
        return []
