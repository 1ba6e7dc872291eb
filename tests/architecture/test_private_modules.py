"""Packages take what others offer, not what these keep to themselves."""

from __future__ import annotations

import re
from importlib import import_module

from tests.architecture.tree import files
from tools.shell import ROOT

ALL_PRIVATE = {"phlox_fusion"}  # packages without a public module besides themselves
# Modules that other packages may import, and users need not see.
FOR_PACKAGES = {"phlox_nn": {"generation", "ids", "where"}}
IMPORT = re.compile(r"^\s*from (phlox_\w+)((?:\.\w+)*) import", re.MULTILINE)


def is_shown(package: str, rest: str) -> bool:
    """Whether a module is for other packages: shown by its own, that package itself, or listed."""
    if not rest:
        return True
    name = rest.split(".")[1]
    if name in FOR_PACKAGES.get(package, ()):
        return True
    import_module(f"{package}.{name}")  # a module is a name of its package once it was imported
    return package not in ALL_PRIVATE and name in dir(import_module(package))


def test_no_package_imports_a_private_module_of_another() -> None:
    found, read = [], 0
    for file in files(".py"):
        parts = file.relative_to(ROOT).parts
        own = next((part for part in parts if part.startswith("phlox_")), None)
        if own is None or "tests" in parts:
            continue
        for package, rest in IMPORT.findall(file.read_text(encoding="utf-8")):
            read += 1
            if package != own and ("._" in rest or not is_shown(package, rest)):
                found.append(f"{file.name}: {package}{rest}")
    assert read > 300
    assert found == []


def test_rooms_of_a_package_do_not_show() -> None:
    assert is_shown("phlox_nn", ".where")
    assert not is_shown("phlox_nn", ".layers.conv")
