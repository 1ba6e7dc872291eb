"""Lines that are too long, cut at their brackets."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

COLUMNS: Final = 99
_OPEN: Final = {"(": ")", "[": "]", "{": "}"}


def wrapped(line: str, indent: int) -> list[str]:
    """A line, cut at its brackets where it is too long."""
    if len(line) + indent <= COLUMNS:
        return [line]
    found = _largest_bracket(line)
    if found is None:
        return [line]
    start, end = found
    head, inside, tail = line[: start + 1], line[start + 1 : end], line[end:]
    if not inside.strip():
        return [line]
    items = _items(inside)
    whole = ", ".join(items)
    if len(whole) + indent + 4 <= COLUMNS and len(items) > 0:
        comma = "," if len(items) == 1 and inside.rstrip().endswith(",") else ""
        return [head, f"    {whole}{comma}", tail]
    if len(items) == 1 and _only_groups(line, start, inside):
        return [head, *(f"    {t}" for t in wrapped(items[0], indent + 4)), tail]
    out = [head]
    for each in items:
        out += [f"    {t}" for t in wrapped(f"{each},", indent + 4)]
    return [*out, tail]


def _only_groups(line: str, start: int, inside: str) -> bool:
    """Whether one item may have no comma: it would make a tuple of it outside of a call."""
    if inside.rstrip().endswith(","):
        return False
    called = start > 0 and (line[start - 1].isalnum() or line[start - 1] in "_)]")
    return line[start] != "(" or not called or " for " in inside


def _outside(text: str) -> Iterator[tuple[int, str, int]]:
    """Letters that stand in no quotes, with their places and how deep in brackets they are."""
    depth, quote = 0, ""
    for i, letter in enumerate(text):
        if quote:
            quote = "" if letter == quote else quote
        elif letter in "\"'":
            quote = letter
        else:
            depth -= letter in _OPEN.values()
            yield i, letter, depth
            depth += letter in _OPEN


def _largest_bracket(line: str) -> tuple[int, int] | None:
    """The bracket at the outside that holds most."""
    ends = [i for i, letter, depth in _outside(line) if not depth and letter in "([{)]}"]
    pairs = [(a, b) for a, b in zip(ends[::2], ends[1::2], strict=False) if b - a > 1]
    return max(pairs, key=lambda pair: pair[1] - pair[0], default=None)


def _items(inside: str) -> list[str]:
    """What stands between commas at the outside."""
    commas = [i for i, letter, depth in _outside(inside) if letter == "," and not depth]
    parts = zip([0, *(i + 1 for i in commas)], [*commas, len(inside)], strict=True)
    return [part for a, b in parts if (part := inside[a:b].strip())]
