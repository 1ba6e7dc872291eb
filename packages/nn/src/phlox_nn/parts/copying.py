"""Copies and pickles of modules, the inner before the outer: depth costs few frames."""

from __future__ import annotations

from copy import deepcopy
from typing import Any, Final, TypeVar

from . import fields as _fields
from . import walk as _walk

W = TypeVar("W", bound=_fields.ModuleNode)

# So many modules inside each other may pickle by recursion; each takes some frames of 1000.
_HIGH: Final = 32


def copied(module: W, memo: dict[int, Any]) -> W:
    """Return a copy whose parameters have ids of their own; ties are kept inside."""
    for _, each in reversed(_walk.modules(module)):  # those around find it in the memo
        if id(each) not in memo:
            values = _fields.fields_of(each)
            copies = {name: deepcopy(value, memo) for name, value in values.items()}
            memo[id(each)] = _walk.remade(each, copies)
    return memo[id(module)]


def reduced(module: _fields.ModuleNode) -> Any:
    """Return how a module pickles: by its fields, after what stands too deep inside them."""
    first: list[_fields.ModuleNode] = []
    if _fields.height(module) % _HIGH == 0:
        inner = [each for _, each in reversed(_walk.modules(module))]
        first = [each for each in inner[:-1] if _fields.height(each) % _HIGH == 0]
    return restored, (first, type(module), _fields.fields_of(module))


def restored(_first: list[Any], cls: type[W], values: dict[str, Any]) -> W:
    """Make the module that ``reduced`` described; no constructor of the class is called."""
    made = object.__new__(cls)
    vars(made).update(values)
    _walk.complete(made)
    return made
