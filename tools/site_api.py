"""Pages that list the public names of packages, for `./x site`; it runs where phlox is installed.

Each name is a line that mkdocstrings fills from the sources.
"""

from __future__ import annotations

import importlib
import inspect
import sys
from collections import defaultdict
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any, Final

# Names of a package with more of them are on a page for each folder of its sources.
MANY: Final = 120
# Modules of packages that are used by their own names, such as `nn.initializers.zeros`.
SPACES: Final = ("augment", "initializers", "models")
_LEVELS: Final = "\n    options:\n      heading_level: 2\n"


def public(module: ModuleType) -> dict[str, Any]:
    """Classes, functions and types of a module by name."""
    names = [name for name in dir(module) if not name.startswith("_")]
    found = {name: getattr(module, name) for name in names}
    return {name: value for name, value in found.items() if _has_text(value, module)}


def _has_text(value: Any, module: ModuleType) -> bool:
    """Whether it is defined in the package, so that its sources say what it is."""
    ours = (getattr(value, "__module__", None) or "").split(".")[0]
    named = getattr(value, "__qualname__", "")
    if ours != module.__name__.split(".")[0] or not named:
        return False
    word = "class" if inspect.isclass(value) else "def"
    return f"{word} {named}" in _text(value.__module__)


@cache
def _text(module: str) -> str:
    file = sys.modules[module].__file__
    return Path(file).read_text(encoding="utf-8") if file else ""


def pages(package: str) -> dict[str, str]:
    """Text of the pages of a package by file name, the first one named like the package."""
    whole = importlib.import_module(package)
    names = public(whole)
    short = package.removeprefix("phlox_")
    parts: dict[str, list[str]] = defaultdict(list)
    for name, value in names.items():
        folder = value.__module__.split(".")[1:2] if len(names) > MANY else []
        kind = folder[0].lstrip("_") if folder and value.__module__.count(".") > 1 else ""
        parts[f"{short}-{kind}" if kind else short].append(f"{package}.{name}")
    for name in SPACES:
        value = getattr(whole, name, None)
        if isinstance(value, ModuleType):
            inside = [f"{package}.{name}.{each}" for each in public(value)]
            parts[f"{short}-{name}"] = inside
    return {f"{name}.md": _page(name, inside, whole) for name, inside in sorted(parts.items())}


def _page(name: str, inside: list[str], package: ModuleType) -> str:
    title = f"{package.__name__.replace('phlox_', 'phlox.')}"
    part = name.partition("-")[2]
    first = (inspect.getdoc(package) or "").split("\n\n")[0]
    head = f"# {title}: {part}\n" if part else f"# {title}\n\n{first}\n"
    return "\n".join([head, *(f"::: {each}{_LEVELS}" for each in inside)])


def main(out: Path, packages: list[str]) -> int:
    """Write the pages into a folder."""
    out.mkdir(parents=True, exist_ok=True)
    for package in packages:
        for name, text in pages(package).items():
            (out / name).write_text(text)
    return 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), sys.argv[2:]))
