"""The fields of a class at their paths: modules of names, lists and dicts between the two."""

from __future__ import annotations

import json
import keyword
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final, final

from ._module_paths import Path
from ._words import Names, singular

Node = dict[str, Any]  # to other nodes, and to places of fields
_KEYWORDS: Final = frozenset(keyword.kwlist)


@final
class Tree:
    """The attributes of a class.

    Attributes:
        paths: that of each field, beginning with the attribute.
        root: the attributes, with what is inside of them.
    """

    def __init__(self, paths: Sequence[Path]) -> None:
        """Take the path of each field."""
        self.paths = list(paths)
        self.root: Node = {}
        for place, path in enumerate(self.paths):
            node = self.root
            for word in path[:-1]:
                node = node.setdefault(word, {})
            node[path[-1]] = place

    def spelled(self, place: int) -> str:
        """A field as a forward reads it."""
        text, node = "self", self.root
        for depth, word in enumerate(self.paths[place]):
            form = _form(node) if depth else "class"
            key = {"class": f".{word}", "dict": f"[{json.dumps(word)}]", "list": f"[{word}]"}
            text += key[form]
            node = node[word]
        return text


def _form(node: Node) -> str:
    """What holds the words of a node."""
    if not any(word.isdigit() for word in node):
        return "class"
    return "list" if set(node) == {str(i) for i in range(len(node))} else "dict"


def _items(node: Node) -> list[tuple[str, Any]]:
    """The words of a node, those of a list in its order."""
    if _form(node) == "list":
        return [(str(i), node[str(i)]) for i in range(len(node))]
    return list(node.items())


@final
class Spaces:
    """Classes that are there for names alone; those with the same fields are one."""

    def __init__(self, taken: Iterable[str]) -> None:
        """Take what they may not be called."""
        self._names = Names(_KEYWORDS | set(taken))
        self._known: dict[tuple[tuple[str, str], ...], str] = {}

    def kind(self, node: Any, word: str, kind_of: Callable[[int], str]) -> str:
        """The type of what stands at a word."""
        if isinstance(node, int):
            return kind_of(node)
        inside = [(w, self.kind(n, _inner(word, w), kind_of)) for w, n in _items(node)]
        kinds = list(dict.fromkeys(kind for _, kind in inside))
        form = _form(node)
        if form == "list":
            same = f"{kinds[0]}, ..." if len(kinds) == 1 else ", ".join(k for _, k in inside)
            return f"tuple[{same}]"
        if form == "dict":
            return f"dict[str, {' | '.join(kinds)}]"
        key = tuple(inside)
        if key not in self._known:
            self._known[key] = self._names.new(_title(word))
        return self._known[key]

    def made(
        self, node: Any, word: str, kind_of: Callable[[int], str], made_of: Callable[[int], str]
    ) -> str:
        """The expression that makes what stands at a word."""
        if isinstance(node, int):
            return made_of(node)
        items = _items(node)
        inside = {w: self.made(n, _inner(word, w), kind_of, made_of) for w, n in items}
        form, texts = _form(node), list(inside.values())
        if form == "dict":
            return f"{{{', '.join(f'{json.dumps(w)}: {text}' for w, text in inside.items())}}}"
        if form == "class":
            words = ", ".join(f"{w}={text}" for w, text in inside.items())
            return f"{self.kind(node, word, kind_of)}({words})"
        if len(texts) > 1 and len(set(texts)) == 1:
            return f"tuple({texts[0]} for _ in range({len(texts)}))"
        return f"({', '.join(texts)}{',' if len(texts) == 1 else ''})"

    def text(self) -> list[str]:
        """The classes."""
        out: list[str] = []
        for fields, name in self._known.items():
            out += [
                "",
                "",
                f"class {name}(nn.Module):",
                '    """What the file puts together."""',
                "",
            ]
            out += [f"    {word}: {kind}" for word, kind in fields]
        return out


def _inner(word: str, inside: str) -> str:
    """What something inside is called: that of a list is one of it."""
    return singular(word) if inside.isdigit() else inside


def _title(word: str) -> str:
    pieces = [piece for piece in word.split("_") if piece]
    return "".join(piece[0].upper() + piece[1:] for piece in pieces)
