"""Modules of phlox that show all of another package: of names they lack, that package speaks."""

from __future__ import annotations

import sys
from importlib import import_module
from typing import Any


def mirror(module: str, package: str) -> None:
    """Let a module answer for unknown names, and list its own, as a package does."""
    source, space = import_module(package), vars(sys.modules[module])

    def absent(name: str) -> Any:
        value = getattr(source, name)
        if not name.startswith("_"):  # what is asked for again is found without a call
            space[name] = value
        return value

    space.update(__dir__=vars(source)["__dir__"], __getattr__=absent)
