"""What a random program is, and its values on the reference."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from phlox_tensor import REGISTRY, Numpy, Op, Tensor

Array = np.ndarray[Any, Any]


@dataclass(frozen=True)
class Leaf:
    """Data that a program starts from, and how it lies in memory."""

    array: Array
    layout: str

    def __repr__(self) -> str:
        return f"Leaf({self.array.dtype}{list(self.array.shape)}, {self.layout!r})"


@dataclass(frozen=True)
class Step:
    """One op on nodes before it, given by their place; a list of places for a variadic operand."""

    op: str
    operands: tuple[Any, ...]
    attributes: dict[str, Any]


@dataclass
class Program:
    """Leaves and steps in order; a step with several results continues with the first."""

    nodes: list[Leaf | Step] = field(default_factory=list)
    values: list[Array] = field(default_factory=list, repr=False)

    def leaf(self, array: Array, layout: str) -> int:
        """Add data; the broadcast layout shows its first row everywhere."""
        if layout == "broadcast" and array.ndim and array.shape[0]:
            array = np.ascontiguousarray(np.broadcast_to(array[:1], array.shape))
        self.nodes.append(Leaf(array, layout))
        self.values.append(array)
        return len(self.nodes) - 1

    def step(self, op: str, operands: tuple[Any, ...], attributes: dict[str, Any]) -> int:
        """Add a step and compute its value on the reference."""
        self.nodes.append(Step(op, operands, attributes))
        inputs = [gather(self.values, o) for o in operands]
        self.values.append(reference(REGISTRY[op], inputs, attributes, INT32)[0])
        return len(self.nodes) - 1


INT32 = Numpy(int="int32")


def gather(values: Sequence[Any], operand: Any) -> Any:
    """The values at the places of an operand."""
    if isinstance(operand, list):
        return [values[place] for place in operand]
    return None if operand is None else values[operand]


def reference(op: Op, inputs: list[Any], attributes: dict[str, Any], backend: Numpy) -> list[Array]:
    """All results of an op on arrays."""

    def tensor(item: Any) -> Any:
        if isinstance(item, list):
            return [tensor(each) for each in item]
        return None if item is None else Tensor(item, backend)

    with np.errstate(all="ignore"):
        out = op(*map(tensor, inputs), **attributes)
    return [t.numpy() for t in (out if isinstance(out, tuple) else (out,))]
