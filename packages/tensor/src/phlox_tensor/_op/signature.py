"""The typed signature of an op, written as text: ``x: Num; axis: Axes = None -> Num``.

Before the semicolon stand the operands (tensors), after it the attributes (plain values), after
the arrow the results. ``?`` marks an operand that may be None, ``*`` one that takes many tensors,
``*`` with ``?`` one that takes any number of them. Operands and attributes after a ``*`` of their
own are given by name alone, since other libraries have others in their places. A result with
``*`` stands for as many tensors as the shape rule says; it is then the only one.
"""

from __future__ import annotations

import ast
from collections.abc import Callable
from dataclasses import dataclass, replace
from inspect import Parameter
from keyword import iskeyword
from typing import Any, Final

from .._values.kinds import KIND_SETS
from .attributes import NORMALIZERS

# Stands where a value has to be given: as a default it is none to ``inspect`` and ``help``.
REQUIRED: Final = Parameter.empty


@dataclass(frozen=True, slots=True)
class Operand:
    """A tensor that an op takes."""

    name: str
    kind: str
    optional: bool = False
    variadic: bool = False
    named: bool = False  # as of attributes


@dataclass(frozen=True, slots=True)
class Attribute:
    """A plain value that an op takes; ``default`` is REQUIRED where there is none."""

    name: str
    type: str
    default: object
    named: bool = False  # by functions and methods; an op itself takes it by place too


@dataclass(frozen=True, slots=True)
class Result:
    """A tensor that an op gives."""

    name: str
    kind: str
    variadic: bool = False


@dataclass(frozen=True, slots=True)
class Signature:
    """A parsed signature."""

    operands: tuple[Operand, ...]
    attributes: tuple[Attribute, ...]
    results: tuple[Result, ...]
    text: str

    @property
    def several(self) -> bool:
        """Whether a call gives a tuple."""
        return len(self.results) > 1 or any(result.variadic for result in self.results)

    @property
    def divides(self) -> bool:
        """Whether Int operands are taken in the default float type: they are Num, and give Float.

        An attribute ``dtype`` says the type of the result by itself.
        """
        kinds = {operand.kind for operand in self.operands}
        told = "Float" in kinds or any(a.name == "dtype" for a in self.attributes)
        return "Num" in kinds and not told and self.results[0].kind == "Float"


def parse(text: str) -> Signature:
    """Parse the text of a signature."""
    head, arrow, tail = text.partition("->")
    if not arrow:
        raise ValueError(f"signature without '->': {text!r}")
    operands, _, attributes = head.partition(";")
    made = Signature(
        operands=_parsed(_operand, operands, text),
        attributes=_parsed(_attribute, attributes, text),
        results=tuple(_result(part, text) for part in _split(tail)),
        text=text.strip(),
    )
    if not made.results:
        raise ValueError(f"signature without a result: {text!r}")
    if len(made.results) > 1 and any(result.variadic for result in made.results):
        raise ValueError(f"a result of many tensors beside others: {text!r}")
    names = [o.name for o in made.operands] + [a.name for a in made.attributes]
    for name in names:
        if not name.isidentifier() or iskeyword(name) or names.count(name) > 1:
            raise ValueError(f"name {name!r} in {text!r} is malformed or occurs twice")
    return made


def _split(text: str) -> list[str]:
    """Split at commas outside brackets."""
    parts: list[str] = []
    depth = 0
    current = ""
    for char in text:
        depth += (char in "([") - (char in ")]")
        if char == "," and depth == 0:
            parts.append(current.strip())
            current = ""
        else:
            current += char
    if parts or current.strip():
        parts.append(current.strip())
    return parts


def _operand(part: str, text: str) -> Operand:
    name, colon, kind = (piece.strip() for piece in part.partition(":"))
    optional = kind.endswith("?")
    kind = kind.rstrip("?")
    if not colon or kind not in KIND_SETS:
        raise ValueError(f"operand {part!r} of {text!r} is not 'name: Kind'")
    return Operand(name.lstrip("*"), kind, optional, name.startswith("*"))


def _parsed(one: Callable[[str, str], Any], given: str, text: str) -> tuple[Any, ...]:
    parts = _split(given)
    end = parts.index("*") if "*" in parts else len(parts)
    by_name = [replace(one(part, text), named=True) for part in parts[end + 1 :]]
    return (*[one(part, text) for part in parts[:end]], *by_name)


def _attribute(part: str, text: str) -> Attribute:
    name, colon, rest = (piece.strip() for piece in part.partition(":"))
    type_name, equals, default = (piece.strip() for piece in rest.partition("="))
    if not colon or type_name not in NORMALIZERS:
        raise ValueError(f"attribute {part!r} of {text!r} is not 'name: type = default'")
    if not equals:
        return Attribute(name, type_name, REQUIRED)
    try:
        return Attribute(name, type_name, ast.literal_eval(default))
    except (SyntaxError, ValueError):
        raise ValueError(f"default of {part!r} in {text!r} is not a literal") from None


def _result(part: str, text: str) -> Result:
    name, colon, kind = (piece.strip() for piece in part.partition(":"))
    if not colon:
        name, kind = "y", name
    if kind not in KIND_SETS:
        raise ValueError(f"result {part!r} of {text!r} has no kind")
    return Result(name.lstrip("*"), kind, name.startswith("*"))
