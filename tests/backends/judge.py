"""Runs random programs on a backend and judges them.

A run reads nothing until its end; then each step is compared with the reference on the very
inputs that the backend had, to the tolerance that its op declares.
"""

from __future__ import annotations

from typing import Any

import numpy as np

import phlox_tensor as pt
from phlox_tensor import DTYPES, REGISTRY, Backend, Numpy, Tensor
from phlox_tensor._device.compare import narrow_error
from phlox_tensor.testing import LAYOUTS, disagreement
from tests.backends.program import Array, Leaf, Program, gather, reference


def run(program: Program, backend: Backend) -> list[tuple[Tensor[Any], ...]]:
    """All results of all nodes on a backend; nothing is read."""
    done: list[tuple[Tensor[Any], ...]] = []
    for node in program.nodes:
        if isinstance(node, Leaf):
            place = LAYOUTS[node.layout]
            done.append((place(node.array, DTYPES[node.array.dtype.name], backend),))
            continue
        firsts = [out[0] for out in done]
        out = REGISTRY[node.op](*[gather(firsts, o) for o in node.operands], **node.attributes)
        done.append(out if isinstance(out, tuple) else (out,))
    return done


def judge(program: Program, done: list[tuple[Tensor[Any], ...]], backend: Backend) -> None:
    """Compare each step of a run with the reference on the inputs that it had.

    Raises:
        AssertionError: naming the step.
    """
    read = [tuple(t.numpy() for t in out) for out in done]
    firsts = [out[0] for out in read]
    plain = Numpy(backend.default_float.name, backend.default_int.name)
    for place, node in enumerate(program.nodes):
        if isinstance(node, Leaf):
            assert np.array_equal(firsts[place], node.array, equal_nan=True), f"{place}: {node}"
            continue
        op = REGISTRY[node.op]
        inputs = [gather(firsts, o) for o in node.operands]
        if not backend.strict and any(_denormal(a) for a in inputs):
            continue  # such a backend may take them for zeros
        narrow = reference(op, inputs, node.attributes, plain)
        wide = narrow
        if op.tested.ulp and narrow[0].dtype.kind not in "iub":
            wide = reference(op, [_widened(a) for a in inputs], node.attributes, plain)
        for got, like, want in zip(read[place], narrow, wide, strict=True):
            assert got.dtype == like.dtype, f"{place}: {node}: {got.dtype}, expected {like.dtype}"
            exact = np.where(_tiny(want, like), 0, want) if not backend.strict else want
            seen = np.where(_tiny(got, like), 0, got) if not backend.strict else got
            slack = backend.slack
            problem = disagreement(
                np.asarray(seen).astype(got.dtype),
                np.asarray(exact),
                ulp=op.tested.ulp * slack,
                atol=op.tested.atol * slack,
                rounded=narrow_error(op),
            )
            assert problem is None, f"{place}: {node}: {problem}\n{program}"


def _is_float(array: Array) -> bool:
    return array.dtype.kind == "f" or array.dtype.name == "bfloat16"


def _tiny(array: Array, like: Array) -> Any:
    if not _is_float(like):
        return np.zeros(np.shape(array), bool)
    return np.abs(np.asarray(array).astype(np.float64)) < float(
        pt.finfo(like.dtype).smallest_normal
    )


def _denormal(item: Any) -> bool:
    if isinstance(item, list):
        return any(_denormal(each) for each in item)
    if item is None or not _is_float(item):
        return False
    return bool((_tiny(item, item) & (item != 0)).any())


def _widened(item: Any) -> Any:
    if isinstance(item, list):
        return [_widened(each) for each in item]
    return item.astype(np.float64) if item is not None and _is_float(item) else item
