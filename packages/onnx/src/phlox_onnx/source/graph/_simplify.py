"""What a graph can do without: constants that are computed, steps that do nothing, twins."""

from __future__ import annotations

from dataclasses import dataclass, field
from math import inf, prod
from typing import Any, Final, final

import numpy as np

from phlox_tensor import Numpy, PhloxError

from ..._errors import RAW
from ..._graph import Array, Graph, Node, Value, graphs_of, reads, used_names
from ...run._program import Program, dry, on_host
from ...run._roles import roles
from ...run._table import row_of
from ...table._row import Row

# A folded result may be so large, or so many times what it is made from, and all together so many
# times what the file brings: no bombs.
FOLDED: Final = 1 << 20
GROWTH: Final = 8
_SMALL: Final = 4096


@final
@dataclass
class Forms:
    """Constants in other forms than those of the file.

    Attributes:
        origins: what a weight was made from, where it was moved alone.
        turned: matrices that are others, transposed.
        several: constants that are read in several ways.
    """

    origins: dict[str, str] = field(default_factory=dict)
    turned: dict[str, str] = field(default_factory=dict)
    several: set[str] = field(default_factory=set)


def simplified(graph: Graph, forms: Forms) -> dict[str, int]:
    """Simplify a graph in place, and return how often what was done."""
    counts = {"folded": 0, "branches": 0, "no-ops": 0, "twins": 0, "unused": 0}
    counts["unused"] += without_unused(graph)
    folding = Folding(graph, forms.origins)
    before = -1
    while before != sum(counts.values()):
        before = sum(counts.values())
        counts["branches"] += _chosen(graph, graph.constants)
        counts["no-ops"] += _without_no_ops(graph, {})
        counts["folded"] += folding.folded(graph, {})
        counts["twins"] += _without_twins(graph)
        counts["unused"] += without_unused(graph)
    return counts


def _chosen(graph: Graph, around: dict[str, Array]) -> int:
    """Branches whose condition is a constant."""
    known = {**around, **graph.constants}
    nodes: list[Node] = []
    count = 0
    for node in graph.nodes:
        row = row_of(node.key)
        branches = row is not None and row.inner == "branch"
        value = known.get(node.inputs[0]) if branches else None
        if value is None or value.size != 1:
            count += sum(_chosen(inner, known) for inner in node.graphs.values())
            nodes.append(node)
            continue
        taken: Graph = node.attributes["then_branch" if bool(value.item()) else "else_branch"]
        graph.constants |= taken.constants
        nodes += taken.nodes
        nodes += [
            Node("Identity", "", [v.name], [out], {}, "", 28)
            for v, out in zip(taken.outputs, node.outputs, strict=False)
        ]
        count += 1
    graph.nodes = nodes
    return count


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
    row = row_of(node.key)
    if row is None or row.same is None or not node.outputs[0]:
        return False
    return row.same(node, graph.constants)


@final
class Folding:
    """What can be computed from constants alone; all of it together stays near to the file."""

    def __init__(self, graph: Graph, origins: dict[str, str]) -> None:
        """Note what may not be folded, and how much may be made."""
        self._origins = origins
        brought = sum(a.nbytes for g in graphs_of(graph) for a in g.constants.values())
        self._left = FOLDED + GROWTH * brought
        self._kept = in_several_ways(graph) & set(roles(graph).trained)

    def folded(self, graph: Graph, around: dict[str, Array]) -> int:
        """Compute nodes of constants, and return how many there were."""
        known = {**around, **graph.constants}
        kept: list[Node] = []
        count = 0
        for node in graph.nodes:
            row = row_of(node.key)
            found = self._value(node, row, known) if row is not None else None
            if found is None:
                count += sum(self.folded(inner, known) for inner in node.graphs.values())
                kept.append(node)
                continue
            graph.constants |= found
            known |= found
            count += 1
            if row is not None and row.movement and len(found) == 1:
                first = node.inputs[0]
                self._origins |= dict.fromkeys(found, self._origins.get(first, first))
        graph.nodes = kept
        return count

    def _value(self, node: Node, row: Row, known: dict[str, Array]) -> dict[str, Array] | None:
        """What a node of constants gives."""
        if node.graphs or row.draws or not all(n in known for n in node.inputs if n):
            return None
        if not row.measures and not self._kept.isdisjoint(node.inputs):
            return None  # a weight that others read, too
        given = {n: known[n] for n in node.inputs if n}
        if any(a.dtype == object for a in given.values()) or not given:
            return None
        most = min(max(FOLDED, GROWTH * sum(a.nbytes for a in given.values())), self._left)
        if _elements(node, row, given) * 8 > most:
            return None
        outputs = [o for o in node.outputs if o]
        single = Graph("", [], [Value(o) for o in outputs], [node], dict(given))
        try:
            with np.errstate(all="ignore"):
                values = Program(single, [], int(most)).run([], {}, Numpy())
        except (PhloxError, *RAW):
            return None
        found = [on_host(v) for v in values]
        if not all(isinstance(v, np.ndarray) for v in found):
            return None
        made = sum(v.nbytes for v in found)
        self._left -= made if made > _SMALL else 0
        return dict(zip(outputs, found, strict=True)) if made <= most else None


def _elements(node: Node, row: Row, given: dict[str, Array]) -> float:
    """How many elements a node of constants makes, by its row on the device without data."""
    if not row.file_sized and prod(a.size for a in given.values()) <= _SMALL:
        return 0
    try:
        found = dry(row, node, given)
    except (PhloxError, *RAW):
        return 0 if not row.file_sized and all(a.size <= _SMALL for a in given.values()) else inf
    return sum(prod(np.shape(v)) for v in found)


def in_several_ways(graph: Graph) -> set[str]:
    """Constants that are read in more than one way: a new form of one would part them."""
    ways: dict[str, set[Any]] = {}
    every = list(graphs_of(graph))
    names = {name for each in every for name in each.constants}
    for each in every:
        for node in each.nodes:
            row, words = row_of(node.key), None
            if row is not None and row.measures:
                continue  # sizes are the same in any form
            for place, name in enumerate(node.inputs):
                if name in names:
                    words = words or _words(node)
                    ways.setdefault(name, set()).add((node.key, place, words))
        for value in each.outputs:
            ways.setdefault(value.name, set()).add(None)
    return {name for name, found in ways.items() if len(found) > 1}


def _words(node: Node) -> str:
    return repr(sorted((k, v) for k, v in node.attributes.items() if not isinstance(v, Graph)))


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
    row = row_of(node.key)
    if node.graphs or row is None or row.draws or not all(node.outputs):
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
    used = used_names(graph)
    graph.constants = {k: v for k, v in graph.constants.items() if k in used}
    return count
