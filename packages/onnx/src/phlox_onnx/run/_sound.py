"""What can be seen to be wrong with a node before it runs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np
import onnx

from .._errors import OnnxError
from .._graph import Graph, Node, walk
from ..table._row import Body
from ._table import row_of

_TYPE: Final = onnx.defs.OpSchema.AttrType
_KINDS: Final[dict[Any, tuple[str, Callable[[Any], bool]]]] = {
    _TYPE.FLOAT: ("a number", lambda v: isinstance(v, int | float)),
    _TYPE.FLOATS: ("numbers", lambda v: isinstance(v, tuple)),
    _TYPE.GRAPH: ("a graph", lambda v: isinstance(v, Graph)),
    _TYPE.INT: ("a whole number", lambda v: isinstance(v, int)),
    _TYPE.INTS: (
        "whole numbers",
        lambda v: isinstance(v, tuple) and all(isinstance(n, int) for n in v),
    ),
    _TYPE.STRING: ("a word", lambda v: isinstance(v, str)),
    _TYPE.STRINGS: (
        "words",
        lambda v: isinstance(v, tuple) and all(isinstance(n, str) for n in v),
    ),
    _TYPE.TENSOR: ("a tensor", lambda v: isinstance(v, np.ndarray)),
}


def refuse_unsound(graph: Graph) -> None:
    """Look at the attributes, results and inner graphs of all nodes."""
    if not graph.outputs:
        raise OnnxError("onnx", "a model without outputs", got=repr(graph.name))
    for node in walk(graph):
        _refuse_words(node)
        if not node.domain and onnx.defs.has(node.op):
            _refuse_unlike(node, onnx.defs.get_schema(node.op))
        if node.graphs:
            _refuse_bodies(node)


def _refuse_words(node: Node) -> None:
    row = row_of(node.key)
    for name, words in row.words.items() if row is not None else ():
        value = node.attributes.get(name, "")
        if value != "" and value not in words:
            expected = ", ".join(map(str, words))
            got = f"{name}={value!r} of {node.where()}"
            raise OnnxError("onnx", "an attribute is none of its words", got=got, expected=expected)


def _refuse_unlike(node: Node, schema: Any) -> None:
    """Types of attributes, and the number of results."""
    for name, value in node.attributes.items():
        known = schema.attributes.get(name)
        kind = _KINDS.get(known.type) if known is not None else None
        if kind is not None and not kind[1](value):
            got = f"{name}={_short(value)} of {node.where()}"
            raise OnnxError("onnx", "an attribute is of another type", got=got, expected=kind[0])
    count = named_outputs(node)
    if count > schema.max_output:
        got = f"{count} of {node.where()}"
        raise OnnxError("onnx", "too many results", got=got, expected=schema.max_output)


def _short(value: Any) -> str:
    return repr(value)[:40]


def named_outputs(node: Node) -> int:
    """How many results are wanted: those behind the last name are not."""
    return max((i for i, name in enumerate(node.outputs, 1) if name), default=0)


# How many values the graphs inside of a node take and give, where it has so many.
_BODIES: Final[dict[Body, Callable[[int, int], tuple[int, int]]]] = {
    "batches": lambda takes, gives: (takes - 1, gives),
    "branch": lambda takes, gives: (0, gives),
    "items": lambda takes, gives: (takes, gives),
    "loop": lambda takes, gives: (max(2, takes), 1 + gives),
    "slices": lambda takes, gives: (takes, gives),
}


def _refuse_bodies(node: Node) -> None:
    row = row_of(node.key)
    if row is None or not row.inner:
        return
    wanted = _BODIES[row.inner](len(node.inputs), len(node.outputs))
    for name, inner in node.graphs.items():
        found = len(inner.inputs), len(inner.outputs)
        if found != wanted:
            got = f"{found[0]} and {found[1]}, {name} of {node.where()}"
            what = "a graph takes or gives another number of values than its node"
            raise OnnxError("onnx", what, got=got, expected=f"{wanted[0]} and {wanted[1]}")
    if row.inner == "loop" and len(node.outputs) < len(node.inputs) - 2:
        got = f"{len(node.outputs)} for {len(node.inputs) - 2} of {node.where()}"
        raise OnnxError("onnx", "a loop gives fewer values than it carries", got=got)
