"""Plain text tables, and names that stand in none."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from difflib import get_close_matches

from phlox_tensor import ArgumentError


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return rows under a head, each column as wide as its longest cell."""
    widths = [max(len(row[i]) for row in [head, *rows]) for i in range(len(head))]
    lines = [head, ["-" * width for width in widths], *rows]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip()
        for line in lines
    )


def no_such(
    command: str, what: str, name: str, known: Iterable[str], meant: Iterable[str] = ()
) -> ArgumentError:
    """Return the error for a name that a table lacks: names that are near, and what to type."""
    names = {each.lower(): each for each in known}
    inside = sorted((each for each in names if name.lower() in each), key=len)
    found = inside[:8] or get_close_matches(name.lower(), names, cutoff=0.7)
    near = [names[each] for each in found] or [each for each in names.values() if each in meant]
    hint = " ".join(["phlox", command, *near[:1]])
    expected = ", ".join(near) or None
    return ArgumentError(command, f"no such {what}", got=name, expected=expected, hint=hint)
