"""Which names does code use: of globals, of attributes, of modules that it imports?"""

from __future__ import annotations

import itertools
import re
from collections.abc import Mapping
from dis import Instruction, get_instructions
from importlib.util import resolve_name
from types import CodeType
from typing import Any, Final, NamedTuple
from weakref import WeakKeyDictionary

_GLOBAL: Final = frozenset(
    {"DELETE_GLOBAL", "LOAD_FROM_DICT_OR_GLOBALS", "LOAD_GLOBAL", "LOAD_NAME", "STORE_GLOBAL"}
)
_ASKING: Final = frozenset(
    {"attrgetter", "delattr", "getattr", "hasattr", "methodcaller", "setattr"}
)
_WHOLE: Final = frozenset({"__dict__", "asdict", "astuple", "dir", "getmembers", "vars"})
_FORMATTING: Final = frozenset({"format", "format_map"})
_BY_TEXT: Final = frozenset({"eval", "exec", "globals"})
_ENVIRONMENT: Final = frozenset({"environ", "getenv"})
_SAME: Final = frozenset({"id", "is_", "is_not"})
_WORD: Final = re.compile(r"[A-Za-z_]\w*")


WHOLE: Final = "whole"
CATCHES: Final = "catches"
KINDS: Final = "kinds"
REFUSED: Final = "refused"


class Names(NamedTuple):
    """The names that a piece of code uses, and those that are written inside of it.

    Attributes:
        attributes: all other names: attributes and methods, also those in texts.
        asked: attributes in texts, which may be absent.
        imports: modules that it imports as it runs, each with how many packages up it starts.
        does: what else counts: it asks for any attribute (``WHOLE``), goes on after an
            ``AttributeError`` (``CATCHES``), or behind a ``TypeError`` (``REFUSED``), asks for the
            class of numbers (``KINDS``).
        identity: what it may ask whether it is another object; empty for what no name stands for.
    """

    of_globals: frozenset[str]
    attributes: frozenset[str]
    asked: frozenset[str]
    variables: frozenset[str]
    imports: frozenset[tuple[int, str]]
    does: frozenset[str]
    identity: frozenset[str]


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
    written = [item for item in code.co_consts if isinstance(item, str)]
    texts = {part for text in written for part in text.split(".") if part.isidentifier()}
    attributes = set(code.co_names)
    asked = texts if attributes & _ASKING else set[str]()
    variables = texts if attributes & _ENVIRONMENT else set[str]()
    same, imports = attributes & _SAME, set[tuple[int, str]]()
    does = {WHOLE} if attributes & _WHOLE else set[str]()
    does |= _goes_on(steps, attributes)
    kinds = _names_kinds(steps, texts) or not {"double", "float64"}.isdisjoint(attributes | texts)
    does |= {KINDS} if "type" in of_globals and kinds else set[str]()
    if attributes & _FORMATTING:  # "{config.rate}"
        attributes |= {name for text in written if "{" in text for name in words(text)}
    if of_globals & _BY_TEXT:
        of_globals.update(*map(words, written))
    for at, step in enumerate(steps):
        before = steps[at - 1]
        if step.opname == "MATCH_CLASS" or (step.argval in _ASKING and _puts_together(steps[at:])):
            does.add(WHOLE)
        elif step.opname == "IS_OP" and before.opname != "LOAD_CONST":  # no ``is None``
            same.add(_dotted(steps[:at]))
        elif step.opname == "IMPORT_NAME":  # the level lies below the names that are asked for
            imports.add((steps[at - 2].argval, step.argval))
    return of_globals, attributes | asked, asked, variables, imports, does, same


def _goes_on(steps: list[Instruction], names: set[str]) -> set[str]:
    """Behind which errors code goes on, by an ``except`` or ``suppress`` that they may end in."""
    caught, bare = set[Any](), False
    for before, step in itertools.pairwise(steps):
        bare = bare or step.opname == "PUSH_EXC_INFO"
        if step.opname == "CHECK_EXC_MATCH":
            caught.add(before.argval if before.opname in _GLOBAL else None)
    wide = {"Exception", "BaseException", None}
    known = bool(caught) or any(step.opname == "WITH_EXCEPT_START" for step in steps)
    if wide & caught or "suppress" in names or (bare and not known):
        return {CATCHES, REFUSED}
    errors = {"AttributeError": CATCHES, "TypeError": REFUSED}
    return {errors[name] for name in caught & errors.keys()}


def _names_kinds(steps: list[Instruction], texts: set[str]) -> bool:
    """Whether code compares with ``int`` or ``float``, or a table of them, or their names."""
    told = {step.argval for step in steps} & {"isinstance", "issubclass"}
    for step, after in itertools.pairwise(steps):
        if step.opname != "LOAD_GLOBAL" or step.argval not in ("int", "float"):
            continue
        called = (step.arg or 0) & 1
        given = after.opname.startswith(("CALL", "KW_NAMES", "PRECALL"))  # x.astype(float)
        compared = after.opname in ("IS_OP", "COMPARE_OP") or "issubclass" in told
        if not called and (compared or not (given or told)):
            return True
    return not texts.isdisjoint(("int", "float"))


def _puts_together(steps: list[Instruction]) -> bool:
    """Whether ``getattr`` or its like is called with a name that is not written there."""
    given = [*itertools.takewhile(lambda s: not s.opname.startswith("CALL"), steps[1:])]
    made = any(s.opname in ("BINARY_OP", "BUILD_STRING") for s in given)
    return made or not any(type(s.argval) is str and s.opname == "LOAD_CONST" for s in given)


def _dotted(steps: list[Instruction]) -> str:
    """The name that is loaded last, such as ``px.Tensor``; empty where it is none."""
    names = []
    while steps and steps[-1].opname == "LOAD_ATTR":
        names.append(steps[-1].argval)
        steps = steps[:-1]
    known = bool(steps) and steps[-1].opname in _GLOBAL
    return ".".join([steps[-1].argval, *reversed(names)]) if known else ""


def words(text: str) -> set[str]:
    """What may be names in a text."""
    return {*_WORD.findall(text)}


def absolute(name: str, level: int, space: Mapping[str, Any]) -> str:
    """The full name of a module that code imports.

    Args:
        level: how many packages up it starts; 0 for a full name.
    """
    package = space.get("__package__")
    if package is None:
        own = str(space.get("__name__", ""))
        package = own if "__path__" in space else own.rpartition(".")[0]
    try:
        return resolve_name("." * level + name, package)
    except ImportError:  # as the import itself will say
        return name
