"""A model as plain data: values by name, nodes in order, graphs inside of nodes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any, Final, final

import numpy as np

from phlox_tensor import tree

from ._errors import OnnxError

Array = np.ndarray[Any, Any]
Key = tuple[str, str]  # domain, name
OWN: Final = "phlox.onnx"  # the domain of ops that no file has


@final
@dataclass(eq=False)
class Node:
    """One call of an op. ``""`` among inputs and outputs is one that is absent.

    Attributes:
        attributes: numbers, text, arrays, tuples of these, or graphs.
        opset: the version of the op's domain that the file was written for.
    """

    op: str
    domain: str
    inputs: list[str]
    outputs: list[str]
    attributes: dict[str, Any] = field(default_factory=dict)
    name: str = ""
    opset: int = 1

    @property
    def key(self) -> Key:
        """What the table calls the op."""
        return self.domain, self.op

    @property
    def graphs(self) -> dict[str, Graph]:
        """The graphs among the attributes."""
        return {k: v for k, v in self.attributes.items() if isinstance(v, Graph)}

    def where(self) -> str:
        """How messages name the node."""
        name = self.name or next((o for o in self.outputs if o), "")
        return f"{self.op} {name!r}" if name else self.op


@final
@dataclass
class Value:
    """An input or output as the file describes it: sizes are numbers, names or unknown.

    Attributes:
        code: the number that ONNX has for the element type.
    """

    name: str
    dtype: str = ""
    shape: tuple[int | str | None, ...] | None = None
    code: int = 0

    @property
    def sizes(self) -> str:
        """The shape as text; what is unknown is ``?``."""
        return "(?)" if self.shape is None else f"({', '.join(str(n or '?') for n in self.shape)})"

    def described(self) -> str:
        """Name, type and shape, as far as they are known."""
        return " ".join((f"{self.name}:", *([self.dtype, self.sizes] if self.dtype else ["?"])))


@final
@dataclass
class Graph:
    """Nodes between inputs and outputs; ``constants`` are the values that the file brings."""

    name: str
    inputs: list[Value]
    outputs: list[Value]
    nodes: list[Node]
    constants: dict[str, Array]


@final
@dataclass
class Function:
    """A function of the file: nodes that stand for a node of its name."""

    key: Key
    inputs: list[str]
    outputs: list[str]
    defaults: dict[str, Any]
    nodes: list[Node]


@final
@dataclass(frozen=True)
class Reference:
    """An attribute that takes its value from the call of the function around it."""

    name: str


@final
@dataclass
class Model:
    """A file: its graph, its functions."""

    graph: Graph
    functions: dict[Key, Function]


# They hold what the file does, which is no tensor: modules need not look through thousands of them.
for _type in (Graph, Node, Value):
    tree.register_leaf(_type)


def walk(graph: Graph) -> Iterator[Node]:
    """Every node, those of inner graphs included."""
    for node in graph.nodes:
        yield node
        for inner in node.graphs.values():
            yield from walk(inner)


def graphs_of(graph: Graph) -> Iterator[Graph]:
    """A graph and all graphs inside."""
    yield graph
    for node in graph.nodes:
        for inner in node.graphs.values():
            yield from graphs_of(inner)


def used_names(graph: Graph) -> set[str]:
    """Names that nodes read, or graphs give."""
    found = {v.name for each in graphs_of(graph) for v in each.outputs}
    return found | {name for node in walk(graph) for name in node.inputs}


def all_constants(graph: Graph) -> dict[str, Array]:
    """The constants of a graph and of those inside."""
    return {name: array for each in graphs_of(graph) for name, array in each.constants.items()}


def copied(graph: Graph) -> Graph:
    """A graph that may be rewritten; arrays are shared."""
    nodes = []
    for node in graph.nodes:
        words = {k: copied(v) if isinstance(v, Graph) else v for k, v in node.attributes.items()}
        given, gives = [*node.inputs], [*node.outputs]
        nodes.append(replace(node, inputs=given, outputs=gives, attributes=words))
    inputs, outputs = ([replace(v) for v in values] for values in (graph.inputs, graph.outputs))
    return Graph(graph.name, inputs, outputs, nodes, dict(graph.constants))


def outer_names(graph: Graph) -> set[str]:
    """Names that a graph takes from the graphs around it."""
    own = {v.name for v in graph.inputs} | set(graph.constants)
    own |= {name for node in graph.nodes for name in node.outputs}
    used = {v.name for v in graph.outputs}
    for node in graph.nodes:
        used |= reads(node)
    return used - own - {""}


def reads(node: Node) -> set[str]:
    """Names that a node needs: its inputs, and what its graphs take from outside."""
    found = set(node.inputs) - {""}
    for inner in node.graphs.values():
        found |= outer_names(inner)
    return found


def in_order(graph: Graph) -> None:
    """Sort the nodes of a graph and of those inside so that each follows what it reads.

    Raises:
        OnnxError: for a circle.
    """
    maker = {name: i for i, n in enumerate(graph.nodes) for name in n.outputs if name}
    needs = [{maker[r] for r in reads(n) if r in maker} for n in graph.nodes]
    if any(max(each, default=-1) >= i for i, each in enumerate(needs)):
        graph.nodes = [graph.nodes[i] for i in _order(needs, graph)]
    for node in graph.nodes:
        for inner in node.graphs.values():
            in_order(inner)


def _order(needs: list[set[int]], graph: Graph) -> list[int]:
    """Kahn's algorithm; of those that are free, the first of the file goes first."""
    from heapq import heapify, heappop, heappush  # noqa: PLC0415 - few files need it

    waiting = [len(each) for each in needs]
    followers: list[list[int]] = [[] for _ in needs]
    for i, each in enumerate(needs):
        for j in each:
            followers[j].append(i)
    free = [i for i, n in enumerate(waiting) if n == 0]
    heapify(free)
    order = []
    while free:
        i = heappop(free)
        order.append(i)
        for j in followers[i]:
            waiting[j] -= 1
            if waiting[j] == 0:
                heappush(free, j)
    if len(order) < len(needs):
        stuck = next(i for i, n in enumerate(waiting) if n > 0)
        raise OnnxError("onnx", "nodes wait for each other", got=graph.nodes[stuck].where())
    return order


