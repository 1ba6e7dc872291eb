"""Old forms of ops to the newest one, so that an op has one row."""

from __future__ import annotations

from typing import Any, final

import numpy as np

from ._errors import within
from ._graph import Graph, Node
from .upgrades import EVERYWHERE, UPGRADES


def upgraded(graph: Graph) -> None:
    """Rewrite the nodes of a graph and of those inside, in place."""
    maker = Maker()
    _upgrade(graph, maker)


def _upgrade(graph: Graph, maker: Maker) -> None:
    nodes: list[Node] = []
    for node in graph.nodes:
        for inner in node.graphs.values():
            _upgrade(inner, maker)
        nodes += _newest(node, maker)
    graph.nodes = nodes


def _newest(node: Node, maker: Maker) -> list[Node]:
    if node.domain:
        return [node]
    for name, before in EVERYWHERE.items():
        if node.opset < before:
            node.attributes.pop(name, None)
    out = [node]
    for before, rewrite in UPGRADES.get(node.op, ()):
        if node.opset < before:
            maker.made = []
            with within(node):
                after = rewrite(node, maker) or []
            out = [*out[:-1], *maker.made, node, *after]
    return out


@final
class Maker:
    """Makes nodes beside the one that is rewritten."""

    def __init__(self) -> None:
        self.made: list[Node] = []
        self._count = 0

    def name(self) -> str:
        """Return a name that no file has."""
        self._count += 1
        return f"\N{MIDDLE DOT}{self._count}"

    def constant(self, value: Any, dtype: str) -> str:
        """Return the name of a value that stands in front of the node."""
        return self.node("Constant", [], value=np.array(value, dtype))

    def node(self, op: str, inputs: list[str], domain: str = "", **attributes: Any) -> str:
        """Return the output of a node in front of the one that is rewritten."""
        out = self.name()
        self.made.append(Node(op, domain, [*inputs], [out], attributes, opset=28))
        return out
