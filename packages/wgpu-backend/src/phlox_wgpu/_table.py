"""The op table of this backend: every module's entries joined.

Each module of ops ends in ``ENTRIES: Entries``, a dict from op name to a function ``f(device,
*operands, *attributes)``; the backend binds the device. Those of ``PARTIAL: Entries`` take one more
argument behind the device: what runs the formula of their op, for operands that they do not take.
Add the module to ``_MODULES``.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from importlib import import_module
from typing import Any

Entries = dict[str, Callable[..., Any]]

_MODULES = (
    "_append",
    "_attention",
    "_conv",
    "_copy",
    "_elementwise",
    "_indexing",
    "_norms",
    "_pooling",
    "_random",
    "_reduce",
    "_rows",
    "_scan",
    "_sort",
    "_step",
    "_views",
    "products.matmul",
    "products.words",
)


@cache
def table() -> Entries:
    """All entries by op name."""
    return _joined("ENTRIES")


@cache
def partial_table() -> Entries:
    """Those that leave some operands to the formula of their op."""
    return _joined("PARTIAL")


def _joined(kind: str) -> Entries:
    """The tables of one kind of all modules.

    Raises:
        ValueError: two modules have an entry for one op.
    """
    joined: Entries = {}
    for name in _MODULES:
        entries: Entries = vars(import_module(f".{name}", __package__)).get(kind, {})
        twice = joined.keys() & entries.keys()
        if twice:
            raise ValueError(f"{name} repeats the entries of {', '.join(sorted(twice))}")
        joined |= entries
    return joined
