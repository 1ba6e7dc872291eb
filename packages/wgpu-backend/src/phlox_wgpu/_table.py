"""The op table of this backend: every module's entries joined.

Each module of ops ends in ``ENTRIES: Entries``, a dict from op name to a function ``f(device, *operands, *attributes)``;
the backend binds the device. Add the module to ``_MODULES``.
"""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType
from typing import Any

from . import _elementwise

Entries = dict[str, Callable[..., Any]]

_MODULES: tuple[ModuleType, ...] = (_elementwise,)


def table() -> Entries:
    """All entries by op name; a name in two modules is an error."""
    joined: Entries = {}
    for module in _MODULES:
        for name, function in module.ENTRIES.items():
            if name in joined:
                raise ValueError(f"[wgpu] two entries for {name}")
            joined[name] = function
    return joined
