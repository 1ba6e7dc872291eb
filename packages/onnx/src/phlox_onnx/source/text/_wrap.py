"""Lines that are too long, cut at their brackets."""

from __future__ import annotations

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


def _largest_bracket(line: str) -> tuple[int, int] | None:
    """The bracket at the outside that holds most."""
    stack: list[int] = []
    best: tuple[int, int] | None = None
    quote = ""
    for i, letter in enumerate(line):
        if quote:
            quote = "" if letter == quote else quote
        elif letter in "\"'":
            quote = letter
        elif letter in _OPEN:
            stack.append(i)
        elif letter in _OPEN.values() and stack:
            start = stack.pop()
            if not stack and i - start > 1 and (best is None or i - start > best[1] - best[0]):
                best = (start, i)
    return best


def _items(inside: str) -> list[str]:
    """What stands between commas at the outside."""
    out, depth, start, quote = [], 0, 0, ""
    for i, letter in enumerate(inside):
        if quote:
            quote = "" if letter == quote else quote
        elif letter in "\"'":
            quote = letter
        elif letter in "([{":
            depth += 1
        elif letter in ")]}":
            depth -= 1
        elif letter == "," and not depth:
            out.append(inside[start:i].strip())
            start = i + 1
    out.append(inside[start:].strip())
    return [o for o in out if o]
