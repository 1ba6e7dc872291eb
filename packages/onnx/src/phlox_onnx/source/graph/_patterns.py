"""Formulas that exporters write out, as the op or layer that they are."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable
from typing import Final

from ..._errors import within
from ..._graph import OWN, Array, Graph, Node
from ._attention import attention
from ._finder import CLOSE, Finder, in_place
from ._simplify import Forms, in_several_ways, without_unused


def hard_swish(node: Node, f: Finder) -> Node | None:
    """``x * clip(x + 3, 0, 6) / 6`` in any order."""
    if node.op == "Div" and f.is_number(node.inputs[1], 6):
        product = f.maker(node.inputs[0], "Mul")
    elif node.op == "Mul":
        inner = f.split(node)
        scaled = inner is not None and math.isclose(inner[1], 1 / 6, rel_tol=CLOSE)
        product = f.maker(inner[0], "Mul") if inner and scaled else None
    else:
        return None
    if product is None or not f.once(product.outputs[0]):
        return None
    for x, gate in f.pairs(product):
        if _relu6(f, gate) == x:
            return in_place("HardSwish", [x], node)
    return None


def _relu6(f: Finder, name: str) -> str | None:
    """The x of ``clip(x + 3, 0, 6)``."""
    clip = f.maker(name, "Clip")
    if clip is None or len(clip.inputs) != 3:
        return None
    if f.number(clip.inputs[1]) != 0 or not f.is_number(clip.inputs[2], 6):
        return None
    added = f.split(f.maker(clip.inputs[0], "Add"))
    return added[0] if added is not None and added[1] == 3 else None


def _gated(op: str, gate: str, **numbers: float) -> Callable[[Node, Finder], Node | None]:
    """``x * gate(x)`` as an op, where the attributes of the gate are nearly some numbers."""

    def found(node: Node, f: Finder) -> Node | None:
        for x, name in f.pairs(node) if node.op == "Mul" else []:
            made = f.maker(name, gate)
            if made is None or made.inputs[0] != x:
                continue
            words = {"alpha": 0.2, "beta": 0.5} | made.attributes
            if all(math.isclose(words[k], n, rel_tol=CLOSE) for k, n in numbers.items()):
                return in_place(op, [x], node)
        return None

    return found


def _factors(f: Finder, name: str, depth: int = 3) -> tuple[list[str], float]:
    """A product as its factors and one number; a quotient by a number counts."""
    found = f.number(name)
    if found is not None:
        return [], found
    node = f.makers.get(name)
    if node is None or node.domain or not depth:
        return [name], 1.0
    if node.op == "Mul":
        (a, x), (b, y) = (_factors(f, n, depth - 1) for n in node.inputs)
        return a + b, x * y
    if node.op == "Div" and f.number(node.inputs[1]):
        a, x = _factors(f, node.inputs[0], depth - 1)
        return a, x / (f.number(node.inputs[1]) or 1.0)
    return [name], 1.0


def gelu(node: Node, f: Finder) -> Node | None:
    """``x * 0.5 * (1 + erf(x / sqrt(2)))``, or with tanh for the erf."""
    if node.op not in ("Mul", "Div"):
        return None
    names, factor = _factors(f, node.outputs[0])
    if len(names) != 2 or not math.isclose(factor, 0.5, rel_tol=CLOSE):
        return None
    for x, gate in (names, names[::-1]):
        added = f.split(f.maker(gate, "Add"))
        if added is None or added[1] != 1:
            continue
        erf, tanh = f.maker(added[0], "Erf"), f.maker(added[0], "Tanh")
        if erf is not None:
            inside, scale = _factors(f, erf.inputs[0])
            if inside == [x] and math.isclose(scale, math.sqrt(0.5), rel_tol=CLOSE):
                return in_place("Gelu", [x], node)
        if tanh is not None and _cubic(f, tanh.inputs[0], x):
            return in_place("Gelu", [x], node, approximate="tanh")
    return None


def _cubic(f: Finder, name: str, x: str) -> bool:
    """Whether a value is ``sqrt(2 / pi) * (x + 0.044715 * x ** 3)``."""
    names, scale = _factors(f, name, 1)
    if len(names) != 1 or not math.isclose(scale, math.sqrt(2 / math.pi), rel_tol=CLOSE):
        return False
    total = f.maker(names[0], "Add")
    if total is None or x not in total.inputs:
        return False
    rest = total.inputs[1 - total.inputs.index(x)]
    inside, factor = _factors(f, rest, 4)
    powers = 0
    for each in inside:
        power = f.maker(each, "Pow")
        known = f.number(power.inputs[1]) if power is not None and power.inputs[0] == x else None
        powers += 1 if each == x else int(known) if known is not None else 100
    return powers == 3 and math.isclose(factor, 0.044715, rel_tol=CLOSE)


def _mean(f: Finder, name: str) -> str | None:
    """The x of a mean over the last axis that is kept."""
    node = f.maker(name, "ReduceMean")
    if node is None or not node.attributes.get("keepdims", 1) or len(node.inputs) != 2:
        return None
    return node.inputs[0] if f.number(node.inputs[1]) == -1 else None


def _squared(f: Finder, name: str) -> str | None:
    power = f.maker(name, "Pow")
    if power is not None and f.number(power.inputs[1]) == 2:
        return power.inputs[0]
    product = f.maker(name, "Mul")
    return product.inputs[0] if product and product.inputs[0] == product.inputs[1] else None


def _root(f: Finder, name: str) -> tuple[str, float] | None:
    """The variance and epsilon of ``sqrt(variance + epsilon)``."""
    root = f.maker(name, "Sqrt")
    return f.split(f.maker(root.inputs[0], "Add")) if root is not None else None


def _quotient(f: Finder, name: str) -> tuple[str, str] | None:
    """What is divided, and by which root."""
    node = f.maker(name, "Div")
    if node is not None:
        return node.inputs[0], node.inputs[1]
    product = f.maker(name, "Mul")
    for x, y in f.pairs(product) if product is not None else []:
        inverse = f.maker(y, "Reciprocal")
        if inverse is not None:
            return x, inverse.inputs[0]
        one = f.maker(y, "Div")
        if one is not None and f.number(one.inputs[0]) == 1:
            return x, one.inputs[1]
    return None


def _vector(f: Finder, name: str) -> bool:
    value = f.constants.get(name)
    return value is not None and value.ndim == 1 and value.size > 1


def layer_norm(node: Node, f: Finder) -> Node | None:
    """``(x - mean(x)) / sqrt(mean((x - mean(x)) ** 2) + epsilon) * weight + bias``."""
    if node.op != "Add":
        return None
    for scaled, bias in f.pairs(node):
        product = f.maker(scaled, "Mul") if _vector(f, bias) else None
        for normal, weight in f.pairs(product) if product is not None else []:
            found = _normal(f, normal) if _vector(f, weight) else None
            if found is not None and found[2]:
                x, epsilon, _ = found
                return in_place(
                    "LayerNormalization", [x, weight, bias], node, axis=-1, epsilon=epsilon
                )
    return None


def rms_norm(node: Node, f: Finder) -> Node | None:
    """``x / sqrt(mean(x ** 2) + epsilon) * weight``."""
    if node.op != "Mul":
        return None
    for normal, weight in f.pairs(node):
        found = _normal(f, normal) if _vector(f, weight) else None
        if found is not None and not found[2]:
            return in_place("RMSNormalization", [found[0], weight], node, axis=-1, epsilon=found[1])
    return None


def _normal(f: Finder, name: str) -> tuple[str, float, bool] | None:
    """The x of a normalized row, epsilon, and whether its mean is taken away."""
    parts = _quotient(f, name)
    root = _root(f, parts[1]) if parts is not None else None
    if parts is None or root is None:
        return None
    off, (variance, epsilon) = parts[0], root
    mean_of = _mean(f, variance)
    squared = _squared(f, mean_of) if mean_of is not None else None
    if squared is None:
        return None
    away = f.maker(off, "Sub")
    if away is not None and _mean(f, away.inputs[1]) == away.inputs[0]:
        other = f.maker(squared, "Sub")
        same = squared == off or (other is not None and other.inputs == away.inputs)
        return (away.inputs[0], epsilon, True) if same else None
    return (off, epsilon, False) if squared == off else None


def linear(node: Node, f: Finder) -> Node | None:
    """A product with a constant matrix, and a vector that is added."""
    if node.op == "Add":
        for product, bias in f.pairs(node):
            made = f.maker(product, "MatMul") if _vector(f, bias) else None
            weight = f.constants.get(made.inputs[1]) if made is not None else None
            if made is None or weight is None or weight.ndim != 2 or not f.once(product):
                continue
            if weight.shape[1] == f.constants[bias].size:
                return in_place("Linear", [*made.inputs, bias], made_as(node, made), OWN)
    return None


def made_as(node: Node, product: Node) -> Node:
    """A node under the name of the product, whose scope is the layer's."""
    return Node(node.op, node.domain, node.inputs, node.outputs, {}, product.name or node.name)


