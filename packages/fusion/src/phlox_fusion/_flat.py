"""The leaves of arguments; those of modules, which never change, are remembered."""

from __future__ import annotations

import weakref
from typing import Any, Final

from ._layout import Layout, NodePart, flatten

_FLAT: Final[dict[int, tuple[weakref.ref[Any], Layout, Any]]] = {}


def flat(value: Any) -> tuple[Layout, Any]:
    """Return layout and leaves of an argument."""
    found = _FLAT.get(id(value))
    if found is not None and found[0]() is value:
        return found[1], found[2]
    layout, leaves, _ = flatten(value)
    last = layout.parts[-1]
    if isinstance(last, NodePart) and last.node.static is not None:
        remember(value, layout, leaves)
    return layout, leaves


def remember(value: Any, layout: Layout, leaves: Any) -> None:
    """Keep the leaves of a value that never changes for as long as it lives."""
    place = id(value)

    def forget(gone: weakref.ref[Any]) -> None:
        found = _FLAT.get(place)
        if found is not None and found[0] is gone:
            del _FLAT[place]

    try:
        _FLAT[place] = weakref.ref(value, forget), layout, leaves
    except TypeError:  # it is taken apart at each call
        return
