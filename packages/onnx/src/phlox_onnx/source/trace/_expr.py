"""Expressions and statements of the source that is written: a closed set, and no text of a file."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any, Final, final

import numpy as np

from phlox_tensor import DType

ATOM: Final = 20
POWER, UNARY, MUL, ADD, SHIFT, AND, XOR, OR, COMPARE, ANY = 15, 14, 13, 12, 11, 10, 9, 8, 7, 0


@final
@dataclass(frozen=True, slots=True)
class Ref:
    """A value by its number."""

    value: int


@final
@dataclass(frozen=True, slots=True)
class FieldRef:
    """A field of the module, by its number."""

    field: int


@final
@dataclass(frozen=True, slots=True)
class Expr:
    """Text with expressions in it; each with how tightly it has to bind there."""

    parts: tuple[str | tuple[Any, int], ...]
    binds: int = ATOM


Any_ = Expr | Ref | FieldRef


@final
@dataclass
class Stmt:
    """``targets = expr``."""

    targets: list[int]
    expr: Any_
    moves: bool = True


@final
@dataclass
class Branch:
    """Two blocks, of which one gives the targets."""

    targets: list[int]
    condition: Any_
    blocks: tuple[Block, Block]


@final
@dataclass
class Inner:
    """A function inside of a function."""

    target: int
    parameters: list[int]
    block: Block


Line = Stmt | Branch | Inner


@final
@dataclass
class Block:
    """Lines, and what they are there for."""

    lines: list[Line] = field(default_factory=list)
    results: list[Any_] = field(default_factory=list)


def blocks_of(line: Line) -> tuple[Block, ...]:
    """The blocks inside of a line."""
    if isinstance(line, Stmt):
        return ()
    return line.blocks if isinstance(line, Branch) else (line.block,)


def text(value: str, binds: int = ATOM) -> Expr:
    """Plain text."""
    return Expr((value,), binds)


def call(function: str, args: list[Any_], named: dict[str, Any_] | None = None) -> Expr:
    """A call of a name."""
    return Expr((f"{function}(", *_listed(args, named or {}), ")"))


def method(of: Any_, name: str, args: list[Any_], named: dict[str, Any_] | None = None) -> Expr:
    """A call of a method."""
    return Expr(((of, ATOM), f".{name}(", *_listed(args, named or {}), ")"))


def member(of: Any_, name: str) -> Expr:
    """An attribute."""
    return Expr(((of, ATOM), f".{name}"))


def item(of: Any_, places: list[Any_]) -> Expr:
    """An item."""
    return Expr(((of, ATOM), "[", *_listed(places, {}), "]"))


def row_of(items: list[Any_]) -> Expr:
    """A tuple."""
    return Expr(("(", *_listed(items, {}), ",)" if len(items) == 1 else ")"))


def list_of(items: list[Any_]) -> Expr:
    """A list."""
    return Expr(("[", *_listed(items, {}), "]"))


def binary(left: Any_, sign: str, right: Any_, binds: int) -> Expr:
    """An operator between two; those of equal rank are read from the left, but powers."""
    a, b = (binds + 1, binds) if sign == "**" else (binds, binds + 1)
    if binds == COMPARE:
        a = b = COMPARE + 1
    return Expr(((left, a), f" {sign} ", (right, b)), binds)


def unary(sign: str, of: Any_) -> Expr:
    """An operator in front of one."""
    binds = COMPARE - 1 if sign == "not " else UNARY
    return Expr((sign, (of, binds + (sign == "not "))), binds)


def _listed(args: list[Any_], named: dict[str, Any_]) -> Iterator[Any]:
    for i, each in enumerate([*args, *named.values()]):
        key = "" if i < len(args) else f"{list(named)[i - len(args)]}="
        yield (", " if i else "") + key
        yield (each, ANY)


def references(expr: Any_) -> Iterator[Ref | FieldRef]:
    """Every reference, from left to right."""
    if not isinstance(expr, Expr):
        yield expr
        return
    for part in expr.parts:
        if not isinstance(part, str):
            yield from references(part[0])


def rendered(expr: Any_, name: Callable[[Ref | FieldRef], str | Any_]) -> str:
    """The text of an expression; a name may be an expression that takes its place."""
    return _text(expr, name)[0]


def _text(expr: Any_, name: Callable[[Ref | FieldRef], str | Any_]) -> tuple[str, int]:
    if not isinstance(expr, Expr):
        found = name(expr)
        return (found, ATOM) if isinstance(found, str) else _text(found, name)
    out = []
    for part in expr.parts:
        if isinstance(part, str):
            out.append(part)
            continue
        inside, binds = _text(part[0], name)
        out.append(inside if binds >= part[1] else f"({inside})")
    return "".join(out), expr.binds


# Whether 0.6 of float32 is another number than 0.6 of float64 where it is read.
_WIDE: Final[ContextVar[bool]] = ContextVar("wide", default=False)


@contextmanager
def wide_numbers(wanted: bool) -> Iterator[None]:
    """Write floats with all digits of float64 inside of the block, or as around it."""
    before = _WIDE.set(wanted or _WIDE.get())
    try:
        yield
    finally:
        _WIDE.reset(before)


def number(value: float) -> str:
    """A float in as few digits as give it back, those of float32 where that is enough."""
    if math.isinf(value) or math.isnan(value):
        return f'float("{value}")'
    if _WIDE.get():
        return repr(float(value))
    with np.errstate(over="ignore"):
        narrow = np.float32(value)
    found = repr(float(value))
    short = repr(float(str(narrow))) if float(narrow) == value else found
    return short if len(short) < len(found) else found


def literal(value: Any) -> Expr:
    """A number, word, element type or array as source."""
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, np.ndarray):
        return _array(value)
    if value is None or isinstance(value, bool | str):
        return text(ascii(value).replace("'", '"') if _plain(value) else ascii(value))
    if isinstance(value, int):
        return text(str(value), UNARY if value < 0 else ATOM)
    if isinstance(value, float):
        return text(number(value), UNARY if value < 0 and math.isfinite(value) else ATOM)
    if isinstance(value, DType):
        return text(f"px.{value.name}")
    if isinstance(value, tuple):
        return row_of([literal(v) for v in value])
    if isinstance(value, list):
        return list_of([literal(v) for v in value])
    raise TypeError(f"no literal: {type(value).__name__}")


def _plain(value: Any) -> bool:
    return isinstance(value, str) and "'" not in value and '"' not in value and "\\" not in value


def _array(value: Any) -> Expr:
    if value.dtype.kind not in "biuf" or value.size > 64:
        raise TypeError("no literal: a large array")
    inside = literal(value.tolist())
    return call("np.array", [inside], {"dtype": text(f"np.{value.dtype.name}")})