def bare_linear(node: Node, f: Finder) -> Node | None:
    """A product with a constant matrix alone."""
    if node.op != "MatMul":
        return None
    weight = f.constants.get(node.inputs[1])
    whole = weight is not None and weight.ndim == 2 and weight.dtype.kind == "f"
    if not whole or node.inputs[0] in f.constants:
        return None
    return in_place("Linear", list(node.inputs), node, OWN)


def gemm(node: Node, f: Finder) -> Node | None:
    """A Gemm without factors."""
    if node.op != "Gemm" or node.attributes.get("transA", 0):
        return None
    if node.attributes.get("alpha", 1.0) != 1 or node.attributes.get("beta", 1.0) != 1:
        return None
    name, turned = node.inputs[1], bool(node.attributes.get("transB", 0))
    weight = f.constants.get(name)
    if weight is None or weight.dtype.kind != "f" or node.inputs[0] in f.constants:
        return None
    if weight.ndim != 2:
        return None
    rest = [n for n in node.inputs[2:] if n]
    bias = f.constants.get(rest[0]) if rest else None
    columns = weight.shape[0 if turned else 1]
    if rest and (bias is None or bias.shape not in ((columns,), (1, columns))):
        return None
    if bias is not None and bias.ndim == 2:
        if rest[0] in f.forms.several:
            return None
        rest = [f.flat(rest[0])]
    name = f.turned(name) if turned else name
    return in_place("Linear", [node.inputs[0], name, *rest], node, OWN)


