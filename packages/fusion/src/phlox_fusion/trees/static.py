"""How parts of a tree are compared that are neither tensors nor numbers."""

from __future__ import annotations

from types import NoneType
from typing import Any, Final

import numpy as np

from phlox_tensor import Tensor, tree
from phlox_tensor.capture import Number, same

from .plain import is_plain, is_whole, typed

NUMBERS: Final = frozenset({Number, float, int, np.float64})  # that a replay computes with
ALONE: Final = NUMBERS | {NoneType, Tensor, bool, str}  # that are leaves wherever they stand
WIDE: Final = 2**63  # ops take integers of 64 bits with their sign, and others as floats
BY_EQUALITY: Final = frozenset({bool, bytes, int, str})


def is_wide(item: Any) -> bool:
    """Whether a number is an int that ops get as a float, so that it has versions of its own."""
    return type(item) is int and not -WIDE <= item < WIDE


def same_static(a: Any, b: Any) -> bool:
    """Whether two values that are no tensors or numbers of the tree are one.

    Containers are compared part by part, objects that say when they are equal by all attributes,
    tensors, arrays and other objects by identity.
    """
    work = [(a, b)]
    met: set[tuple[int, int]] = set()  # a dict may contain itself
    kept: list[Any] = []  # what is made here, whose id is nothing else's then
    while work:
        a, b = work.pop()
        if a is b:
            continue
        cls = type(a)
        if cls is not type(b):
            return False
        if cls is tuple:  # most of what layouts hold, taken apart without a structure
            if len(a) != len(b):
                return False
            work.extend(zip(a, b, strict=True))
        elif cls is dict:
            if (*a,) != (*b,) or not same_keys((*a,), (*b,)):
                return False
            if (id(a), id(b)) not in met:
                met.add((id(a), id(b)))
                work.extend(zip(a.values(), b.values(), strict=True))
        elif cls not in BY_EQUALITY and (tree.is_node(a) or is_whole(cls)):
            if (id(a), id(b)) not in met:
                met.add((id(a), id(b)))
                take = _taken if tree.is_node(a) else tree.attributes_of
                work.append((take(a), take(b)))
                kept += work[-1]
        elif not same_value(a, b):
            return False
    return True


def _taken(value: Any) -> tuple[Any, Any]:
    """The children of a node as one of Python's own containers, and what else it has."""
    node = tree.node_of(value)
    assert node is not None
    children, rest = (node.whole_parts or node.flatten)(value)
    static = rest if node.static is None else node.static(rest)
    return dict(children) if isinstance(children, dict) else (*children,), static


def same_value(a: Any, b: Any) -> bool:
    """Whether two objects of one type, no tuples, are one."""
    if type(a) in BY_EQUALITY:
        return bool(a == b)
    if isinstance(a, np.generic):
        return bool(a.dtype == b.dtype and not a.dtype.hasobject and a.tobytes() == b.tobytes())
    if isinstance(a, Tensor) or hasattr(a, "__array__"):
        return False
    if isinstance(a, float):
        return same(a, b)
    if type(a) in (frozenset, set):
        return {*map(typed, a)} == {*map(typed, b)}
    return bool(is_plain(type(a)) and type(a).__hash__ is not None and a == b)


def same_keys(a: tuple[Any, ...] | None, b: tuple[Any, ...] | None) -> bool:
    """Whether keys that are equal are one: 1, 1.0 and True are three."""
    return a is None or b is None or {str}.issuperset(map(type, (*a, *b))) or same_static(a, b)