def with_names_once(graph: Graph) -> None:
    """Give every value of inner graphs a name that no other value has.

    Raises:
        OnnxError: for a value that is made twice, or never.
    """
    _rename(graph, {}, {})


def _fresh(name: str, taken: dict[str, int]) -> str:
    """A name that is free; for each taken one ``taken`` holds the next number to try."""
    found = name
    while found in taken:
        found = f"{name}#{taken[name]}"
        taken[name] += 1
    taken[found] = 1
    return found


def _rename(graph: Graph, around: dict[str, str], taken: dict[str, int]) -> None:
    scope = dict(around)
    own: set[str] = set()

    def define(name: str) -> str:
        if not name:
            return name
        if name in own:
            raise OnnxError("onnx", "a value is made twice", got=repr(name))
        own.add(name)
        scope[name] = _fresh(name, taken)
        return scope[name]

    def find(name: str) -> str:
        if name and name not in scope:
            raise OnnxError("onnx", "a value is read that nothing makes", got=repr(name))
        return scope[name] if name else name

    if not all(value.name for value in (*graph.inputs, *graph.outputs)):
        raise OnnxError("onnx", "an input or output of a graph has no name", got=repr(graph.name))
    for value in graph.inputs:
        value.name = define(value.name)
    graph.constants = {define(name): array for name, array in graph.constants.items()}
    for node in graph.nodes:
        node.inputs = [find(name) for name in node.inputs]
        for inner in node.graphs.values():
            _rename(inner, scope, taken)
        node.outputs = [define(name) for name in node.outputs]
    for value in graph.outputs:
        value.name = find(value.name)
