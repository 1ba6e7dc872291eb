"""From a trace to a Python function that does the same: one line per op, nothing in between."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple, final

from phlox_tensor.capture import Formula, Graph, Node, Number, Value, filled, same, values_of

from ..plan.items import PlanItem, Single
from ..plan.plan import Plan, planned, together
from ..plan.products import with_products
from ..record.cells import CellOf, Key, packed
from ..record.trace import Place, Ref, Trace
from ..source import Source
from ..trees.flat import contents_taker, remember
from ..trees.layout import NodePart, write_tree
from .steps import lines_of, named, write_steps

Replay = Callable[[list[Any], list[Any]], Any]


@final
class _Miss:
    """What a replay gives where its trace does not hold."""


MISS: Final = _Miss()
_MOST_FOLDED: Final = 2**16  # bytes: what is larger is cheaper to make again than to keep


class Schedule(NamedTuple):
    """What a replay runs.

    Attributes:
        constants: values that are always the same.
        steps: the same, with equal programs as one call.
        lines: the calls from Python; a device may take several steps as one.
    """

    constants: dict[int, Any]
    plan: Plan
    steps: tuple[Single, ...]
    lines: list[PlanItem]
    kept: set[int]


def scheduled(graph: Graph, owned: frozenset[int] = frozenset()) -> Schedule:
    """Return what a replay of a graph runs; ``owned``: values from outside that go meanwhile."""
    nodes, constants = folded(graph)
    wanted = set(graph.outputs)
    plan = planned(nodes, graph.specs, wanted, owned)
    steps = together(with_products(plan.steps, graph.specs, wanted), graph.specs, wanted)
    kept = wanted | constants.keys()
    return Schedule(constants, plan, steps, lines_of(steps, graph.specs, kept, constants), kept)


def plan_of(graph: Graph) -> Plan:
    """Return the programs and ops of a replay of a graph."""
    nodes, _ = folded(graph)
    return planned(nodes, graph.specs, {*graph.outputs})


def replay_of(trace: Trace) -> tuple[Replay, str]:
    """Return a function of the leaves of the arguments, and its text.

    It gives ``MISS`` before anything happened where a guard fails or a cell has another layout.
    Its second argument collects what to undo, should an op fail.
    """
    return _Writer(trace).write()


def forward_of(trace: Trace, saved: Sequence[Ref]) -> tuple[Replay, str]:
    """Return the replay of a part of a larger graph, and its text.

    It gives leaves of the result, what ``backward_of`` takes, and what cells held.
    """
    return _Writer(trace).write(saved)


def backward_of(
    graph: Graph, saved: Sequence[Ref], given: Sequence[Ref], results: Sequence[Ref]
) -> tuple[Callable[[list[Any], list[Any]], list[Any]], str]:
    """Return a function from lists of what was saved and cotangents to ``results``, and its text.

    It empties the lists, so that what they hold goes with its last use.
    """
    source = Source()
    constants, _, _, lines, kept = scheduled(graph, frozenset(graph.inputs) - {*graph.outputs})
    for refs, holder in ((saved, "saved"), (given, "given")):
        names = [named(source, ref, {}) for ref in refs]
        source.line(f"{', '.join(names)}, = {holder}" if names else "pass")
        source.line(f"{holder}.clear()")
    write_steps(source, lines, kept, constants)
    names = [named(source, ref, constants) for ref in results]
    source.line(f"return [{', '.join(names)}]")
    return source.function("pull", "saved, given"), str(source)


@final
class _Writer:
    """Writes the replay of one trace."""

    def __init__(self, trace: Trace) -> None:
        self._trace = trace
        self._source = Source()
        self._schedule = scheduled(trace.graph)
        self._constants = self._schedule.constants
        self._cells: dict[CellOf, str] = {}

    def write(self, saved: Sequence[Ref] | None = None) -> tuple[Replay, str]:
        """Return the function and its text; with ``saved`` one that gives leaves."""
        source, trace = self._source, self._trace
        names = [self._ref(ref) for ref in trace.arguments]
        if names:
            source.line(f"{', '.join(names)}, = leaves")
        contents = {cell: self._open(cell, place) for cell, place in trace.opened.items()}
        self._numbers()
        plain = [c for c, place in trace.left.items() if Value not in map(type, place.refs)]
        early = [c for c in plain if c in contents]
        for cell in early:
            self._swap(cell, contents[cell], trace.left[cell])
        write_steps(source, self._schedule.lines, self._schedule.kept, self._constants)
        out = self._result() if saved is None else self._leaves(saved, contents)
        for cell, left in trace.left.items():
            if cell not in early:
                source.line(f"{self._cell(cell)}.pack({self._packed(left)})")
        source.line(f"return {out}")
        return source.function("replay", "leaves, undo"), str(source)

    def _leaves(self, saved: Sequence[Ref], contents: dict[Key, str]) -> str:
        result, kept = (
            ", ".join(map(self._ref, refs)) for refs in (self._trace.result.refs, saved)
        )
        return f"[{result}], [{kept}], [{', '.join(contents.values())}]"

    def _result(self) -> str:
        """Put the result together, and remember what may come back."""
        source, trace = self._source, self._trace
        names = [*map(self._ref, trace.result.refs)]
        written = write_tree(source, trace.result.layout, names)
        inside = ", ()"
        if written.containers:
            take = source.held(contents_taker(), "contents")
            inside = f", {take}(({', '.join(written.containers)}, ))"
        for at, kept in trace.kept.items():
            refs = "".join(f"{self._ref(ref)}, " for ref in kept.refs)
            made = written.text if at is None else written.children[at]
            layout = source.constant(kept.layout, "layout")
            last = kept.layout.parts[-1]
            slot = last.node.slot if isinstance(last, NodePart) else None
            parts = f"{layout}, ({refs}){inside}"
            if slot is None:
                source.line(f"{source.constant(remember, 'remember')}({made}, {parts})")
            else:
                keep = source.constant(object.__setattr__, "keep")
                source.line(f"{keep}({made}, {slot!r}, ({parts}))")
        return written.text

    def _cell(self, cell: Key) -> str:
        """What stands for a cell; that of an argument is looked up once."""
        source = self._source
        if not isinstance(cell, CellOf):
            return source.constant(cell, "cell")
        name = self._cells.get(cell)
        if name is None:
            name = self._cells[cell] = source.name("own")
            cells = source.held(cell.cells, "cells")
            source.line(f"{name} = {cells}(o{cell.owner.number})[{cell.place}]")
        return name

    def _ref(self, ref: Ref) -> str:
        return named(self._source, ref, self._constants)

    def _open(self, cell: Key, place: Place) -> str:
        """Read a cell, which must have the layout that it had."""
        source = self._source
        name = source.name("c")
        own, layout = self._cell(cell), source.constant(place.layout, "layout")
        source.line(f"{name} = {own}.packed")
        source.line(f"if {name} is None or {name}.layout is not {layout}:")
        source.line(f" {name} = {source.constant(packed, 'packed')}({own})")
        source.line(f" if {name}.layout is not {layout}: return {source.constant(MISS, 'MISS')}")
        if place.refs:
            source.line(f"{', '.join(map(self._ref, place.refs))}, = {name}.leaves")
        return name

    def _numbers(self) -> None:
        """Compute the numbers and hold the guards."""
        source, graph = self._source, self._trace.graph
        miss = source.constant(MISS, "MISS")
        guards = []
        for guard in graph.guards:
            found = source.number(Formula(guard.function, guard.args))
            if type(guard.value) is bool:
                guards.append(f"({found}) is not {guard.value}")
            else:
                value = source.constant(guard.value)
                guards.append(f"not {source.constant(same, 'same')}({found}, {value})")
        source.numbers(graph.numbers, f"return {miss}", guards)

    def _swap(self, cell: Key, before: str, place: Place) -> None:
        """Set a cell of numbers before the ops run, unless another thread has set it meanwhile."""
        source = self._source
        after = source.name("c")
        own = self._cell(cell)
        source.line(f"{after} = {self._packed(place)}")
        source.line(f"if not {own}.swap({before}, {after}):")
        source.line(f" {source.constant(undo_all, 'undo_all')}(undo)")
        source.line(" undo.clear()")
        source.line(" return replay(leaves, undo)")
        source.line(f"undo.append(({own}, {before}, {after}))")

    def _packed(self, place: Place) -> str:
        refs = "".join(f"{self._ref(ref)}, " for ref in place.refs)
        return f"{self._source.constant(place.layout.pack, 'pack')}(({refs}))"


def folded(graph: Graph) -> tuple[list[Node], dict[int, Any]]:
    """Split nodes into those to run at each call, and small results that are always the same."""
    constants = dict(graph.constants)
    nodes = []
    for node in graph.live():
        specs = [graph.specs[v] for v in node.results]
        small = sum(s.nbytes for s in specs) <= _MOST_FOLDED
        given = (*node.operands, *node.attributes)
        moving = any(type(x) is Number for x in given) or not constants.keys() >= {*values_of(node)}
        if moving or not small:
            nodes.append(node)
            continue
        out = node.entry(*[filled(item, constants) for item in given])
        outs = out if node.op.signature.several else (out,)
        constants.update(zip(node.results, outs, strict=True))
    return nodes, constants


def undo_all(undo: Sequence[Any]) -> None:
    """Put back the cells that a failed replay had set."""
    for cell, before, after in undo[::-1]:
        cell.swap(after, before)
