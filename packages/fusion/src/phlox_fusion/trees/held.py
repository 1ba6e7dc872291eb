"""Lists and dicts in values that never change: what was in them, and whether it still is."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from copy import copy
from operator import is_
from typing import Any, Final

from phlox_tensor import tree

_CONTAINERS: Final = (deque, dict, list, tuple)
_PLAIN: Final = frozenset({bool, float, int, str, type(None)})

# Containers, and what was in each.
Held = tuple[tuple[Any, tuple[Any, ...]], ...]


def held(containers: Iterable[Any]) -> Held:
    """Return what is in containers, and in those inside of them."""
    found: list[tuple[Any, tuple[Any, ...]]] = []
    work = [*containers]
    for item in work:
        if type(item) is tuple:
            now = item
        else:
            now = _inside(item)
            found.append((item, now))
            if type(item) not in _CONTAINERS:  # a class of somebody's, which may add attributes
                work += [vars(item)] if hasattr(item, "__dict__") else ()
        kinds = {*map(type, now)}
        if any(issubclass(kind, _CONTAINERS) for kind in kinds - _PLAIN):
            work += [part for part in now if isinstance(part, _CONTAINERS)]
    return tuple(found)


def holding() -> Callable[[tuple[Any, ...]], Held]:
    """Return ``held`` for containers that are built alike each time: the first time tells how."""
    alone = False  # no container is inside of another one

    def take(containers: tuple[Any, ...]) -> Held:
        nonlocal alone
        if alone:
            return tuple(
                [
                    (item, (*item, *item.values()) if type(item) is dict else (*item,))
                    for item in containers
                ]
            )
        found = held(containers)
        alone = len(found) == len(containers) and {list, dict}.issuperset(map(type, containers))
        return found

    return take


def stands(before: Held) -> bool:
    """Whether the very same objects are in all containers."""
    for item, parts in before:
        now = (*item, *item.values()) if isinstance(item, dict) else item
        if len(now) != len(parts) or not all(map(is_, now, parts)):
            return False
    return True


def held_in(value: Any) -> Held:
    """Return what is in the containers of a value that never changes, and of all its parts."""
    containers: list[Any] = []
    work, seen = [value], set[int]()
    while work:
        item = work.pop()
        node = tree.node_of(item)
        if node is None or id(item) in seen:
            continue
        seen.add(id(item))
        children, rest = node.flatten(item)
        if node.changing is not None:
            containers += [getattr(item, name) for name in node.changing(rest)]
        work.extend(children.values() if isinstance(children, dict) else children)
    return held(containers)


def apart(rest: Any) -> Any:
    """Return constants with copies of the lists and dicts among them."""
    if type(rest) is tuple:
        return tuple(map(apart, rest))
    if not isinstance(rest, deque | dict | list):
        return rest
    made: Any = copy(rest)
    for key, part in rest.items() if isinstance(rest, dict) else enumerate(rest):
        made[key] = apart(part)
    if isinstance(rest, deque):  # which copies no attributes
        getattr(made, "__dict__", {}).update(getattr(rest, "__dict__", {}))
    return made


def _inside(item: Any) -> tuple[Any, ...]:
    return (*item, *item.values()) if isinstance(item, dict) else tuple(item)