def unsqueezed(node: Node, f: Finder) -> Node | None:
    """Axes that are put between twice, as once."""
    inner = f.maker(node.inputs[0], "Unsqueeze") if node.op == "Unsqueeze" else None
    if inner is None or not f.once(node.inputs[0]):
        return None
    first, then = f.whole(inner.inputs[1]), f.whole(node.inputs[1])
    if not first or not then or min(*first, *then) < 0:
        return None
    kept = [i for i in range(len(then) + max(first) + 1) if i not in then]
    axes = f.axes(node.outputs[0], sorted((*then, *(kept[i] for i in first))))
    return in_place("Unsqueeze", [inner.inputs[0], axes], node)


PATTERNS: Final[dict[str, Callable[[Node, Finder], Node | None]]] = {
    "hard_swish": hard_swish,
    "hard_swish of hard_sigmoid": _gated("HardSwish", "HardSigmoid", alpha=1 / 6, beta=0.5),
    "silu": _gated("Swish", "Sigmoid"),
    "gelu": gelu,
    "layer norm": layer_norm,
    "rms norm": rms_norm,
    "attention": attention,
    "gemm": gemm,
    "linear": linear,
    "linear without bias": bare_linear,
    "axes in two steps": unsqueezed,
}


def recognised(graph: Graph, forms: Forms) -> Counter[str]:
    """Put ops in the place of their formulas, and return how often each was found."""
    forms.several = in_several_ways(graph)
    return _recognised(graph, {}, forms)


def _recognised(graph: Graph, around: dict[str, Array], forms: Forms) -> Counter[str]:
    found: Counter[str] = Counter()
    for word, pattern in PATTERNS.items():
        finder = Finder(graph, around, forms)
        made: dict[int, Node] = {}
        for node in graph.nodes:
            if node.domain or len(node.outputs) != 1:
                continue
            with within(node.where()):
                finder.vectors = False
                new = pattern(node, finder)
            if finder.vectors and new is not None and not finder.has_axes(new.inputs[0]):
                continue  # the formula makes a vector of a number
            if new is not None:
                made[id(node)] = finder.makers[new.outputs[0]] = new
                found[word] += 1
        graph.nodes = [
            each
            for node in graph.nodes
            for each in (*finder.before.get(id(node), ()), made.get(id(node), node))
        ]
        if made:
            without_unused(graph)
    known = {**around, **graph.constants}
    for node in graph.nodes:
        for inner in node.graphs.values():
            found += _recognised(inner, known, forms)
    return found
