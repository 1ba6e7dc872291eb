"""The names that code uses: global ones, attributes, modules, and texts that may be attributes."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Mapping, Sequence
from dis import Instruction, get_instructions
from types import CodeType
from typing import Any, Final, NamedTuple
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
        imports: modules that it imports as it runs, each with how many packages up it starts.
        whole: it may ask for any attribute: by a name put together, or in a pattern of a class.
        identity: it may ask whether two objects are one.
    """

    of_globals: frozenset[str]
    attributes: frozenset[str]
    texts: frozenset[str]
    imports: frozenset[tuple[int, str]]
    whole: bool
    identity: bool


ASKING: Final = frozenset({"attrgetter", "delattr", "getattr", "hasattr", "setattr"})
_FORMATTING: Final = frozenset({"format", "format_map"})
_SAME: Final = frozenset({"id", "is_", "is_not"})
_RUNNING: Final = frozenset({"eval", "exec"})

_NAME: Final = re.compile(r"[A-Za-z_]\w*")
_KNOWN: Final[WeakKeyDictionary[CodeType, Names]] = WeakKeyDictionary()


def names_of(code: CodeType) -> Names:
    """Return the names in a function and in those written inside of it."""
    found = _KNOWN.get(code)
    if found is None:
        steps = [step for step in get_instructions(code) if step.opname != "EXTENDED_ARG"]
        of_globals = {step.argval for step in steps if step.opname in _GLOBAL}
        imports = set(_imported(steps))
        attributes = set(code.co_names)
        written = [x for x in code.co_consts if isinstance(x, str)]
        texts = {part for x in written for part in x.split(".") if part.isidentifier()}
        if attributes & _FORMATTING:  # "{config.rate}"
            attributes |= {name for x in written if "{" in x for name in _NAME.findall(x)}
        whole = _asks_for_any(steps)
        identity = bool(_SAME & (of_globals | attributes)) or _compares_objects(steps)
        run = filter(None, map(_code_in, written)) if of_globals & _RUNNING else ()
        for item in (*code.co_consts, *run):
            if isinstance(item, CodeType):
                inside = names_of(item)
                of_globals |= inside.of_globals
                attributes |= inside.attributes
                texts |= inside.texts
                imports |= inside.imports
                whole, identity = whole or inside.whole, identity or inside.identity
        found = Names(
            frozenset(of_globals),
            frozenset(attributes),
            frozenset(texts),
            frozenset(imports),
            whole,
            identity,
        )
        _KNOWN[code] = found
    return found


def _asks_for_any(steps: Sequence[Instruction]) -> bool:
    """Whether code asks for attributes whose names are not written in it."""
    for at, step in enumerate(steps):
        if step.opname == "MATCH_CLASS":
            return True
        if step.argval in ASKING and step.opname.startswith("LOAD_"):
            rest = itertools.takewhile(lambda s: not s.opname.startswith("CALL"), steps[at + 1 :])
            given = [*rest]
            made = any(s.opname in ("BINARY_OP", "BUILD_STRING") for s in given)
            if made or not any(type(s.argval) is str and s.opname == "LOAD_CONST" for s in given):
                return True
    return False


def _compares_objects(steps: Sequence[Instruction]) -> bool:
    """Whether code compares objects by ``is``, other than with what there is one of."""
    return any(
        step.opname == "IS_OP" and before.opname != "LOAD_CONST"
        for before, step in itertools.pairwise(steps)
    )


def _imported(steps: Sequence[Instruction]) -> Iterator[tuple[int, str]]:
    """The modules that code imports: the level lies on the stack before the names asked for."""
    for level, _, step in zip(steps, steps[1:], steps[2:], strict=False):
        if step.opname == "IMPORT_NAME":
            yield level.argval, step.argval


def absolute(name: str, level: int, space: Mapping[str, Any]) -> str:
    """The full name of a module that code imports.

    Args:
        name: as it stands there.
        level: how many packages up it starts; 0 for a full name.
        space: the globals of the code.
    """
    if not level:
        return name
    package = space.get("__package__")
    if package is None:
        own = str(space.get("__name__", ""))
        package = own if "__path__" in space else own.rpartition(".")[0]
    above = package.rsplit(".", level - 1)[0]
    return f"{above}.{name}" if name else above


def _code_in(text: str) -> CodeType | None:
    """The code that a text is; None for any other text."""
    try:
        return compile(text.strip(), "<text>", "exec")
    except (SyntaxError, ValueError):
        return None
