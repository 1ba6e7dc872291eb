"""Modules of phlox that show all of another package: of names they lack, that package speaks."""

from __future__ import annotations

import sys
from importlib import import_module
from typing import Any


def mirror(module: str, package: str) -> None:
    """Let a module answer for unknown names, and list its own, as a package does."""
    source, space = import_module(package), vars(sys.modules[module])

    def absent(name: str) -> Any:
        # With the package's ``__path__`` an import below the module would make its files again.
        if name.startswith("_") and name != "__all__":
            raise AttributeError(f"module {module!r} has no attribute {name!r}")
        value = getattr(source, name)
        if name != "__all__":
            space[name] = value  # what is asked for again is found without a call
        return value

    space.update(__dir__=vars(source)["__dir__"], __getattr__=absent)
