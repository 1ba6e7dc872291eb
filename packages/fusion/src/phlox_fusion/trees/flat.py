"""The leaves of arguments; those of modules, which never change, are remembered."""

from __future__ import annotations

import weakref
from typing import Any, Final

from phlox_tensor import tree
from phlox_tensor.capture import STATEFUL

from .held import Held, held_in, stands
from .layout import Layout, NodePart, StatePart, flatten

_FLAT: Final[dict[int, tuple[weakref.ref[Any], Layout, Any, Held]]] = {}


def flat(value: Any) -> tuple[Layout, Any, Held]:
    """Return layout and leaves of an argument, and what is in containers that might change."""
    found = _known(value)
    if found is not None and (not found[2] or stands(found[2])):
        return found
    layout, leaves, _ = flatten(value)
    last = layout.parts[-1]
    inside = held_in(value) if layout.changing else ()
    if isinstance(last, StatePart):
        _keep(_FLAT, value, layout, None, inside)  # it is its own leaf, which would keep it alive
    elif isinstance(last, NodePart) and last.node.static is not None:
        remember(value, layout, leaves, inside)
    return layout, leaves, inside


def _known(value: Any) -> tuple[Layout, Any, Held] | None:
    node = None if type(value) in STATEFUL else tree.node_of(value)
    if node is not None and node.slot is not None:
        inside: tuple[Layout, Any, Held] | None = getattr(value, node.slot, None)
        return inside
    found = _FLAT.get(id(value))
    if found is None or found[0]() is not value:
        return None
    _, layout, leaves, held = found
    return layout, [value] if leaves is None else leaves, held


_OUTER: Final[dict[int, tuple[weakref.ref[Any], list[Any], Held]]] = {}


def outer(value: Any) -> list[Any]:
    """Return the outermost primitives and the numbers of an argument."""
    found = _OUTER.get(id(value))
    if found is not None and found[0]() is value and (not found[2] or stands(found[2])):
        return found[1]
    layout, leaves, known = flatten(value)
    made = [leaf if p is None else p for leaf, p in zip(leaves, known, strict=True)]
    last = layout.parts[-1]
    if isinstance(last, NodePart) and last.node.static is not None:
        _keep(_OUTER, value, made, held_in(value) if layout.changing else ())
    return made


def remember(value: Any, layout: Layout, leaves: Any, inside: Held) -> None:
    """Keep the leaves of a value that never changes for as long as it lives."""
    node = None if type(value) in STATEFUL else tree.node_of(value)
    if node is not None and node.slot is not None:
        object.__setattr__(value, node.slot, (layout, leaves, inside))
    else:
        _keep(_FLAT, value, layout, leaves, inside)


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
