"""Nodes of ``Gradient`` as those that compute it: backwards from a value, one rule for each op."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, final

from ._errors import OnnxError, within
from ._graph import OWN, Graph, Key, Node
from ._limits import Limits

GRADIENT: Final[Key] = ("ai.onnx.preview.training", "Gradient")


@final
class _Maker:
    """Makes nodes, whose values have names that the graph has not."""

    def __init__(self, graph: Graph) -> None:
        self.nodes: list[Node] = []
        self._taken = {name for node in graph.nodes for name in node.outputs}
        self._taken |= {value.name for value in graph.inputs} | set(graph.constants)

    def __call__(self, op: str, *inputs: str, domain: str = "") -> str:
        """Make a node and return the name of its value."""
        name = f"gradient/{len(self._taken)}"
        while name in self._taken:
            name += "_"
        self._taken.add(name)
        self.nodes.append(Node(op, domain, list(inputs), [name], opset=28))
        return name


# What reaches the inputs of a node from what reaches its output: inputs, output, slope, maker.
Rule = Callable[[list[str], str, str, _Maker], list[str]]
_RULES: Final[dict[str, Rule]] = {
    "Add": lambda x, y, g, make: [g, g],
    "Cos": lambda x, y, g, make: [make("Neg", make("Mul", g, make("Sin", x[0])))],
    "Div": lambda x, y, g, make: [
        make("Div", g, x[1]),
        make("Neg", make("Div", make("Mul", g, y), x[1])),
    ],
    "Exp": lambda x, y, g, make: [make("Mul", g, y)],
    "Identity": lambda x, y, g, make: [g],
    "Log": lambda x, y, g, make: [make("Div", g, x[0])],
    "Mul": lambda x, y, g, make: [make("Mul", g, x[1]), make("Mul", g, x[0])],
    "Neg": lambda x, y, g, make: [make("Neg", g)],
    "Relu": lambda x, y, g, make: [make("Mul", g, make("Sign", y))],
    "Sigmoid": lambda x, y, g, make: [make("Mul", g, make("Sub", y, make("Mul", y, y)))],
    "Sin": lambda x, y, g, make: [make("Mul", g, make("Cos", x[0]))],
    "Sqrt": lambda x, y, g, make: [make("Div", g, make("Add", y, y))],
    "Sub": lambda x, y, g, make: [g, make("Neg", g)],
    "Sum": lambda x, y, g, make: [g for _ in x],
    "Tanh": lambda x, y, g, make: [make("Sub", g, make("Mul", g, make("Mul", y, y)))],
}


def with_gradients(graph: Graph, limits: Limits) -> None:
    """Put nodes of other ops in the place of those of Gradient; the nodes are in order.

    Raises:
        OnnxError: when an op on the way has no rule, when the values are other ones than those of
            the graph, or when there would be too many nodes.
    """
    if not any(node.key == GRADIENT for node in graph.nodes):
        return
    make, out = _Maker(graph), list[Node]()
    for node in graph.nodes:
        with within(node):
            out += _expanded(node, out, make) if node.key == GRADIENT else [node]
        if len(out) > limits.nodes:
            what = "gradients become too many nodes"
            raise OnnxError("onnx", what, got=f"{len(out):,} or more", expected=f"{limits.nodes:,}")
    graph.nodes = out


def _expanded(node: Node, before: list[Node], make: _Maker) -> list[Node]:
    xs, y = node.attributes.get("xs", ()), node.attributes.get("y", "")
    given = [*xs, *node.attributes.get("zs", ())]
    if node.inputs != given or not y or len(node.outputs) > len(xs):
        got = f"{', '.join(node.inputs)} of {node.where()}"
        what = "a gradient at other values than those of the graph"
        raise OnnxError("Gradient", what, got=got, expected=", ".join(map(str, given)))
    make.nodes = []
    slopes = _slopes(before, set(given), str(y), make)
    for name, result in zip(xs, node.outputs, strict=False):
        if result:
            found = slopes.get(name) or make("CastLike", _filled(name, make), name)
            make.nodes.append(Node("Identity", "", [found], [result], {}, node.name, 28))
    return make.nodes


def _filled(name: str, make: _Maker) -> str:
    """Zeros of the sizes of a value."""
    return make("ConstantOfShape", make("Shape", name))


def _slopes(before: list[Node], given: set[str], y: str, make: _Maker) -> dict[str, str]:
    """What reaches each value on the way back from y, which stops at what is given."""
    on_way = set(given)
    for each in before:
        if not on_way.isdisjoint(each.inputs):
            on_way |= {o for o in each.outputs if o and o not in given}
    ones = make("CastLike", make("Exp", _filled(y, make)), y)
    slopes = {y: ones}
    for each in reversed(before):
        out = next((o for o in each.outputs if o in slopes), "")
        if not out or out in given or on_way.isdisjoint(each.inputs):
            continue
        rule = _RULES.get(each.op) if not each.domain else None
        if rule is None or len(each.outputs) != 1:
            expected = ", ".join(_RULES)
            raise OnnxError("Gradient", "an op without a rule", got=each.where(), expected=expected)
        for name, slope in zip(each.inputs, rule(each.inputs, out, slopes[out], make), strict=True):
            if name in on_way:
                own = make("SumLike", slope, name, domain=OWN)
                slopes[name] = make("Add", slopes[name], own) if name in slopes else own
    return slopes
