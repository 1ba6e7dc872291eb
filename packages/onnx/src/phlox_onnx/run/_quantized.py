"""Whole numbers that stand for floats: rounding that trains, and weights that are floats again."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np

from .._errors import within
from .._graph import OWN, Array, Graph, Node, graphs_of, used_names, walk
from ..read._types import CODES, FOUR_BITS, TYPES
from ..table.microsoft import BITS, unpacked
from ._table import row_of

Quantized = Literal["fake", "float", "exact", "learned"]

_Q, _DQ = ("", "QuantizeLinear"), ("", "DequantizeLinear")
_CAST, _LIKE, _MUL = ("", "Cast"), ("", "CastLike"), ("", "Mul")
_PACKED = ("com.microsoft", "MatMulNBits")


def without_whole_numbers(graph: Graph, how: Quantized) -> None:
    """Rewrite, in place, what is quantized only to be a float again; names are given once."""
    _with_types(graph)
    if how == "exact":
        return
    makers: dict[str, Node] = {}
    graphs = list(graphs_of(graph))
    for each in graphs:
        makers |= {node.outputs[0]: node for node in each.nodes if node.key in (_CAST, _Q)}
    for each in graphs:
        each.nodes = [made for node in each.nodes for made in _unpacked(node, each)]
        each.nodes = [made for node in each.nodes if (made := _floating(node, how, makers, each))]
        each.nodes = [node for node in each.nodes if not _is_scaled(node, makers, each)]
    used = used_names(graph)
    for each in graphs:
        each.nodes = [n for n in each.nodes if n.key not in (_CAST, _Q) or n.outputs[0] in used]
    used = used_names(graph)
    for each in graphs:
        each.constants = {k: v for k, v in each.constants.items() if k in used}


def _with_types(graph: Graph) -> None:
    """Say to which type is quantized, since a device may hold the zero point in a wider one."""
    known = {v.name: v.code for v in graph.inputs}
    nodes = list(walk(graph))
    for node in nodes:
        # For 16 bits, which ONNX had not always, files have those of the other domain.
        if node.key in (("com.microsoft", _Q[1]), ("com.microsoft", _DQ[1])):
            node.domain = ""
        node.attributes = {k: _in_bytes(v) for k, v in node.attributes.items()}
    for each in graphs_of(graph):
        known |= {name: CODES.get(value.dtype.name, 0) for name, value in each.constants.items()}
        each.constants = {k: _in_bytes(v) for k, v in each.constants.items()}
    for node in nodes:
        known |= dict.fromkeys(node.outputs, _typed(node, [known.get(n, 0) for n in node.inputs]))


def _typed(node: Node, types: list[int]) -> int:
    """Say in a node to which type it goes, as far as its inputs tell; return what it gives."""
    words, row = node.attributes, row_of(node.key)
    if node.key == _Q:
        if types[2:] and types[2]:
            words.setdefault("output_dtype", types[2])
        return int(words.get("output_dtype", 0))
    if node.key == _LIKE and len(types) == 2:
        if types[1] in FOUR_BITS:
            node.op, node.inputs, words["to"] = "Cast", node.inputs[:1], types[1]
        return types[1]
    if node.key == _CAST:
        return int(words.get("to", 0))
    return types[0] if row is not None and row.movement and types else 0


def _in_bytes(value: Any) -> Any:
    """An array of four bits in bytes, anything else as it is."""
    code = CODES.get(value.dtype.name, 0) if isinstance(value, np.ndarray) else 0
    return value.astype(TYPES[code]) if code in FOUR_BITS else value


def _unpacked(node: Node, graph: Graph) -> list[Node]:
    """A product with packed weights as one with floats, which are made once, and train."""
    if node.key != _PACKED:
        return [node]
    x, data, scales, zero, places, bias = (*node.inputs, "", "", "")[:6]
    found = {name: graph.constants.get(name) for name in (data, scales, zero) if name}
    packed, by, words = found[data], found[scales], node.attributes
    bits = words.get("bits", 4)
    if packed is None or by is None or found.get(zero, packed) is None or places:
        return [node]
    if bits not in BITS or not {"K", "N", "block_size"} <= words.keys():
        return [node]
    rows, columns = words["N"], words["K"]
    with within(node.where()):
        shape = rows, columns
        off = unpacked(packed, found.get(zero), shape, bits, words["block_size"])
        weight = (off * by.reshape(rows, -1, 1)).astype(by.dtype).reshape(rows, -1)[:, :columns]
    name = f"{data}/unpacked/{scales}"
    graph.constants[name] = np.ascontiguousarray(weight.T)
    out = f"{node.outputs[0]}/product" if bias else node.outputs[0]
    made = [Node("MatMul", "", [x, name], [out], {}, node.name, 28)]
    if bias:
        made.append(Node("Add", "", [out, bias], [*node.outputs], {}, node.name, 28))
    return made


def _floating(node: Node, how: Quantized, makers: dict[str, Node], graph: Graph) -> Node | None:
    """The node that takes the place of one, or None where a constant does."""
    if node.key != _DQ:
        return node
    with within(node.where()):
        return _of_floats(node, how, makers, graph)


def _of_floats(node: Node, how: Quantized, makers: dict[str, Node], graph: Graph) -> Node | None:
    source = makers.get(node.inputs[0])
    if source is not None and _same(source, node, graph):
        if how == "float":
            return Node("Identity", "", [source.inputs[0]], node.outputs, {}, node.name, 28)
        inputs, attributes = [*source.inputs], dict(source.attributes)
        op = "LearnedQuantize" if how == "learned" else "FakeQuantize"
        return Node(op, OWN, inputs, node.outputs, attributes, node.name)
    value = _weight(node, graph)
    if value is None:
        return node
    graph.constants[node.outputs[0]] = value
    return None


def _is_scaled(node: Node, makers: dict[str, Node], graph: Graph) -> bool:
    """Whether a node is a cast of narrow whole numbers times a scale, which is a constant now."""
    if node.key != _MUL or len(node.inputs) != 2:
        return False
    for first, second in (node.inputs, node.inputs[::-1]):
        cast, scale = makers.get(first), graph.constants.get(second)
        if cast is None or scale is None or cast.key != _CAST or len(cast.inputs) != 1:
            continue
        x = graph.constants.get(cast.inputs[0])
        if x is None or x.dtype.kind not in "iu" or x.dtype.itemsize > 2 or x.size < 2:
            continue
        ends = zip(reversed(x.shape), reversed(scale.shape), strict=False)
        fits = scale.ndim <= x.ndim and all(m in (1, n) for n, m in ends)
        if fits and cast.attributes.get("to") == CODES.get(scale.dtype.name):
            graph.constants[node.outputs[0]] = x.astype(scale.dtype) * scale
            return True
    return False


def _same(quantize: Node, back: Node, graph: Graph) -> bool:
    """Whether the way back is that of the way there."""
    if quantize.attributes.get("axis", 1) != back.attributes.get("axis", 1):
        return False
    blocks = [n.attributes.get("block_size", 0) for n in (quantize, back)]
    pairs = zip(quantize.inputs[1:], back.inputs[1:], strict=False)
    counts = len(quantize.inputs) == len(back.inputs)
    return counts and blocks[0] == blocks[1] and all(_equal(a, b, graph) for a, b in pairs)


def _equal(one: str, other: str, graph: Graph) -> bool:
    if one == other:
        return True
    a, b = graph.constants.get(one), graph.constants.get(other)
    return a is not None and b is not None and a.dtype == b.dtype and np.array_equal(a, b)


def _weight(node: Node, graph: Graph) -> Array | None:
    """A constant of whole numbers as floats: one scale, or one along an axis."""
    found = [graph.constants.get(name) for name in node.inputs]
    if any(v is None for v in found) or node.attributes.get("block_size", 0):
        return None
    x, scale, *rest = (np.asarray(v) for v in found)
    if x.ndim == 0 or scale.ndim > 1 or scale.dtype != np.float32:
        return None
    axis = int(node.attributes.get("axis", 1))
    line = (-1, *(1,) * (x.ndim - 1 - axis % x.ndim)) if scale.size > 1 else ()
    zero = rest[0].astype(np.int64).reshape(line) if rest else 0
    return ((x.astype(np.int64) - zero) * scale.reshape(line)).astype(np.float32)
