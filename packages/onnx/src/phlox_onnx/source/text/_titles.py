"""What classes are called: after the modules of the file whose weights they hold."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import takewhile
from typing import Final

from ..._reserved import CLASSES
from ._structure import Part, Structure
from ._words import Names, pieces_of, singular, word_of

# What a class may not be called, beside another class.
_TAKEN: Final = CLASSES | {"Config", "Param"}


def titled(structure: Structure) -> dict[str, str]:
    """Name classes after the file where it has names; return what their fields are called."""
    names, words = Names(_TAKEN), {}
    for part in structure.parts:
        word = _word(part, structure)
        old = part.name
        if word:
            part.name = names.new(_title(word))
            for made in structure.fields:
                made.kind = part.name if made.kind == old else made.kind
            words[part.name] = word
        else:
            names.taken.add(old)
    return words


def _title(word: str) -> str:
    """A class for a word; many are one of them."""
    return "".join(piece.capitalize() for piece in singular(word).split("_") if piece)


def _word(part: Part, structure: Structure) -> str:
    """The word that all places of a class have in common, the innermost that is one."""
    prefixes = [_prefix(list(_places(own, structure))) for own in part.fields]
    words = map(word_of, reversed(_common(*prefixes)))
    return next((w for w in words if w and w != "self" and not w.endswith("_")), "")


def _places(own: list[int], structure: Structure) -> Iterator[list[str]]:
    """Where the weights of an instance stand in the file."""
    parts = {part.name for part in structure.parts}
    for number in own:
        made = structure.fields[number]
        if made.kind in parts:
            yield from _places(made.settings[0][1], structure)
            continue
        found = next((p for n in made.words[:-1] if len(p := pieces_of(n)) > 1), None)
        if found is not None:
            yield found[:-1]


def _prefix(places: list[list[str]]) -> list[str]:
    return _common(*places) if places else []


def _common(*lists: list[str]) -> list[str]:
    """What all begin with."""
    return [row[0] for row in takewhile(lambda row: len(set(row)) == 1, zip(*lists, strict=False))]
