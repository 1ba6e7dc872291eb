"""Graphs inside of nodes as source: branches, and bodies as functions inside of the function."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

import numpy as np

import phlox_tensor as px

from ..._graph import Graph, Node
from ...run._growth import META
from ...run._table import row_of
from ...table._row import Body
from . import _expr as e
from ._expr import Any_, Block, Branch, Inner, Ref
from ._traced import Trace, Traced, source_of


class Emitter(Protocol):
    """What writes the graphs: their nodes, and what names stand for."""

    trace: Trace
    results: list[Any]

    def node(self, node: Node, env: dict[str, Any]) -> None: ...
    def write(self, graph: Graph, env: dict[str, Any], truth: bool = False) -> Block: ...
    def value(self, name: str, env: dict[str, Any]) -> Any: ...
    def mark(self) -> Callable[[], None]: ...
    def tensor(self, value: Any) -> Any: ...
    def brought(self, constants: dict[str, Any]) -> None: ...
    def device(self) -> Any_: ...


def branch(emitter: Emitter, node: Node, env: dict[str, Any]) -> Any:
    """An ``if``, or the one branch that is taken where that is known."""
    condition = emitter.value(node.inputs[0], env)
    host = isinstance(condition, np.ndarray)
    if host and condition.dtype != object:
        word = "then_branch" if bool(condition.reshape(())) else "else_branch"
        return _inlined(emitter, node.attributes[word], dict(env))
    blocks, outs = [], []
    for word in ("then_branch", "else_branch"):
        inner = node.attributes[word]
        blocks.append(emitter.write(inner, dict(env)))
        outs.append(emitter.results)
    test = (
        source_of(condition.reshape(-1)[0]) if host else e.method(source_of(condition), "item", [])
    )
    targets = [emitter.trace.fresh() for _ in node.outputs]
    emitter.trace.block.lines.append(Branch(targets, test, (blocks[0], blocks[1])))
    made = []
    for target, one, two in zip(targets, *outs, strict=False):
        made.append(Traced(emitter.trace, Ref(target), _common(one, two)))
    return tuple(made)


def _inlined(emitter: Emitter, graph: Graph, env: dict[str, Any]) -> Any:
    emitter.brought(graph.constants)
    for node in graph.nodes:
        emitter.node(node, env)
    return tuple(emitter.value(v.name, env) for v in graph.outputs)


def body(emitter: Emitter, node: Node, graph: Graph, values: list[Any], env: dict[str, Any]) -> Any:
    """A function inside of the function; what is carried keeps its shape, or has none."""
    known = _carried(emitter, node, graph, values)
    if any(known):
        back = emitter.mark()
        found = _function(emitter, node, graph, env, known)
        if _kept_shape(emitter, node, known):
            return found
        back()
    return _function(emitter, node, graph, env, [None] * len(graph.inputs))


def _kind(node: Node) -> Body:
    """What the graphs inside of a node are."""
    row = row_of(node.key)
    return "" if row is None else row.inner


def _turns(node: Node) -> bool:
    """Whether a body is told the number of its turn, and says whether there is another."""
    return _kind(node) == "loop"


def _carried(emitter: Emitter, node: Node, graph: Graph, values: list[Any]) -> list[Any]:
    """Both cases of what a body starts with."""
    if _turns(node):
        first: list[Any] = [tuple(px.zeros((), dtype=d, device=META) for _ in "ab")
                            for d in (px.int64, px.bool)]  # fmt: skip
        rest = [emitter.tensor(v) for v in values[2:]]
        return [*first, *(v.specs if isinstance(v, Traced) else None for v in rest)]
    if _kind(node) != "slices" or node.attributes.get("scan_input_axes"):
        return [None] * len(graph.inputs)
    n = node.attributes["num_scan_inputs"]
    names = [emitter.tensor(v) for v in values]
    specs = [v.specs if isinstance(v, Traced) else None for v in names]
    return [*specs[:-n], *(s and tuple(each[0] for each in s) for s in specs[-n:])]


def _kept_shape(emitter: Emitter, node: Node, known: list[Any]) -> bool:
    """Whether what a body gives is as what it was given."""
    turns = _turns(node)
    count = len(known) - 2 if turns else len(known) - node.attributes["num_scan_inputs"]
    carried = known[2:] if turns else known[:count]
    skipped = 1 if turns else 0
    for before, after in zip(carried, emitter.results[skipped : skipped + count], strict=True):
        if before is None:
            continue
        if not isinstance(after, Traced) or after.specs is None:
            return False
        if any(a.shape != b.shape for a, b in zip(before, after.specs, strict=True)):
            return False
    return True


def _function(
    emitter: Emitter, node: Node, graph: Graph, env: dict[str, Any], known: list[Any]
) -> Any:
    start = dict(env)
    numbers = []
    for value, specs in zip(graph.inputs, known, strict=True):
        number = emitter.trace.fresh()
        numbers.append(number)
        start[value.name] = Traced(emitter.trace, Ref(number), specs)
    lines = Block()
    turns = _turns(node)
    if turns:  # the first two are no tensors
        before, emitter.trace.block = emitter.trace.block, lines
        for value, number, specs in list(zip(graph.inputs, numbers, known, strict=True))[:2]:
            device = {"device": emitter.device()}
            lifted = emitter.trace.keep(e.call("px.asarray", [Ref(number)], device))
            start[value.name] = Traced(emitter.trace, lifted, specs)
        emitter.trace.block = before
    block = emitter.write(graph, start, truth=turns)
    block.lines[:0] = lines.lines
    target = emitter.trace.fresh()
    emitter.trace.block.lines.append(Inner(target, numbers, block))
    return Ref(target)


def _common(one: Any, two: Any) -> Any:
    if not (isinstance(one, Traced) and isinstance(two, Traced)):
        return None
    if one.specs is None or two.specs is None:
        return None
    same = all(
        a.shape == b.shape and a.dtype is b.dtype for a, b in zip(one.specs, two.specs, strict=True)
    )
    return one.specs if same else None
