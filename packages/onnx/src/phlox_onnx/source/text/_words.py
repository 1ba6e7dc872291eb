"""Names of a file as words of source."""

from __future__ import annotations

import builtins
import keyword
import re
from collections.abc import Iterable
from typing import Final, final

from ..trace._values import Field

_NOTHING: Final = re.compile(r"^(onnx|\d.*|[Cc]onstant.*|const|.)$")
# Last words of names, which say what a parameter is for a layer, and nothing of which layer.
_LAST: Final = frozenset(("bias", "val", "value", "weight"))


def word_of(name: str) -> str:
    """A name from a file as an identifier, or nothing."""
    text = re.sub(r"[^0-9A-Za-z]+", "_", name)
    text = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", text).strip("_").lower()
    text = re.sub(r"(_\d+)+$", "", text)[:40].strip("_")
    if not text or not text[0].isalpha() or _NOTHING.match(text):
        return ""
    taken = keyword.iskeyword(text) or keyword.issoftkeyword(text) or hasattr(builtins, text)
    return f"{text}_" if taken else text


def singular(word: str) -> str:
    """One of many."""
    return word[:-1] if re.search(r"[^s]s$", word) and len(word) > 3 else word


def pieces_of(name: str) -> list[str]:
    """The modules in a name."""
    return [p for p in re.split(r"[./:]", name) if p]


def field_word(made: Field) -> str:
    """What a field may be called: the layer's place in the names of the file."""
    *names, default = made.words
    for name in names:
        pieces = pieces_of(name)
        inner = (
            pieces
            if made.kind == "Param" and pieces[-1:] not in ([w] for w in _LAST)
            else pieces[:-1]
        )
        for piece in reversed(inner):
            found = word_of(piece)
            if found:
                return found
    return word_of(default) or "part"


@final
class Names:
    """Words that are each given once."""

    def __init__(self, taken: Iterable[str] = ()) -> None:
        """Start with what is taken."""
        self.taken = set(taken)
        self._next: dict[str, int] = {}

    def new(self, word: str) -> str:
        """The word, or with a number."""
        found, i = word, self._next.get(word, 1)
        while found in self.taken:
            i += 1
            found = f"{word}_{i}" if word[-1:].isdigit() else f"{word}{i}"
        self._next[word] = i
        self.taken.add(found)
        return found
