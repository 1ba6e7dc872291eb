"""What a graph can do without: constants that are computed, steps that do nothing, twins."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from phlox_tensor import Numpy, PhloxError

from .._errors import RAW
from .._graph import Array, Graph, Node, Value, reads, walk
from .._program import Program, on_host
from .._row import Row
from .._table import row_of

# A folded result may be so large, or so many times what it is made from: no bombs.
FOLDED: Final = 1 << 20
GROWTH: Final = 8
_DRAWN: Final = frozenset(
    """Bernoulli Dropout Multinomial RandomNormal RandomNormalLike RandomUniform
    RandomUniformLike""".split()  # noqa: SIM905 - words
)


def simplified(graph: Graph) -> dict[str, int]:
    """Simplify a graph in place, and return how often what was done."""
    counts = {"folded": 0, "branches": 0, "no-ops": 0, "twins": 0, "unused": 0}
    before = -1
    while before != sum(counts.values()):
        before = sum(counts.values())
        counts["branches"] += _chosen(graph, graph.constants)
        counts["no-ops"] += _without_no_ops(graph, {})
        counts["folded"] += _folded(graph, {})
        counts["twins"] += _without_twins(graph)
        counts["unused"] += without_unused(graph)
    return counts


def _chosen(graph: Graph, around: dict[str, Array]) -> int:
    """Branches whose condition is a constant."""
    known = {**around, **graph.constants}
    nodes: list[Node] = []
    count = 0
    for node in graph.nodes:
        value = known.get(node.inputs[0]) if node.key == ("", "If") else None
        if value is None:
            count += sum(_chosen(inner, known) for inner in node.graphs.values())
            nodes.append(node)
            continue
        taken: Graph = node.attributes["then_branch" if bool(value.item()) else "else_branch"]
        graph.constants |= taken.constants
        nodes += taken.nodes
        nodes += [
            _identity(v.name, out) for v, out in zip(taken.outputs, node.outputs, strict=False)
        ]
        count += 1
    graph.nodes = nodes
    return count


def _identity(source: str, target: str) -> Node:
    return Node("Identity", "", [source], [target], {}, "", 28)


def _without_no_ops(graph: Graph, renamed: dict[str, str]) -> int:
    """Values that are others, under another name."""
    kept: list[Node] = []
    count = 0
    for node in graph.nodes:
        node.inputs = [renamed.get(n, n) for n in node.inputs]
        for inner in node.graphs.values():
            count += _without_no_ops(inner, renamed)
        if _is_no_op(node, graph):
            renamed[node.outputs[0]] = node.inputs[0]
            count += 1
        else:
            kept.append(node)
    graph.nodes = kept
    for value in graph.outputs:
        value.name = renamed.get(value.name, value.name)
    return count


def _is_no_op(node: Node, graph: Graph) -> bool:
    if node.domain:
        return False
    if node.op == "Identity":
        return True
    if node.op == "Dropout":
        trains = node.inputs[2] if len(node.inputs) > 2 else ""
        off = not trains or (trains in graph.constants and not graph.constants[trains].item())
        return off and len([o for o in node.outputs if o]) == 1
    if node.op in ("Concat", "Max", "Min", "Sum", "Mean"):
        return len(node.inputs) == 1
    return False


def _folded(graph: Graph, around: dict[str, Array]) -> int:
    known = {**around, **graph.constants}
    kept: list[Node] = []
    count = 0
    for node in graph.nodes:
        row = row_of(node.key)
        found = _value(node, row, known) if row is not None else None
        if found is None:
            count += sum(_folded(inner, known) for inner in node.graphs.values())
            kept.append(node)
            continue
        graph.constants |= found
        known |= found
        count += 1
    graph.nodes = kept
    return count


def _value(node: Node, row: Row, known: dict[str, Array]) -> dict[str, Array] | None:
    """What a node of constants gives."""
    if node.graphs or node.op in _DRAWN or not all(n in known for n in node.inputs if n):
        return None
    given = {n: known[n] for n in node.inputs if n}
    if any(a.dtype == object for a in given.values()) or (not given and node.op != "Range"):
        return None
    if _size(node, given) > max(FOLDED, GROWTH * sum(a.nbytes for a in given.values())):
        return None
    outputs = [o for o in node.outputs if o]
    single = Graph("", [], [Value(o) for o in outputs], [node], dict(given))
    try:
        with np.errstate(all="ignore"):
            values = Program(single, []).run([], {}, Numpy())
    except (PhloxError, *RAW):
        return None
    found = [on_host(v) for v in values]
    if not all(isinstance(v, np.ndarray) for v in found):
        return None
    most = max(FOLDED, GROWTH * sum(a.nbytes for a in given.values()))
    return dict(zip(outputs, found, strict=True)) if sum(v.nbytes for v in found) <= most else None


def _size(node: Node, given: dict[str, Array]) -> float:
    """About how many bytes those ops would make that make much from little."""
    if node.op in ("ConstantOfShape", "Expand", "Reshape", "Tile") and node.inputs[-1] in given:
        sizes = given[node.inputs[-1]].astype(np.float64)
        base = given[node.inputs[0]].nbytes if node.op == "Tile" else 8.0
        return float(np.abs(sizes).prod() * base)
    if node.op == "Range":
        first, last, step = (float(given[n].reshape(-1)[0]) for n in node.inputs)
        return abs((last - first) / step) * 8 if step else 0.0
    return 0.0


def _without_twins(graph: Graph) -> int:
    """Nodes that do what one before them does."""
    seen: dict[Any, Node] = {}
    renamed: dict[str, str] = {}
    kept: list[Node] = []
    for node in graph.nodes:
        node.inputs = [renamed.get(n, n) for n in node.inputs]
        key = _key(node)
        twin = seen.get(key) if key is not None else None
        if twin is None:
            if key is not None:
                seen[key] = node
            kept.append(node)
            continue
        renamed |= {a: b for a, b in zip(node.outputs, twin.outputs, strict=True) if a}
    graph.nodes = kept
    if renamed:
        _rename(graph, renamed)
    return len(renamed)


def _rename(graph: Graph, renamed: dict[str, str]) -> None:
    for node in graph.nodes:
        node.inputs = [renamed.get(n, n) for n in node.inputs]
        for inner in node.graphs.values():
            _rename(inner, renamed)
    for value in graph.outputs:
        value.name = renamed.get(value.name, value.name)


def _key(node: Node) -> Any:
    if node.graphs or node.op in _DRAWN or not all(node.outputs):
        return None
    try:
        words = tuple(sorted((k, _hashable(v)) for k, v in node.attributes.items()))
        key = (node.key, tuple(node.inputs), words, len(node.outputs))
        hash(key)
    except TypeError:
        return None
    return key


def _hashable(value: Any) -> Any:
    if isinstance(value, np.ndarray):
        return value.dtype.str, value.shape, value.tobytes()
    return value


def without_unused(graph: Graph) -> int:
    """Nodes and constants that nobody reads; those that may raise are no exception."""
    count = 0
    for node in graph.nodes:
        count += sum(without_unused(inner) for inner in node.graphs.values())
    needed = {v.name for v in graph.outputs}
    kept: list[Node] = []
    for node in reversed(graph.nodes):
        if needed.isdisjoint(o for o in node.outputs if o):
            count += 1
            continue
        needed |= reads(node)
        kept.append(node)
    graph.nodes = kept[::-1]
    used = {n for node in walk(graph) for n in node.inputs} | needed
    used |= {v.name for node in walk(graph) for g in node.graphs.values() for v in g.outputs}
    graph.constants = {k: v for k, v in graph.constants.items() if k in used}
    return count
