"""Long functions as several: runs of lines, branches and bodies become methods of the class."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Final, TypeGuard, final

from ..trace import _expr as e
from ..trace._expr import Block, Branch, FieldRef, Inner, Line, Ref, Stmt, blocks_of, references
from ._nesting import last_readers, line_refs
from ._structure import inner_values, made_by

LONGEST: Final = 60  # lines of a function
SHORT: Final = 6  # lines that are not worth a method
# How much longer a line may be in front of a method: from few methods to many.
_WEIGHTS: Final = (0.2, 0.5, 1.0, 2.0, 4.0, 8.0, 1000.0)
_CALL: Final = 4.0  # what a method costs, in values that cross


@final
@dataclass
class Method:
    """A part of a forward: what it takes, its lines, what it gives."""

    name: str
    inputs: list[int]
    block: Block


@final
class Cutter:
    """Makes methods of what is too long.

    Attributes:
        methods: those of the class, in the order of their calls.
        height: about how many lines of text a line is.
    """

    def __init__(
        self,
        name: Callable[[list[int]], str],
        fresh: Callable[[Any], int],
    ) -> None:
        """Take what lines with some fields are called, and new values."""
        self._name, self._fresh = name, fresh
        self.height: Callable[[Line], int] = lambda _: 1
        self.methods: list[Method] = []

    def cut(self, block: Block, room: int) -> Block:
        """A block of at most so many lines, where its values allow it."""
        lines = list(block.lines)
        if self._total(lines) > room:
            lines = _late(block)
        for i in sorted(range(len(lines)), key=lambda i: -self.height(lines[i])):
            if self._total(lines) <= room or isinstance(lines[i], Stmt):
                break
            lines[i] = self._without_blocks(lines[i])
        for weight in _WEIGHTS:
            if self._total(lines) <= room:
                break
            lines = self._runs(Block(lines, block.results), weight)
        return Block(lines, block.results)

    def shorten(self, method: Method, over: Callable[[Method], int]) -> None:
        """Cut a method that is over the longest; where that helps nothing it stays as it is."""
        before, count, block = over(method), len(self.methods), method.block
        if before <= 0:
            return
        method.block = self.cut(block, max(self._total(block.lines) - before, SHORT))
        if over(method) >= before:
            method.block = block
            del self.methods[count:]

    def _total(self, lines: list[Line]) -> int:
        return sum(map(self.height, lines))

    # Branches and bodies

    def _without_blocks(self, line: Line) -> Line:
        """A line whose blocks are calls, where they are not short."""
        made = [self._called(block) for block in blocks_of(line)]
        if isinstance(line, Branch):
            return Branch(line.targets, line.condition, (made[0], made[1]))
        assert isinstance(line, Inner)
        return Inner(line.target, line.parameters, made[0])

    def _called(self, block: Block) -> Block:
        if self._total(block.lines) <= SHORT:
            return block
        targets = [self._fresh(result) for result in block.results]
        call = self._method(block.lines, list(block.results), targets)
        return Block([call], [Ref(target) for target in targets])

    def _method(self, lines: list[Line], results: list[Any], targets: list[int]) -> Stmt:
        """Make a method of lines; its call."""
        made = {value for line in lines for value in (*made_by(line), *inner_values(line))}
        refs = [r for line in lines for r in line_refs(line)]
        refs += [r for result in results for r in references(result)]
        taken = dict.fromkeys(r.value for r in refs if isinstance(r, Ref) and r.value not in made)
        name = self._name([r.field for r in refs if isinstance(r, FieldRef)])
        place = len(self.methods)
        self.methods.append(Method(name, list(taken), Block(lines, results)))
        room = LONGEST - frame(len(taken), len(results))
        self.methods[place].block = self.cut(Block(lines, results), room)
        return Stmt(targets, e.call(f"self.{name}", [Ref(value) for value in taken]))

    # Runs of lines

    def _runs(self, block: Block, weight: float) -> list[Line]:
        """Lines of which some are calls: those that cost least where a line costs that much."""
        count, heights = len(block.lines), [self.height(line) for line in block.lines]
        readers = last_readers(block)
        costs, starts = [0.0] * (count + 1), list(range(count + 1))
        for end in range(1, count + 1):
            costs[end] = costs[end - 1] + weight * heights[end - 1]
            starts[end] = end - 1
            for start, cost in self._crossings(block.lines, end, heights, readers):
                if costs[start] + cost < costs[end]:
                    costs[end], starts[end] = costs[start] + cost, start
        out: list[Line] = []
        end = count
        while end:
            start = starts[end]
            run = block.lines[start:end]
            if end - start > 1:
                made = [v for line in run for v in made_by(line)]
                results = [v for v in made if readers.get(v, -1) >= end]
                run = [self._method(run, [Ref(v) for v in results], results)]
            out[:0] = run
            end = start
        return out

    def _crossings(
        self, lines: list[Line], end: int, heights: list[int], readers: dict[int, int]
    ) -> Iterator[tuple[int, float]]:
        """Where a run to an end may start, and what it costs as a method."""
        bodies = {line.target for line in lines if isinstance(line, Inner)}
        made: set[int] = set()
        read: set[int] = set()
        height = 0
        for start in range(end - 1, -1, -1):
            line = lines[start]
            height += heights[start]
            if height > LONGEST:
                return
            made |= {*made_by(line), *inner_values(line)}
            read |= {r.value for r in line_refs(line) if isinstance(r, Ref)}
            gives = {v for v in made if readers.get(v, -1) >= end}
            takes = read - made
            fits = height + frame(len(takes), len(gives)) <= LONGEST
            part = start > 0 or end < len(lines)
            if part and fits and height > SHORT and gives and bodies.isdisjoint(gives | takes):
                yield start, _CALL + len(takes) + 2.0 * len(gives)


def _late(block: Block) -> list[Line]:
    """What needs no layer just in front of what reads it, so that little crosses."""
    lines = block.lines
    makers: dict[int, int] = {}
    for i, line in enumerate(lines):
        refs = list(line_refs(line))
        if isinstance(line, Stmt) and line.moves and all(isinstance(r, Ref) for r in refs):
            makers |= dict.fromkeys(line.targets, i)
    moving = set(makers.values())
    waiting = set(moving)
    out: list[Line] = []

    def write(refs: Iterable[Ref | FieldRef]) -> None:
        """Write the lines that wait for these, each after those that it reads."""
        needed = [makers[r.value] for r in refs if isinstance(r, Ref) and r.value in makers]
        stack = [i for i in reversed(needed) if i in waiting]
        while stack:
            own = [makers[r.value] for r in line_refs(lines[stack[-1]]) if _is_of(r, makers)]
            first = [i for i in own if i in waiting]
            if first:
                stack += reversed(first)
                continue
            i = stack.pop()
            out.extend([lines[i]] if i in waiting else [])
            waiting.discard(i)

    for i, line in enumerate(lines):
        if i not in moving:
            write(line_refs(line))
            out.append(line)
    write(r for result in block.results for r in references(result))
    out += [lines[i] for i in sorted(waiting)]
    return out


def _is_of(ref: Ref | FieldRef, makers: dict[int, int]) -> TypeGuard[Ref]:
    return isinstance(ref, Ref) and ref.value in makers


def frame(takes: int, gives: int) -> int:
    """About how many lines a function has beside its body: head, title and return."""
    head = 3 if takes < 4 else takes + 3
    return head + 1 + (1 if gives < 8 else gives + 2)
