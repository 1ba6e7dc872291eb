"""The leaves of arguments; those of modules, which never change, are remembered."""

from __future__ import annotations

import weakref
from collections import deque
from collections.abc import Callable, Sequence
from operator import is_
from typing import Any, Final

from phlox_tensor import tree
from phlox_tensor.capture import STATEFUL

from .layout import Layout, NodePart, StatePart, flatten
from .static import NUMBERS

_CONTAINERS: Final = (deque, dict, list, tuple)

# Lists and dicts in values that never change, which somebody may change all the same; and what
# was in each.
Contents = tuple[tuple[Any, tuple[Any, ...]], ...]

_FLAT: Final[dict[int, tuple[weakref.ref[Any], Layout, Any, Contents]]] = {}
_OUTER: Final[dict[int, tuple[weakref.ref[Any], list[Any], Contents]]] = {}


def flat(value: Any) -> tuple[Layout, Any, Contents]:
    """Return layout and leaves of an argument, and what is in containers that might change."""
    node = None if type(value) in STATEFUL else tree.node_of(value)
    found: Any = None
    if node is not None and node.slot is not None:
        found = getattr(value, node.slot, None)
    elif (known := _FLAT.get(id(value))) is not None and known[0]() is value:
        _, layout, leaves, contents = known
        found = layout, [value] if leaves is None else leaves, contents
    if found is not None and (not found[2] or same_contents(found[2])):
        return found
    layout, leaves, _ = flatten(value)
    last = layout.parts[-1]
    contents = _contents_in(value) if layout.changing else ()
    if isinstance(last, StatePart):
        _keep(_FLAT, value, layout, None, contents)  # as its own leaf it would keep itself alive
    elif isinstance(last, NodePart) and last.node.static is not None:
        remember(value, layout, leaves, contents)
    return layout, leaves, contents


def twice(leaves: Sequence[Any]) -> bool:
    """Whether a tensor is at two places; numbers that are one object count as two."""
    held = [id(leaf) for leaf in leaves if type(leaf) not in NUMBERS]
    return len({*held}) < len(held)


def outer(value: Any) -> list[Any]:
    """Return the outermost primitives and the numbers of an argument."""
    found = _OUTER.get(id(value))
    if found is not None and found[0]() is value and (not found[2] or same_contents(found[2])):
        return found[1]
    layout, leaves, known = flatten(value)
    made = [leaf if p is None else p for leaf, p in zip(leaves, known, strict=True)]
    last = layout.parts[-1]
    if isinstance(last, NodePart) and last.node.static is not None:
        _keep(_OUTER, value, made, _contents_in(value) if layout.changing else ())
    return made


def remember(value: Any, layout: Layout, leaves: Any, contents: Contents) -> None:
    """Keep the leaves of a value that never changes for as long as it lives."""
    node = None if type(value) in STATEFUL else tree.node_of(value)
    if node is not None and node.slot is not None:
        object.__setattr__(value, node.slot, (layout, leaves, contents))
    else:
        _keep(_FLAT, value, layout, leaves, contents)


def _keep(kept: dict[int, Any], value: Any, *what: Any) -> None:
    place = id(value)

    def forget(gone: weakref.ref[Any]) -> None:
        found = kept.get(place)
        if found is not None and found[0] is gone:
            del kept[place]

    try:
        kept[place] = weakref.ref(value, forget), *what
    except TypeError:  # it is taken apart at each call
        return


# Containers in values that never change


def contents_of(containers: Sequence[Any]) -> Contents:
    """Return what is in containers, and in those inside of them."""
    found: list[tuple[Any, tuple[Any, ...]]] = []
    work = [*containers]
    for item in work:
        now = (*item, *item.values()) if isinstance(item, dict) else (*item,)
        if type(item) is not tuple:
            found.append((item, now))
            if type(item) not in _CONTAINERS:  # a class of somebody's, which may add attributes
                work += [vars(item)] if hasattr(item, "__dict__") else ()
        work += [part for part in now if isinstance(part, _CONTAINERS)]
    return tuple(found)


def contents_taker() -> Callable[[Sequence[Any]], Contents]:
    """Return ``contents_of`` for containers made alike each time, as the first call shows."""
    alone = False  # no container is inside of another one

    def take(containers: Sequence[Any]) -> Contents:
        nonlocal alone
        if alone:
            return tuple([(c, (*c, *c.values()) if type(c) is dict else (*c,)) for c in containers])
        found = contents_of(containers)
        alone = len(found) == len(containers) and {list, dict}.issuperset(map(type, containers))
        return found

    return take


def same_contents(before: Contents) -> bool:
    """Whether the very same objects are in all containers."""
    for item, parts in before:
        now = (*item, *item.values()) if isinstance(item, dict) else item
        if len(now) != len(parts) or not all(map(is_, now, parts)):
            return False
    return True


def _contents_in(value: Any) -> Contents:
    """What is in the containers of a value that never changes, and of all its parts."""
    containers: list[Any] = []
    work, seen = [value], set[int]()
    for item in work:
        node = tree.node_of(item)
        if node is None or id(item) in seen:
            continue
        seen.add(id(item))
        children, rest = node.flatten(item)
        if node.changing is not None:
            containers += [getattr(item, name) for name in node.changing(rest)]
        work += children.values() if isinstance(children, dict) else children
    return contents_of(containers)
