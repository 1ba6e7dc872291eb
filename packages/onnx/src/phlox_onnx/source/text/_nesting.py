"""Expressions inside of others, where both stay short enough to be read."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any, Final

from ..trace import _expr as e
from ..trace._expr import (
    Block,
    Branch,
    FieldRef,
    Inner,
    Line,
    Ref,
    Stmt,
    blocks_of,
    references,
    rendered,
)

WIDTH: Final = 74  # of an expression that others are written into


def line_refs(line: Line) -> Iterator[Ref | FieldRef]:
    """Every reference of a line, those of blocks inside included."""
    if isinstance(line, Stmt):
        yield from references(line.expr)
    elif isinstance(line, Branch):
        yield from references(line.condition)
    for block in blocks_of(line):
        yield from all_refs(block)


def all_refs(block: Block) -> Iterator[Ref | FieldRef]:
    """Every reference of a block."""
    for line in block.lines:
        yield from line_refs(line)
    for result in block.results:
        yield from references(result)


def last_readers(block: Block) -> dict[int, int]:
    """The last line that reads each value; behind all lines where it is a result."""
    last = {
        r.value: i
        for i, line in enumerate(block.lines)
        for r in line_refs(line)
        if isinstance(r, Ref)
    }
    for result in block.results:
        last |= {r.value: len(block.lines) for r in references(result) if isinstance(r, Ref)}
    return last


def nested(block: Block, word: Callable[[int], str]) -> Block:
    """Write what is read once into what reads it, where that stays short.

    Args:
        block: the lines.
        word: how a field is spelled, by its number.
    """

    def length(expr: Any) -> int:
        return len(rendered(expr, lambda r: "x" if isinstance(r, Ref) else word(r.field)))

    uses = Counter(r.value for r in all_refs(block) if isinstance(r, Ref))
    waiting: dict[int, Stmt] = {}
    out = Block()

    def filled(expr: Any, room: int) -> Any:
        """An expression with as much in it as there is room for; the rest is written before."""
        while True:
            found = [r for r in references(expr) if isinstance(r, Ref) and r.value in waiting]
            if not found:
                return expr
            for ref in found:
                inside = waiting.pop(ref.value)
                if length(expr) + length(inside.expr) <= room:
                    expr = _replaced(expr, ref, inside.expr)
                else:
                    inside.expr = filled(inside.expr, WIDTH)
                    out.lines.append(inside)

    for line in block.lines:
        if isinstance(line, Stmt):
            new = Stmt(line.targets, line.expr, line.moves)
            if len(line.targets) == 1 and uses[line.targets[0]] == 1 and line.moves:
                new.expr = filled(line.expr, WIDTH)
                waiting[line.targets[0]] = new
                continue
            new.expr = filled(line.expr, WIDTH)
            out.lines.append(new)
            continue
        for ref in line_refs(line):
            if isinstance(ref, Ref) and ref.value in waiting:
                out.lines.append(waiting.pop(ref.value))
        if isinstance(line, Branch):
            one, two = (nested(inner, word) for inner in line.blocks)
            out.lines.append(Branch(line.targets, line.condition, (one, two)))
        else:
            inner = nested(line.block, word)
            out.lines.append(Inner(line.target, line.parameters, inner))
    out.results = [filled(r, WIDTH // len(block.results)) for r in block.results]
    out.lines += waiting.values()
    return out


def _replaced(expr: Any, ref: Ref, by: Any) -> Any:
    if not isinstance(expr, e.Expr):
        return by if expr == ref else expr
    parts = tuple(p if isinstance(p, str) else (_replaced(p[0], ref, by), p[1]) for p in expr.parts)
    return e.Expr(parts, expr.binds)
