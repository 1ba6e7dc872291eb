"""Copies of sources for `./x site`, whose examples stand under the heading that shows them as code.

Docstrings here say "Example:", or show a line after ``>>>`` without a heading.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

_OWNERS = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)


def copy(package: Path, target: Path) -> None:
    """Copy a package."""
    for file in package.rglob("*.py"):
        there = target / file.relative_to(package)
        there.parent.mkdir(parents=True, exist_ok=True)
        there.write_text(headed(file.read_text(encoding="utf-8")), encoding="utf-8")


def headed(source: str) -> str:
    """Return sources with a heading over every example."""
    lines = re.sub(r"(?m)^( +)Example:$", r"\1Examples:", source).split("\n")
    for first, last, indent in _docstrings(source):
        bare = False
        for number in range(first, last):
            line = lines[number]
            if not bare and line.startswith(f"{indent}>>>"):
                bare = True
                lines[number] = f"{indent}Examples:\n    {line}"
            elif bare and line.strip():
                lines[number] = f"    {line}"
            bare = bare and bool(line.strip())
    return "\n".join(lines)


def _docstrings(source: str) -> Iterator[tuple[int, int, str]]:
    """First and last line of each docstring, from 0, without the line of its last quotes."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, _OWNERS) and ast.get_docstring(node):
            text = node.body[0]
            yield text.lineno, (text.end_lineno or 0) - 1, " " * text.col_offset
