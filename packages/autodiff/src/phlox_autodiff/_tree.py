"""Trees: tuples, lists and dicts whose leaves are anything else."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any


def leaves(tree: Any) -> Iterator[Any]:
    """The leaves of a tree, from left to right."""
    if isinstance(tree, dict):
        tree = list(tree.values())
    if isinstance(tree, list | tuple):
        for item in tree:
            yield from leaves(item)
    else:
        yield tree


def map_tree(function: Callable[[Any], Any], tree: Any) -> Any:
    """The tree with ``function`` applied to each leaf."""
    if isinstance(tree, dict):
        return {key: map_tree(function, item) for key, item in tree.items()}
    if isinstance(tree, list | tuple):
        items = [map_tree(function, item) for item in tree]
        if isinstance(tree, list):
            return items
        # A named tuple takes its fields one by one.
        return type(tree)(*items) if hasattr(tree, "_fields") else tuple(items)
    return function(tree)


def same_structure(a: Any, b: Any) -> bool:
    """Whether two trees differ in their leaves alone."""
    if isinstance(a, dict):
        return (
            isinstance(b, dict)
            and list(a) == list(b)
            and all(same_structure(a[key], b[key]) for key in a)
        )
    if isinstance(a, list | tuple):
        return (
            isinstance(b, list | tuple)
            and len(a) == len(b)
            and all(same_structure(x, y) for x, y in zip(a, b, strict=True))
        )
    return not isinstance(b, dict | list | tuple)
