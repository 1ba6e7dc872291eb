"""The helper functions of the .wgsl files, each with what it calls."""

from __future__ import annotations

import re
from functools import cache
from importlib import resources

_FILES = ("angle.wgsl", "float.wgsl", "integer.wgsl")
_ITEM = re.compile(r"^(?:fn|struct) (\w+)", re.MULTILINE)
_WORD = re.compile(r"\b[A-Za-z_]\w*\b")
_COMMENT = re.compile(r"//[^\n]*\n")


@cache
def _library() -> dict[str, str]:
    """Name to text, in file order; comments are dropped, since the text is compiled often."""
    items: dict[str, str] = {}
    for name in _FILES:
        text = _COMMENT.sub(
            "", resources.files(__name__.rpartition(".")[0]).joinpath(name).read_text("utf-8")
        )
        starts = [match.start() for match in _ITEM.finditer(text)]
        for start, end in zip(starts, [*starts[1:], len(text)], strict=True):
            item = text[start:end].rstrip() + "\n"
            found = _ITEM.match(item)
            assert found is not None
            items[found[1]] = item
    return items


@cache
def _needs(name: str) -> frozenset[str]:
    """The helpers that this one names, itself left out."""
    return frozenset(_WORD.findall(_library()[name])) & _library().keys() - {name}


def required(body: str) -> str:
    """The text of every helper that `body` names, directly or not, in a fixed order."""
    library = _library()
    wanted = set(_WORD.findall(body)) & library.keys()
    queue = list(wanted)
    while queue:
        new = _needs(queue.pop()) - wanted
        wanted |= new
        queue.extend(new)
    return "".join(text for name, text in library.items() if name in wanted)
