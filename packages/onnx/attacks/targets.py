"""What is fuzzed: files as they are, and nodes of the onnx wheel with other numbers in them."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from contextlib import suppress
from math import prod
from typing import Any, Final, NamedTuple

import numpy as np
import onnx

import phlox_tensor as pt
from phlox_onnx import Limits, load, source
from phlox_onnx.testing import node_cases

LIMITS: Final = Limits(file_bytes=1 << 16, nodes=1000, elements=1 << 20)
NUMPY: Final = pt.Numpy()
SMALL: Final = 1500  # bytes of a model to begin with
# How often a loop runs is a number of the file, and a sequence of random numbers has no end.
LOOPS: Final = frozenset(("Loop", "Scan", "SequenceMap"))
ELEMENTS: Final = 4096  # of an input
WORDS: Final = (b"", b"NOTSET", b"SAME_UPPER", b"linear", b"reflect", b"wrap", b"x\xff")


class Target(NamedTuple):
    """A way to make a file of bytes, and bytes to begin with."""

    make: Callable[[bytes], bytes]
    seeds: Callable[[], list[bytes]]


def models() -> list[Any]:
    """Return small models of single nodes, one for each op and number of nodes."""
    out: dict[tuple[str, int], Any] = {}
    for name, case in sorted(node_cases().items()):
        nodes = case.model.graph.node
        loops = any(node.op_type in LOOPS for node in nodes)
        if case.model.ByteSize() < SMALL and not loops and "image_decoder" not in name:
            out.setdefault((nodes[0].op_type, len(nodes)), case.model)
    return list(out.values())


def files() -> list[bytes]:
    """Return those models as files."""
    return [model.SerializeToString() for model in models()]


def edits() -> list[bytes]:
    """Return bytes that choose each of them, without a change."""
    return [number.to_bytes(2, "big") for number in range(len(_models()))]


_MODELS: Final[list[Any]] = []


def _models() -> list[Any]:
    if not _MODELS:
        _MODELS.extend(models())
    return _MODELS


def edited(data: bytes) -> bytes:
    """Return the model that the first bytes choose, changed as the others say."""
    known = _models()
    model = onnx.ModelProto()
    model.CopyFrom(known[int.from_bytes(data[:2], "big") % len(known)])
    for at in range(2, len(data), 12):
        _edit(model.graph, data[at : at + 12].ljust(12, b"\0"))
    return bytes(model.SerializeToString())


def _edit(graph: Any, data: bytes) -> None:
    """One change: what, of which node, which of its parts, and a number."""
    kind, which, part, index = data[:4]
    number = int.from_bytes(data[4:], "little", signed=True)
    node = graph.node[which % len(graph.node)]
    if kind % 4 == 0 and node.attribute:
        a = node.attribute[part % len(node.attribute)]
        if a.type == onnx.AttributeProto.INTS and a.ints:
            a.ints[index % len(a.ints)] = number
        elif a.type == onnx.AttributeProto.INT:
            a.i = number
        elif a.type == onnx.AttributeProto.FLOAT:
            a.f = number / 256
        elif a.type == onnx.AttributeProto.STRING:
            a.s = WORDS[index % len(WORDS)]
    elif kind % 4 == 1 and node.input:
        names = ["", *(value.name for value in graph.input)]
        node.input[part % len(node.input)] = names[index % len(names)]
    elif kind % 4 == 2 and graph.input:
        kind_of = graph.input[part % len(graph.input)].type.tensor_type
        kind_of.elem_type = index % 17
        if kind_of.shape.dim:
            kind_of.shape.dim[which % len(kind_of.shape.dim)].dim_value = number % 9
    elif graph.input:
        # An input becomes a constant of the file: sizes, paddings and bounds are.
        value = graph.input[part % len(graph.input)]
        shape = [d.dim_value for d in value.type.tensor_type.shape.dim]
        if value.type.tensor_type.elem_type == onnx.TensorProto.INT64 and prod(shape) <= 64:
            array = np.full(shape, number, np.int64)
            graph.initializer.append(onnx.numpy_helper.from_array(array, value.name))


TARGETS: Final = {
    "graph": Target(lambda data: data, files),
    "nodes": Target(edited, edits),
}


def seeds(name: str) -> list[bytes]:
    """Return what a target begins with."""
    return TARGETS[name].seeds()


def one_input(name: str, data: bytes) -> bool:
    """Load a file, run it, and write its source; return whether it ran.

    Raises:
        Exception: any that is not an error of phlox is a finding.
    """
    file = TARGETS[name].make(data)
    with pt.use_device(NUMPY), warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        try:
            model = load(file, limits=LIMITS)
        except pt.PhloxError:
            with suppress(pt.PhloxError):
                source(file, limits=LIMITS)
            return False
        graph = model.program.graph
        if any(node.op in LOOPS for node in _walk(graph)):
            return False
        ran = _ran(model, graph)
        try:
            source(file, limits=LIMITS)
        except pt.PhloxError:
            return ran
    return ran


def _ran(model: Any, graph: Any) -> bool:
    try:
        model(*(_zeros(value) for value in graph.inputs))
    except pt.PhloxError:
        return False
    return True


def _walk(graph: Any) -> Iterator[Any]:
    for node in graph.nodes:
        yield node
        for inner in node.graphs.values():
            yield from _walk(inner)


def _zeros(value: Any) -> Any:
    shape = [n if isinstance(n, int) and n > 0 else 2 for n in value.shape or ()]
    kind = pt.DTYPES.get(value.dtype, pt.float32)
    return pt.zeros(shape if prod(shape) <= ELEMENTS else (2,), dtype=kind, device=NUMPY)
