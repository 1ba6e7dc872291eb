"""Functions of the file in place of the nodes that call them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from .._errors import OnnxError
from .._graph import Function, Graph, Key, Model, Node, Reference, Value
from ._limits import Limits


def inlined(model: Model, limits: Limits) -> Graph:
    """Return the graph of a model without calls of its functions.

    Raises:
        OnnxError: when functions call each other in a circle, nest too deep, or become too many
            nodes.
    """
    if model.functions:
        count = _Counter(model.functions, limits).nodes(model.graph.nodes, (), 0)
        _refuse_many(count, limits)
        _Inliner(model.functions, limits).graph(model.graph, (), 0)
    return model.graph


def _refuse_many(count: int, limits: Limits) -> None:
    if count > limits.nodes:
        why = "functions become too many nodes"
        raise OnnxError("onnx", why, got=f"{count:,} or more", expected=f"{limits.nodes:,}")


def _refuse_calls(node: Node, stack: tuple[Key, ...], depth: int, limits: Limits) -> None:
    """Circles, and calls in graphs in calls that are too deep: ``depth`` counts the graphs."""
    if node.key in stack:
        raise OnnxError("onnx", "functions call each other in a circle", got=node.op)
    if len(stack) + depth >= limits.depth:
        raise OnnxError("onnx", "functions nest too deep", expected=limits.depth)


class _Counter:
    """What nodes become at least, asked of each function once, before any of it is made."""

    def __init__(self, functions: dict[Key, Function], limits: Limits) -> None:
        self._functions, self._limits = functions, limits
        self._found: dict[Key, int] = {}

    def nodes(self, nodes: list[Node], stack: tuple[Key, ...], depth: int) -> int:
        return sum(self._node(node, stack, depth) for node in nodes)

    def _node(self, node: Node, stack: tuple[Key, ...], depth: int) -> int:
        function = self._functions.get(node.key)
        if function is None:
            inside = node.graphs.values()
            return 1 + sum(self.nodes(inner.nodes, stack, depth + 1) for inner in inside)
        _refuse_calls(node, stack, depth, self._limits)
        if node.key not in self._found:
            self._found[node.key] = 1 + self.nodes(function.nodes, (*stack, node.key), depth)
        return self._found[node.key]


class _Inliner:
    """Counts too: graphs that a call hands over hold what no count of functions sees."""

    def __init__(self, functions: dict[Key, Function], limits: Limits) -> None:
        self._functions, self._limits = functions, limits
        self._calls = self._nodes = 0

    def graph(self, graph: Graph, stack: tuple[Key, ...], depth: int) -> None:
        graph.nodes = [made for node in graph.nodes for made in self._expanded(node, stack, depth)]

    def _expanded(self, node: Node, stack: tuple[Key, ...], depth: int) -> list[Node]:
        self._nodes += 1
        _refuse_many(self._nodes, self._limits)
        function = self._functions.get(node.key)
        if function is None:
            for inner in node.graphs.values():
                self.graph(inner, stack, depth + 1)
            return [node]
        _refuse_calls(node, stack, depth, self._limits)
        self._calls += 1
        body = _body(function, node, f"{node.op}.{self._calls}/")
        return [made for each in body for made in self._expanded(each, (*stack, node.key), depth)]


def _body(function: Function, node: Node, prefix: str) -> list[Node]:
    """The nodes of a function with the names and attributes of one call."""
    given = [*node.inputs, *[""] * (len(function.inputs) - len(node.inputs))]
    if len(given) > len(function.inputs) or len(node.outputs) > len(function.outputs):
        raise OnnxError("onnx", "a call does not fit its function", got=node.where())
    names = {"": ""} | dict(zip(function.inputs, given, strict=True))
    values = {**function.defaults, **node.attributes}
    made = [_copy(each, names, values, prefix) for each in function.nodes]
    for inside, outside in zip(function.outputs, node.outputs, strict=False):
        if outside:
            source = names.get(inside, prefix + inside)
            made.append(Node("Identity", "", [source], [outside], name=node.name, opset=16))
    return made


def _copy(node: Node, names: dict[str, str], values: dict[str, Any], prefix: str) -> Node:
    def renamed(name: str) -> str:
        return names.get(name, prefix + name)

    attributes: dict[str, Any] = {}
    for key, value in node.attributes.items():
        found = values.get(value.name) if isinstance(value, Reference) else value
        if isinstance(found, Graph) and not isinstance(value, Reference):
            found = _copy_graph(found, names, values, prefix)
        if found is not None:
            attributes[key] = found
    inputs = [renamed(name) for name in node.inputs]
    outputs = [renamed(name) for name in node.outputs]
    label = prefix + node.name
    return Node(node.op, node.domain, inputs, outputs, attributes, label, node.opset)


def _copy_graph(graph: Graph, names: dict[str, str], values: dict[str, Any], prefix: str) -> Graph:
    own = {v.name for v in graph.inputs} | set(graph.constants)
    own |= {name for node in graph.nodes for name in node.outputs}
    names = {k: v for k, v in names.items() if k not in own or not k}

    def renamed(value: Value) -> Value:
        return replace(value, name=names.get(value.name, prefix + value.name))

    return Graph(
        graph.name,
        [renamed(v) for v in graph.inputs],
        [renamed(v) for v in graph.outputs],
        [_copy(n, names, values, prefix) for n in graph.nodes],
        {prefix + k: v for k, v in graph.constants.items()},
    )
