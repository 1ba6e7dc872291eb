"""Modules of phlox that show all of another package: of names they lack, that package speaks."""

from __future__ import annotations

import sys


def mirror(module: str, package: str) -> None:
    """Let a module answer for unknown names, and list its own, as a package does."""
    source = vars(sys.modules[package])
    vars(sys.modules[module]).update({name: source[name] for name in ("__dir__", "__getattr__")})
