"""Calls one below the other that differ in their place alone, as a loop over a tuple."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

WORD: Final = "part"  # of what a loop goes over
_CALL: Final = re.compile(r"(?P<target>\w+) = (?P<list>self[\w.]*)\[(?P<at>\d+)\](?P<call>\(.*\))")


def looped(lines: list[str], lists: Mapping[str, int]) -> list[str]:
    """Lines with loops in them; the last may be a return.

    Args:
        lines: those of a forward, each whole or wrapped.
        lists: what tuples of equal parts are called, and how long they are.
    """
    out: list[str] = []
    i = 0
    while i < len(lines):
        end = _end(lines, i, lists)
        if end - i < 2:
            out.append(lines[i])
            i += 1
            continue
        first = _CALL.fullmatch(lines[i])
        assert first is not None
        at, name, target = int(first["at"]), first["list"], first["target"]
        some = "" if end - i == lists[name] else f"[{at or ''}:{at + end - i}]"
        out += [f"for {WORD} in {name}{some}:", f"    {target} = {WORD}{first['call']}"]
        out += [f"return {target}"] if lines[end - 1].startswith("return ") else []
        i = end
    return out


def _end(lines: list[str], start: int, lists: Mapping[str, int]) -> int:
    """Where calls end that begin at a line and each take what the one before gave."""
    first = _CALL.fullmatch(lines[start])
    if first is None or first["list"] not in lists:
        return start
    if not re.search(rf"\b{first['target']}\b", first["call"]):
        return start
    end = start + 1
    while end < len(lines):
        at = int(first["at"]) + end - start
        call = f"{first['list']}[{at}]{first['call']}"
        if lines[end] == f"return {call}":
            return end + 1
        if lines[end] != f"{first['target']} = {call}":
            return end
        end += 1
    return end
