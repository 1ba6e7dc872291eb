"""Lines as classes: what is nested, what is repeated."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final, final

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
from ..trace._values import Field
from ._module_paths import ModulePaths, common
from ._nesting import last_readers, line_refs, nested
from ._words import word_of

REPEATED: Final = 90  # ops of a block at most, and at least
SHORTEST: Final = 4
# Lines that are compared at most in search of what is repeated: so many, and these for each.
WORK: Final = 1_000_000
WORK_OF_LINE: Final = 100


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
        self._known: dict[int, tuple[Line, list[Ref | FieldRef]]] = {}
        self._texts: dict[int, tuple[Line, str]] = {}
        self.module_paths = ModulePaths(fields)
        whole = without_unread(block)
        if any(self.module_paths.paths):
            whole.lines = _early(whole.lines, inputs)
        self.model = Part("Model", inputs, whole)

    def divide(self, *, whole: bool = False) -> None:
        """Find what is repeated, or leave it whole."""
        while not whole and self._repeated():
            pass
        for part in [*self.parts, self.model]:
            homes = self.homes(part) if part.fields else None
            word = partial(self._word, depth=len(homes[0]) if homes else 0)
            part.block = nested(part.block, word)
        block = self.model.block
        self.model.fields = [_fields_of(block.lines, block.results)]

    def leaves(self, own: Iterable[int]) -> list[int]:
        """Layers and parameters among fields, and inside of them."""
        found: list[int] = []
        known = {part.name for part in self.parts}
        for number in own:
            made = self.fields[number]
            found += self.leaves(made.settings[0][1]) if made.kind in known else [number]
        return found

    def homes(self, part: Part) -> list[tuple[str, ...]] | None:
        """Where the instances of a class stand in the file, if they are modules of it."""
        return self.module_paths.homes([self.leaves(own) for own in part.fields])

    def title(self, part: Part) -> str:
        """The word that all places of a class in the file have in common, the innermost one."""
        leaves = [leaf for own in part.fields for leaf in self.leaves(own)]
        paths = [(leaf, path) for leaf in leaves if (path := self.module_paths.of(leaf))]
        modules = [p[:-1] if self.fields[leaf].kind == "Param" else p for leaf, p in paths]
        words = map(word_of, reversed(common(modules)))
        return next((w for w in words if w and not w.endswith("_")), "")

    def _word(self, number: int, depth: int) -> str:
        """About what a field is called where it is read: in a module that deep in the file."""
        return ".".join(("self", *(self.module_paths.of(number) or ("field",))[depth:]))

    def _refs(self, line: Line) -> list[Ref | FieldRef]:
        """Every reference of a line, found once."""
        if id(line) not in self._known:
            self._known[id(line)] = line, list(line_refs(line))
        return self._known[id(line)][1]

    # Repeated lines

    def _repeated(self) -> bool:
        """Make one class of the lines that save most; of those that save as much, the longest."""
        block = self.model.block
        shared, readers = self._shared(block), last_readers(block)
        best: tuple[int, bool, int, list[int]] = (SHORTEST - 1, False, 0, [])
        work = WORK + WORK_OF_LINE * len(block.lines)
        for most, length, starts in self._candidates(block):
            if most < best[0] or work < 0:
                break
            work -= length * len(starts)
            for found in self._alike(starts, length, block, shared, readers):
                own = [
                    self.leaves(_fields_of(block.lines[start : start + length], []))
                    for start in found
                ]
                is_module = self.module_paths.homes(own) is not None
                if not is_module and all(map(self.module_paths.named, own)):
                    continue  # the names of the file part the layers in another way
                saved = (len(found) - 1) * length
                best = max(best, (saved, is_module, length, found), key=lambda b: b[:3])
        *_, length, starts = best
        if not starts:
            return False
        self._replace(starts, length)
        return True

    def _candidates(self, block: Block) -> list[tuple[int, int, list[int]]]:
        """Runs of lines that read alike: what they save at most, their length, their starts."""
        tokens = _numbered(self._skeleton(line) for line in block.lines)
        now = dict(enumerate(tokens))
        out: list[tuple[int, int, list[int]]] = []
        for length in range(1, min(REPEATED, len(tokens) // 2) + 1):
            if length > 1:  # a run is the one that is shorter by one, and a line
                ends = [start for start in now if start + length <= len(tokens)]
                keys = _numbered((now[s], tokens[s + length - 1]) for s in ends)
                now = dict(zip(ends, keys, strict=True))
            groups: dict[int, list[int]] = defaultdict(list)
            for start, key in now.items():
                groups[key].append(start)
            now = {s: key for key, starts in groups.items() if len(starts) > 1 for s in starts}
            if length < SHORTEST:
                continue
            for starts in groups.values():
                saved = (len(_apart(starts, length)) - 1) * length
                if saved >= SHORTEST:
                    out.append((saved, length, starts))
        return sorted(out, key=lambda c: (-c[0], -c[1], c[2][0]))

    def _alike(
        self,
        starts: list[int],
        length: int,
        block: Block,
        shared: set[int],
        readers: dict[int, int],
    ) -> Iterator[list[int]]:
        """Those starts whose lines hang together in one way."""
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
        if id(line) not in self._texts:
            text = rendered(line.expr, lambda r: "$" if isinstance(r, Ref) else self._kind(r.field))
            self._texts[id(line)] = line, text
        return len(line.targets), self._texts[id(line)][1]

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
            for ref in self._refs(line):
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
            for f in {r.field for r in self._refs(line) if isinstance(r, FieldRef)}
        )
        return {f for f, n in count.items() if n > 1}

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

    def _replace(self, starts: list[int], length: int) -> None:
        """Make a class of lines, and a call of it in each of their places."""
        block = self.model.block
        crossing = self._crossing(starts, length, last_readers(block)) or []
        part = Part(f"Block{len(self.parts) + 1}", [], Block())
        for start in reversed(starts):
            lines = block.lines[start : start + length]
            part.inputs, made, own = self._ports(lines)
            part.block = Block(lines, [Ref(made[i]) for i in crossing])
            part.fields.insert(0, own)
            block.lines[start : start + length] = [self._call(part, own)]
        self.parts.append(part)

    def _ports(self, lines: list[Line]) -> tuple[list[int], list[int], list[int]]:
        """The values that lines read from outside, those that they make, their fields."""
        made = [t for line in lines for t in made_by(line)]
        inside = {*made, *(p for line in lines for p in inner_values(line))}
        read = [r.value for line in lines for r in line_refs(line) if isinstance(r, Ref)]
        inputs = list(dict.fromkeys(v for v in read if v not in inside))
        return inputs, made, _fields_of(lines, [])

    def _call(self, part: Part, own: list[int]) -> Stmt:
        """The call of an instance as it stands now, which becomes a field."""
        words = (part.name.rstrip("0123456789").lower(),)
        self.fields.append(Field(part.name, [("", own)], {}, words))
        called = (FieldRef(len(self.fields) - 1), e.ATOM)
        expr = e.Expr((called, *e.call("", [Ref(i) for i in part.inputs]).parts))
        return Stmt([r.value for r in part.block.results if isinstance(r, Ref)], expr)


def _early(lines: list[Line], inputs: list[int]) -> list[Line]:
    """What is made of the inputs alone in front: it stands between the layers that read it."""
    known = set(inputs)
    first: list[Line] = []
    rest: list[Line] = []
    for line in lines:
        refs = list(line_refs(line))
        ready = all(isinstance(r, Ref) and r.value in known for r in refs)
        if isinstance(line, Stmt) and line.moves and ready and refs:
            first.append(line)
            known.update(line.targets)
        else:
            rest.append(line)
    return [*first, *rest]


def _numbered(keys: Iterable[Any]) -> list[int]:
    """Equal keys as equal numbers."""
    numbers: dict[Any, int] = {}
    return [numbers.setdefault(key, len(numbers)) for key in keys]


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


def inner_values(line: Line) -> set[int]:
    """Values that only blocks inside of a line have."""
    found = set(line.parameters) if isinstance(line, Inner) else set()
    for block in blocks_of(line):
        for inner in block.lines:
            found |= {*made_by(inner), *inner_values(inner)}
    return found
