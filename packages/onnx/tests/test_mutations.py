"""Nodes that ask for what cannot be: the cases of the onnx wheel, changed at random.

Each file is read, loaded, run and written as source: whatever it holds, there are errors of phlox
alone, and the source is Python.
"""

from __future__ import annotations

import ast
import random
from collections.abc import Callable
from contextlib import suppress
from fnmatch import fnmatchcase
from typing import Any

import numpy as np
import onnx
import pytest

from phlox_onnx import load, source
from phlox_onnx.testing import node_cases
from phlox_tensor import PhloxError

NUMBERS = (-9, -1, 0, 1, 2, 3, 7)  # no larger ones: padding by them is allowed, and fills memory
FLOATS = (0.0, -1.0, float("nan"), float("inf"), 1e38)
WORDS = (b"", b"x", b"\xff", b"NOTSET")
# How often a loop runs is a number of the file, and a sequence of random numbers has no end.
LEFT_OUT = ("*loop*", "*range*", "test_image_decoder*")
SMALL = 4000  # bytes


def _attribute(rng: random.Random, node: Any, graph: Any) -> None:
    a = rng.choice(node.attribute)
    if a.type == onnx.AttributeProto.INT:
        a.i = rng.choice(NUMBERS)
    elif a.type == onnx.AttributeProto.INTS:
        a.ints[:] = [*list(a.ints)[: rng.randrange(3)], rng.choice(NUMBERS)]
    elif a.type == onnx.AttributeProto.FLOAT:
        a.f = rng.choice(FLOATS)
    elif a.type == onnx.AttributeProto.STRING:
        a.s = rng.choice(WORDS)


def _without(rng: random.Random, node: Any, graph: Any) -> None:
    which = rng.choice([n for n in (node.attribute, node.input) if n])
    which.pop(rng.randrange(len(which)))


def _other_input(rng: random.Random, node: Any, graph: Any) -> None:
    node.input[rng.randrange(len(node.input))] = rng.choice(["", *[v.name for v in graph.input]])


def _one_more(rng: random.Random, node: Any, graph: Any) -> None:
    node.input.append(rng.choice(list(node.input)))


def _other_op(rng: random.Random, node: Any, graph: Any) -> None:
    node.op_type = rng.choice(("Add", "Concat", "Conv", "Gather", "MatMul", "Squeeze"))


def _size(rng: random.Random, node: Any, graph: Any) -> None:
    value = rng.choice(graph.input).type.tensor_type
    value.elem_type = rng.choice((1, 6, 7, 8, 9, 10, 11, 16))
    if value.shape.dim:
        value.shape.dim[rng.randrange(len(value.shape.dim))].dim_value = rng.choice((0, 1, 2, 7))


CHANGES: tuple[Callable[[random.Random, Any, Any], None], ...] = (
    _attribute,
    _one_more,
    _other_input,
    _other_op,
    _size,
    _without,
)


def changed(rng: random.Random, model: Any) -> Any:
    """A copy with one to three changes."""
    new = onnx.ModelProto()
    new.CopyFrom(model)
    for _ in range(rng.choice((1, 1, 2, 3))):
        try:
            rng.choice(CHANGES)(rng, rng.choice(new.graph.node), new.graph)
        except (IndexError, ValueError):  # nothing of the kind to change
            continue
    return new


def fed(rng: random.Random, model: Any) -> list[Any]:
    """Small whole numbers for each input."""
    values = np.random.default_rng(rng.randrange(99))
    given = {t.name for t in model.graph.initializer}
    out = []
    for value in model.graph.input:
        t = value.type.tensor_type
        shape = [min(d.dim_value, 9) or 1 for d in t.shape.dim]
        if value.name not in given and t.elem_type:
            dtype = onnx.helper.tensor_dtype_to_np_dtype(t.elem_type)
            out.append(values.integers(-3, 4, shape).astype(dtype))
    return out


@pytest.mark.timeout(600)
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("seed", range(3))
def test_changed_nodes_run_or_raise_errors_of_phlox_alone(seed: int) -> None:
    rng = random.Random(seed)
    models = [
        case.model
        for name, case in sorted(node_cases().items())
        if case.model.ByteSize() < SMALL and not any(fnmatchcase(name, p) for p in LEFT_OUT)
    ]
    ran = written = 0
    for _ in range(2000):
        model = changed(rng, rng.choice(models))
        file, inputs = model.SerializeToString(), fed(rng, model)
        with suppress(PhloxError, MemoryError):
            load(file)(*inputs)
            ran += 1
        with suppress(PhloxError, MemoryError):
            ast.parse(source(file))
            written += 1
    assert ran > 300
    assert written > 300
