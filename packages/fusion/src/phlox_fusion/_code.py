"""The names that code uses: global ones, attributes, and texts that may be names of attributes."""

from __future__ import annotations

from dis import get_instructions
from types import CodeType
from typing import Final, NamedTuple
from weakref import WeakKeyDictionary

_GLOBAL: Final = frozenset(
    {"DELETE_GLOBAL", "LOAD_FROM_DICT_OR_GLOBALS", "LOAD_GLOBAL", "LOAD_NAME", "STORE_GLOBAL"}
)


class Names(NamedTuple):
    """The names that a piece of code uses, and those that are written inside of it.

    Attributes:
        of_globals: global names.
        attributes: all other names: attributes and methods.
        texts: constants that may be names of attributes, as ``getattr`` takes them.
    """

    of_globals: frozenset[str]
    attributes: frozenset[str]
    texts: frozenset[str]


_RUNNING: Final = frozenset({"eval", "exec"})

_KNOWN: Final[WeakKeyDictionary[CodeType, Names]] = WeakKeyDictionary()


def names_of(code: CodeType) -> Names:
    """Return the names in a function and in those written inside of it."""
    found = _KNOWN.get(code)
    if found is None:
        of_globals = {i.argval for i in get_instructions(code) if i.opname in _GLOBAL}
        attributes = set(code.co_names)
        written = [x for x in code.co_consts if isinstance(x, str)]
        texts = {part for x in written for part in x.split(".") if part.isidentifier()}
        run = filter(None, map(_code_in, written)) if of_globals & _RUNNING else ()
        for item in (*code.co_consts, *run):
            if isinstance(item, CodeType):
                inside = names_of(item)
                of_globals |= inside.of_globals
                attributes |= inside.attributes
                texts |= inside.texts
        found = Names(frozenset(of_globals), frozenset(attributes), frozenset(texts))
        _KNOWN[code] = found
    return found


def _code_in(text: str) -> CodeType | None:
    """The code that a text is; None for any other text."""
    try:
        return compile(text.strip(), "<text>", "exec")
    except (SyntaxError, ValueError):
        return None
