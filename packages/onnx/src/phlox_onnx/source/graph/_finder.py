"""Who makes the values of a graph and who reads them, for formulas that are looked for."""

from __future__ import annotations

import math
from collections import Counter
from typing import Any, Final, final

import numpy as np

from ..._graph import Array, Graph, Node, graphs_of, walk
from ...run._table import row_of
from ._simplify import Forms

CLOSE: Final = 1e-3  # exporters round their constants


@final
class Finder:
    """Who makes a value, and how many read it."""

    def __init__(self, graph: Graph, around: dict[str, Array], forms: Forms) -> None:
        """Look at one graph."""
        self.graph, self.forms = graph, forms
        self.before: dict[int, list[Node]] = {}
        self.vectors = False  # whether a number was an array of one axis
        self.constants = {**around, **graph.constants}
        self.makers = {o: n for n in graph.nodes for o in n.outputs if o}
        self.uses = Counter(i for n in walk(graph) for i in n.inputs)
        self.uses.update(v.name for each in graphs_of(graph) for v in each.outputs)

    def maker(self, name: str, *ops: str) -> Node | None:
        """The node behind a value, if it is one of these."""
        node = self.makers.get(name)
        return node if node is not None and not node.domain and node.op in ops else None

    def number(self, name: str) -> float | None:
        """The one number of a constant that changes no shape."""
        value = self.constants.get(name)
        if value is None or value.size != 1 or value.ndim > 1 or value.dtype.kind not in "fiu":
            return None
        self.vectors |= value.ndim == 1
        return float(value.reshape(-1)[0])

    def whole(self, name: str) -> tuple[int, ...]:
        """The numbers of a constant that says sizes, axes or places."""
        value = self.constants.get(name)
        plain = value is not None and value.ndim < 2 and value.dtype.kind in "iu"
        return tuple(map(int, value.reshape(-1))) if value is not None and plain else ()

    def is_number(self, name: str, wanted: float) -> bool:
        """Whether a constant is a number, nearly."""
        found = self.number(name)
        return found is not None and math.isclose(found, wanted, rel_tol=CLOSE)

    def split(self, node: Node | None) -> tuple[str, float] | None:
        """The operand of a commutative node that is no number, and the number."""
        if node is None or len(node.inputs) != 2:
            return None
        for one, two in (node.inputs, node.inputs[::-1]):
            found = self.number(two)
            if found is not None and self.number(one) is None:
                return one, found
        return None

    def pairs(self, node: Node) -> list[tuple[str, str]]:
        """Both orders of two operands."""
        a, b = node.inputs
        return [(a, b), (b, a)]

    def turned(self, name: str) -> str:
        """The name of a matrix of the file as its transposed."""
        known = self.forms.turned
        made = next((k for k, v in known.items() if v == name), "")
        return made or self._added(f"{name}/turned", name, self.constants[name].T, known)

    def flat(self, name: str) -> str:
        """The name of a row of the file as a vector."""
        return self._added(f"{name}/flat", name, self.constants[name].reshape(-1), {})

    def axes(self, name: str, found: list[int]) -> str:
        """The name of a new list of axes, which an output is called after."""
        return self._added(f"{name}/axes", "", np.array(found, np.int64), {})

    def _added(self, made: str, name: str, value: Array, known: dict[str, str]) -> str:
        while made in self.constants:
            made += "_"
        self.graph.constants[made] = self.constants[made] = np.ascontiguousarray(value)
        if name:
            self.forms.origins[made] = self.forms.origins.get(name, name)
            known[made] = name
        return made

    def has_axes(self, name: str) -> bool:
        """Whether a value is no single number, as far as its maker tells."""
        maker = self.makers.get(name)
        if maker is not None:
            shape = maker.inputs[1] if self.maker(name, "Reshape") is not None else ""
            if len(self.whole(shape)) > 1 or self.maker(shape, "Concat") is not None:
                return True
            row = row_of(maker.key)
            return row is None or not row.scalar
        value = next((v for v in self.graph.inputs if v.name == name), None)
        return value is not None and bool(value.shape)

    def once(self, *names: str) -> bool:
        """Whether nobody else reads these."""
        return all(self.uses[n] == 1 for n in names)


def in_place(op: str, inputs: list[str], node: Node, domain: str = "", **attributes: Any) -> Node:
    """The node in the place of a formula."""
    return Node(op, domain, inputs, [node.outputs[0]], attributes, node.name, 28)
