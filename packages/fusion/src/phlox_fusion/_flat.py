"""The leaves of arguments; those of modules, which never change, are remembered."""

from __future__ import annotations

import weakref
from typing import Any, Final

from phlox_tensor import tree

from ._layout import Layout, NodePart, flatten

_FLAT: Final[dict[int, tuple[weakref.ref[Any], Layout, Any]]] = {}


def flat(value: Any) -> tuple[Layout, Any]:
    """Return layout and leaves of an argument."""
    found = known(value)
    if found is not None:
        return found
    layout, leaves, _ = flatten(value)
    last = layout.parts[-1]
    if isinstance(last, NodePart) and last.node.static is not None:
        remember(value, layout, leaves)
    return layout, leaves


def known(value: Any) -> tuple[Layout, Any] | None:
    """Return layout and leaves of a value that is remembered."""
    node = tree.node_of(value)
    if node is not None and node.slot is not None:
        inside: tuple[Layout, Any] | None = getattr(value, node.slot, None)
        return inside
    found = _FLAT.get(id(value))
    return (found[1], found[2]) if found is not None and found[0]() is value else None


_OUTER: Final[dict[int, tuple[weakref.ref[Any], list[Any]]]] = {}


def outer(value: Any) -> list[Any]:
    """Return the outermost primitives and the numbers of an argument."""
    found = _OUTER.get(id(value))
    if found is not None and found[0]() is value:
        return found[1]
    layout, leaves, known = flatten(value)
    made = [leaf if p is None else p for leaf, p in zip(leaves, known, strict=True)]
    last = layout.parts[-1]
    if isinstance(last, NodePart) and last.node.static is not None:
        _keep(_OUTER, value, made)
    return made


def remember(value: Any, layout: Layout, leaves: Any) -> None:
    """Keep the leaves of a value that never changes for as long as it lives."""
    node = tree.node_of(value)
    if node is not None and node.slot is not None:
        object.__setattr__(value, node.slot, (layout, leaves))
    else:
        _keep(_FLAT, value, layout, leaves)


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
