"""Lines as classes: what is nested, what is repeated, what is too long."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Final, final

from . import _expr as e
from ._expr import (
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
from ._values import Field

WIDTH: Final = 74  # of an expression that others are written into
LONGEST: Final = 40  # lines of a forward
REPEATED: Final = 90  # ops of a block at most, and at least
SHORTEST: Final = 4


@final
@dataclass
class Part:
    """A class that is written: its instances are fields, of others or of the model.

    Attributes:
        fields: the fields of each instance, in one order.
    """

    name: str
    inputs: list[int]
    block: Block
    fields: list[list[int]] = field(default_factory=list)


def without_unread(block: Block) -> Block:
    """Leave out lines whose values nobody reads."""
    needed = {r.value for x in block.results for r in references(x) if isinstance(r, Ref)}
    kept: list[Line] = []
    for line in reversed(block.lines):
        if needed.isdisjoint(made_by(line)):
            continue
        if isinstance(line, Branch):
            one, two = map(without_unread, line.blocks)
            line = Branch(line.targets, line.condition, (one, two))  # noqa: PLW2901 - the same
        elif isinstance(line, Inner):
            line = Inner(line.target, line.parameters, without_unread(line.block))  # noqa: PLW2901
        needed |= {r.value for r in line_refs(line) if isinstance(r, Ref)}
        kept.append(line)
    return Block(kept[::-1], block.results)


def nested(block: Block) -> Block:
    """Write what is read once into what reads it, where that stays short."""
    uses = Counter(r.value for r in _all_refs(block) if isinstance(r, Ref))
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
                if _length(expr) + _length(inside.expr) <= room:
                    expr = _replaced(expr, ref, inside.expr)
                else:
                    inside.expr = filled(inside.expr, WIDTH)
                    out.lines.append(inside)

    for line in block.lines:
        if isinstance(line, Stmt):
            if len(line.targets) == 1 and uses[line.targets[0]] == 1 and line.moves:
                waiting[line.targets[0]] = line
                inner = _nested_alone(line, waiting, filled)
                waiting[line.targets[0]] = inner
                continue
            out.lines.append(Stmt(line.targets, filled(line.expr, WIDTH), line.moves))
            continue
        for ref in line_refs(line):
            if isinstance(ref, Ref) and ref.value in waiting:
                stmt = waiting.pop(ref.value)
                out.lines.append(stmt)
        if isinstance(line, Branch):
            one, two = line.blocks
            out.lines.append(Branch(line.targets, line.condition, (nested(one), nested(two))))
        else:
            out.lines.append(Inner(line.target, line.parameters, nested(line.block)))
    out.results = [filled(r, WIDTH // len(block.results)) for r in block.results]
    out.lines += waiting.values()
    return out


def _nested_alone(line: Stmt, waiting: dict[int, Stmt], filled: Any) -> Stmt:
    del waiting[line.targets[0]]
    return Stmt(line.targets, filled(line.expr, WIDTH), line.moves)


def _replaced(expr: Any, ref: Ref, by: Any) -> Any:
    if not isinstance(expr, e.Expr):
        return by if expr == ref else expr
    parts = tuple(p if isinstance(p, str) else (_replaced(p[0], ref, by), p[1]) for p in expr.parts)
    return e.Expr(parts, expr.binds)


def _length(expr: Any) -> int:
    return len(rendered(expr, lambda r: "x" if isinstance(r, Ref) else "self.field"))


def line_refs(line: Line) -> Iterator[Ref | FieldRef]:
    """Every reference of a line, those of blocks inside included."""
    if isinstance(line, Stmt):
        yield from references(line.expr)
    elif isinstance(line, Branch):
        yield from references(line.condition)
    for block in blocks_of(line):
        yield from _all_refs(block)


def _all_refs(block: Block) -> Iterator[Ref | FieldRef]:
    for line in block.lines:
        yield from line_refs(line)
    for result in block.results:
        yield from references(result)


def made_by(line: Line) -> list[int]:
    """The values that a line makes."""
    return [line.target] if isinstance(line, Inner) else line.targets


@final
class Structure:
    """Divides the lines of a model among classes."""

    def __init__(self, inputs: list[int], block: Block, fields: list[Field]) -> None:
        """Take the model as one long forward."""
        self.fields = fields
        self.parts: list[Part] = []
        self.model = Part("Model", inputs, without_unread(block))

    def divide(self, *, whole: bool = False) -> None:
        """Find what is repeated, then cut what is long; or leave it whole."""
        while not whole and self._repeated():
            pass
        for part in [*self.parts, self.model]:
            part.block = nested(part.block)
        if not whole:
            self._cut(self.model)
        self.model.fields = [self._own(self.model.block)]

    # Repeated lines

    def _repeated(self) -> bool:
        """Make one class of the lines that save most."""
        block = self.model.block
        skeletons = [self._skeleton(line) for line in block.lines]
        numbers: dict[Any, int] = {}
        tokens = [numbers.setdefault(s, len(numbers)) for s in skeletons]
        shared = self._shared(block)
        best: tuple[int, list[int], int] | None = None
        readers = self._readers(block)
        for length in range(min(REPEATED, len(tokens) // 2), SHORTEST - 1, -1):
            least = best[0] if best is not None else 0
            for starts in self._alike(tokens, length, block, shared, readers, least):
                saved = (len(starts) - 1) * length
                if best is None or saved > best[0]:
                    best = saved, starts, length
        if best is None or best[0] < SHORTEST:
            return False
        _, starts, length = best
        self._replace(starts, length, f"Block{len(self.parts) + 1}")
        return True

    def _alike(
        self,
        tokens: list[int],
        length: int,
        block: Block,
        shared: set[int],
        readers: dict[int, int],
        least: int,
    ) -> Iterator[list[int]]:
        seen: dict[tuple[int, ...], list[int]] = defaultdict(list)
        for start in range(len(tokens) - length + 1):
            seen[tuple(tokens[start : start + length])].append(start)
        for starts in seen.values():
            if (len(_apart(starts, length)) - 1) * length <= least:
                continue
            groups: dict[Any, list[int]] = defaultdict(list)
            for start in starts:
                form = self._form(block.lines[start : start + length], shared)
                if form is not None:
                    groups[form].append(start)
            for group in groups.values():
                apart = _apart(group, length)
                if len(apart) > 1 and self._crossing(apart, length, readers) is not None:
                    yield apart

    def _skeleton(self, line: Line) -> Any:
        if not isinstance(line, Stmt):
            return id(line)
        text = rendered(line.expr, lambda r: "$" if isinstance(r, Ref) else self._kind(r.field))
        return len(line.targets), text

    def _kind(self, number: int) -> str:
        made = self.fields[number]
        if made.kind == "Param":
            return f"#Param{made.settings!r}{made.arrays[''][1]}"
        return f"#{made.kind}({','.join(k for k, _ in made.settings)})"

    def _form(self, lines: list[Line], shared: set[int]) -> Any:
        """How lines hang together, whatever their values are called; None where they cannot."""
        inside: dict[int, int] = {}
        outside: dict[int, int] = {}
        own: dict[int, int] = {}
        form: list[Any] = []
        for line in lines:
            if not isinstance(line, Stmt):
                return None
            for ref in references(line.expr):
                if isinstance(ref, FieldRef):
                    if ref.field in shared:
                        return None
                    form.append(("f", own.setdefault(ref.field, len(own))))
                elif ref.value in inside:
                    form.append(("i", inside[ref.value]))
                else:
                    form.append(("o", outside.setdefault(ref.value, len(outside))))
            for target in line.targets:
                inside[target] = len(inside)
        return tuple(form) if len(outside) <= 4 and own else None

    def _shared(self, block: Block) -> set[int]:
        count = Counter(
            f
            for line in block.lines
            for f in {r.field for r in line_refs(line) if isinstance(r, FieldRef)}
        )
        return {f for f, n in count.items() if n > 1}

    def _readers(self, block: Block) -> dict[int, int]:
        """The last line that reads each value."""
        last: dict[int, int] = {}
        for i, line in enumerate(block.lines):
            last |= {r.value: i for r in line_refs(line) if isinstance(r, Ref)}
        for result in block.results:
            last |= {r.value: len(block.lines) for r in references(result) if isinstance(r, Ref)}
        return last

    def _crossing(
        self, starts: list[int], length: int, readers: dict[int, int]
    ) -> list[int] | None:
        """Which values of the lines are read after them, in any of the places."""
        lines = self.model.block.lines
        found: set[int] = set()
        for start in starts:
            made = [t for line in lines[start : start + length] for t in made_by(line)]
            found |= {i for i, v in enumerate(made) if readers.get(v, -1) >= start + length}
        return sorted(found) if len(found) <= 3 else None

    def _replace(self, starts: list[int], length: int, name: str) -> None:
        block = self.model.block
        crossing = self._crossing(starts, length, self._readers(block)) or []
        part: Part | None = None
        for start in reversed(starts):
            lines = block.lines[start : start + length]
            inputs, made, own = self._ports(lines)
            results: list[Any] = [Ref(made[i]) for i in crossing]
            if part is None:
                part = Part(name, inputs, Block(lines, results))
            part.fields.insert(0, own)
            if start == starts[0]:
                part.inputs, part.block = inputs, Block(lines, results)
            block.lines[start : start + length] = [self._call(part, own, inputs, results)]
        assert part is not None
        self.parts.append(part)

    def _ports(self, lines: list[Line]) -> tuple[list[int], list[int], list[int]]:
        made = [t for line in lines for t in made_by(line)]
        refs = [r for line in lines for r in line_refs(line)]
        inner = {p for line in lines for p in _inner_values(line)}
        inputs = list(
            dict.fromkeys(
                r.value
                for r in refs
                if isinstance(r, Ref) and r.value not in made and r.value not in inner
            )
        )
        return inputs, made, _fields_of(lines, [])

    def _call(self, part: Part, own: list[int], inputs: list[int], results: list[Any]) -> Stmt:
        words = (part.name.rstrip("0123456789").lower(),)
        made = Field(part.name, [("", own)], {}, words)
        self.fields.append(made)
        number = len(self.fields) - 1
        expr = e.Expr(((FieldRef(number), e.ATOM), *e.call("", [Ref(i) for i in inputs]).parts))
        return Stmt([r.value for r in results], expr)

    # Long forwards

    def _cut(self, part: Part) -> None:
        """Give what is too long to classes of its own, cut where little crosses."""
        while len(part.fields) < 2 and self._weight(part.block) > LONGEST + 8:
            if not self._stages(part):
                return

    def _stages(self, part: Part) -> bool:
        """Cut the whole of a forward once, from its start to its end."""
        lines, shared = part.block.lines, self._shared(part.block)
        start, made = 0, False
        while len(part.block.lines) - start > LONGEST // 2:
            best: tuple[float, int] | None = None
            for length in range(8, min(LONGEST, len(lines) - start) + 1):
                cost = self._cost(part, start, length, shared)
                if cost is not None and (best is None or cost <= best[0]):
                    best = cost, length
            if best is None:
                start += 1
                continue
            self._stage(part, start, best[1])
            lines, start, made = part.block.lines, start + 1, True
        return made

    def _stage(self, part: Part, start: int, length: int) -> None:
        lines = part.block.lines[start : start + length]
        inputs, made, own = self._ports(lines)
        results: list[Any] = [Ref(v) for v in self._read_after(part, start, length, made)]
        stage = Part(f"Stage{len(self.parts) + 1}", inputs, Block(lines, results), [own])
        part.block.lines[start : start + length] = [self._call(stage, own, inputs, results)]
        if part.fields:
            part.fields = [self._own(part.block)]
        self.parts.append(stage)

    def _read_after(self, part: Part, start: int, length: int, made: list[int]) -> list[int]:
        lines = part.block.lines[start + length :]
        after = {r.value for line in lines for r in line_refs(line) if isinstance(r, Ref)}
        for result in part.block.results:
            after |= {r.value for r in references(result) if isinstance(r, Ref)}
        return [v for v in made if v in after]

    def _cost(self, part: Part, start: int, length: int, shared: set[int]) -> float | None:
        lines = part.block.lines[start : start + length]
        inputs, made, own = self._ports(lines)
        if any(f in shared for f in own) or len(own) > LONGEST or not own:
            return None
        if any(isinstance(line, Inner) for line in lines) and self._inner_leaks(lines):
            return None
        if sum(_height(line) for line in lines) > LONGEST + 8:
            return None
        crossing = len(self._read_after(part, start, length, made)) + len(inputs)
        return crossing - length / 20

    def _inner_leaks(self, lines: list[Line]) -> bool:
        return isinstance(lines[-1], Inner)

    def _weight(self, block: Block) -> int:
        return sum(map(_height, block.lines))

    def _own(self, block: Block) -> list[int]:
        return _fields_of(block.lines, block.results)


def _apart(starts: list[int], length: int) -> list[int]:
    """Those that do not overlap."""
    out: list[int] = []
    for start in starts:
        if not out or start >= out[-1] + length:
            out.append(start)
    return out


def _fields_of(lines: list[Line], results: list[Any]) -> list[int]:
    """Fields in the order in which they are called: what is inside of a call comes first."""
    found: list[int] = []

    def visit(expr: Any) -> None:
        if isinstance(expr, FieldRef):
            found.append(expr.field)
        if not isinstance(expr, e.Expr):
            return
        parts = [p[0] for p in expr.parts if not isinstance(p, str)]
        called = parts and isinstance(parts[0], FieldRef)
        for part in [*parts[1:], parts[0]] if called else parts:
            visit(part)

    def walk(some: list[Line]) -> None:
        for line in some:
            if isinstance(line, Stmt):
                visit(line.expr)
                continue
            if isinstance(line, Branch):
                visit(line.condition)
            for block in blocks_of(line):
                walk(block.lines)
                for result in block.results:
                    visit(result)

    walk(lines)
    for result in results:
        visit(result)
    return list(dict.fromkeys(found))


def _inner_values(line: Line) -> set[int]:
    """Values that only blocks inside of a line have."""
    found = set(line.parameters) if isinstance(line, Inner) else set()
    for block in blocks_of(line):
        for inner in block.lines:
            found |= {*made_by(inner), *_inner_values(inner)}
    return found


def _height(line: Line) -> int:
    return 1 + sum(sum(map(_height, b.lines)) + len(b.results) for b in blocks_of(line))
