"""Folders that have a folder for each class."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from ._errors import DataError


def by_class(
    root: Path, op: str, wanted: Callable[[Path], bool]
) -> tuple[tuple[str, ...], list[Path], list[int]]:
    """Return the classes of a folder that has one for each, the files in them, and their labels."""
    classes = sorted(each.name for each in root.iterdir() if shown(each) and each.is_dir())
    if not classes:
        got, expected = f"{root}", "a folder for each class"
        raise DataError(op, "the folder has no classes", got=got, expected=expected)
    files: list[Path] = []
    labels: list[int] = []
    for label, name in enumerate(classes):
        found = sorted(file for file in (root / name).rglob("*") if wanted(file))
        if not found:
            what = f"the class {name!r} has no {'pictures' if op == 'images' else 'files'}"
            raise DataError(op, what, got=f"{root / name}")
        files += found
        labels += [label] * len(found)
    return tuple(classes), files, labels


def shown(path: Path) -> bool:
    """Whether a path is not hidden."""
    return not path.name.startswith(".")
