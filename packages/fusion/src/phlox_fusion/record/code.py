"""Which names does code use: of globals, of attributes, of modules that it imports?"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dis import Instruction, get_instructions
from importlib.util import resolve_name
from itertools import pairwise, takewhile
from types import CodeType
from typing import Any, Final, NamedTuple
from weakref import WeakKeyDictionary

_GLOBAL: Final = frozenset(
    {"DELETE_GLOBAL", "LOAD_FROM_DICT_OR_GLOBALS", "LOAD_GLOBAL", "LOAD_NAME", "STORE_GLOBAL"}
)
_ASKING: Final = frozenset(
    {"attrgetter", "delattr", "getattr", "hasattr", "methodcaller", "setattr"}
)
ENVIRONMENT: Final = frozenset({"environ", "getenv"})
_FORMATTING: Final = frozenset({"format", "format_map"})  # "{config.rate}"
_WHOLE: Final = frozenset({"__dict__", "asdict", "astuple", "dir", "getmembers", "vars"})
_BY_TEXT: Final = frozenset({"eval", "exec", "globals"})
_KINDS: Final = frozenset({"double", "float", "float64", "int"})
_SAME: Final = frozenset({"id", "is_", "is_not"})
_WORD: Final = re.compile(r"[A-Za-z_]\w*")

KINDS: Final = "kinds"
REFUSED: Final = "refused"
WHOLE: Final = "whole"


class Names(NamedTuple):
    """The names that a piece of code uses, and those that are written inside of it.

    Attributes:
        attributes: all other names: attributes and methods, also those in texts.
        asked: attributes in texts, which may be absent.
        imports: modules that it imports as it runs, each with how many packages up it starts.
        does: what else counts: it may ask for the class of numbers (``KINDS``), for any attribute
            (``WHOLE``), or may go on behind a ``TypeError`` (``REFUSED``).
        told_apart: what it compares by ``is``; empty for what no name stands for.
    """

    of_globals: frozenset[str]
    attributes: frozenset[str]
    asked: frozenset[str]
    imports: frozenset[tuple[int, str]]
    does: frozenset[str]
    told_apart: frozenset[str]


_KNOWN: Final[WeakKeyDictionary[CodeType, Names]] = WeakKeyDictionary()


def names_of(code: CodeType) -> Names:
    """Return the names in a function and in those written inside of it."""
    if code not in _KNOWN:
        inside = [names_of(item) for item in code.co_consts if isinstance(item, CodeType)]
        fields: Any = zip(_own(code), *inside, strict=True)
        _KNOWN[code] = Names(*[frozenset().union(*each) for each in fields])
    return _KNOWN[code]


def _own(code: CodeType) -> tuple[set[Any], ...]:
    """The fields of ``Names`` without functions inside."""
    steps = [step for step in get_instructions(code) if step.opname != "EXTENDED_ARG"]
    of_globals = {step.argval for step in steps if step.opname in _GLOBAL}
    names = {*code.co_names}
    texts = words(" ".join(item for item in code.co_consts if isinstance(item, str)))
    asked = texts if names & (_ASKING | ENVIRONMENT | _FORMATTING) else set[str]()
    if of_globals & _BY_TEXT:
        of_globals |= texts
        names |= texts
    imports = {  # the level lies below the names that are asked for
        (steps[at - 2].argval, step.argval)
        for at, step in enumerate(steps)
        if step.opname == "IMPORT_NAME"
    }
    does = {*_does(steps, names)}
    kinds = texts & _KINDS or names & {"double", "float64"} or _names_kinds(steps, names)
    if "type" in of_globals and kinds:
        does.add(KINDS)
    told_apart = names & _SAME | {
        _dotted(steps[: at + 1])
        for at, (step, after) in enumerate(pairwise(steps))
        if after.opname == "IS_OP" and step.opname != "LOAD_CONST"  # no ``is None``
    }
    return of_globals, names | asked, asked, imports, does, told_apart


def _does(steps: list[Instruction], names: set[str]) -> Iterator[str]:
    """What else counts, but for classes of numbers."""
    operations = {step.opname for step in steps}
    asking = (steps[at:] for at, step in enumerate(steps) if step.argval in _ASKING)
    if names & _WHOLE or "MATCH_CLASS" in operations or any(map(_makes_a_name, asking)):
        yield WHOLE
    bare = "PUSH_EXC_INFO" in operations and "WITH_EXCEPT_START" not in operations
    if bare or "CHECK_EXC_MATCH" in operations or "suppress" in names:
        yield REFUSED


def _makes_a_name(steps: list[Instruction]) -> bool:
    """Whether ``getattr`` or its like is called with a name that is not written there."""
    given = [*takewhile(lambda step: not step.opname.startswith("CALL"), steps[1:])]
    made = any(step.opname.startswith(("BINARY_", "BUILD_STRING")) for step in given)
    return made or not any(s.opname == "LOAD_CONST" and type(s.argval) is str for s in given)


def _dotted(steps: list[Instruction]) -> str:
    """The name that is loaded last, such as ``px.Tensor``; empty where it is none."""
    *before, last = steps
    if last.opname in _GLOBAL:
        return str(last.argval)
    first = _dotted(before) if last.opname == "LOAD_ATTR" else ""
    return f"{first}.{last.argval}" if first else ""


def _names_kinds(steps: list[Instruction], names: set[str]) -> bool:
    """Whether code compares with ``int`` or ``float``, or has them in a table."""
    for step, after in pairwise(steps):
        called = (step.arg or 0) & 1
        if step.opname == "LOAD_GLOBAL" and step.argval in ("int", "float") and not called:
            given = after.opname.startswith(("CALL", "KW_NAMES", "PRECALL"))  # x.astype(float)
            other = "issubclass" not in names and ("isinstance" in names or given)
            if not other or after.opname in ("IS_OP", "COMPARE_OP"):
                return True
    return False


def words(text: str) -> set[str]:
    """What may be names in a text."""
    return {*_WORD.findall(text)}


def absolute(name: str, level: int, space: Mapping[str, Any]) -> str:
    """The full name of a module that code imports.

    Args:
        level: how many packages up it starts; 0 for a full name.
    """
    try:
        return resolve_name("." * level + name, space.get("__package__") or "")
    except ImportError:  # as the import itself will say
        return name
