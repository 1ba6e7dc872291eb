"""Whether sizes that look constant are: the shapes of all values, at more than two sizes."""

from __future__ import annotations

from typing import Any

import numpy as np

import phlox_tensor as px
from phlox_tensor import DTYPES, Tensor

from ..._graph import Graph, copied
from ...run._growth import META
from ...run._program import Program
from ._simplify import FOLDED

Cases = dict[str, tuple[tuple[int, ...], tuple[int, ...]] | None]


def collapsed(graph: Graph, small: Cases, large: Cases) -> tuple[bool, bool]:
    """Whether a size is one number in both of the small cases and another in the large, and so on.

    Steps over a signal, for example, may be one in both of two short signals.
    """
    program = Program(copied(graph), [], FOLDED)
    found = [_shapes(program, cases, i) for cases in (small, large) for i in (0, 1)]
    one = two = False
    for name in set(found[0]).intersection(*found[1:]):
        rows = [each[name] for each in found]
        if len({len(row) for row in rows}) > 1:
            continue
        for a, b, c, d in zip(*rows, strict=True):
            one |= a == b and (c, d) != (a, a)
            two |= c == d and (a, b) != (c, c)
    return one, two


def shapes_of(graph: Graph, cases: Cases) -> dict[str, tuple[int, ...]]:
    """The sizes of all values that are known without data, in the first case."""
    return _shapes(Program(copied(graph), [], FOLDED), cases, 0)


def _shapes(program: Program, cases: Cases, case: int) -> dict[str, tuple[int, ...]]:
    """The sizes of all values that are known without data; of whole numbers the numbers too."""
    graph = program.graph
    inputs: list[Any] = []
    for value in graph.inputs:
        shapes, kind = cases.get(value.name), DTYPES.get(value.dtype)
        if shapes is None or kind is None:
            inputs.append(None)
        else:
            inputs.append(px.zeros(shapes[case], dtype=kind, device=META))
    out: dict[str, tuple[int, ...]] = {}
    for step, values in program.walked(inputs, META):
        for name, value in zip(step.node.outputs, values, strict=False):
            if isinstance(value, Tensor):
                out[name] = value.shape
            elif isinstance(value, np.ndarray) and value.dtype.kind in "iu" and value.ndim < 2:
                out[name] = tuple(int(n) for n in value.reshape(-1))
    return out
