"""Products that end in an activation: one call, which applies it while sums are in a cache."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Final

from phlox_tensor import REGISTRY, Spec
from phlox_tensor.capture import Node, Value, values_of

_WIDE: Final = 4  # bytes


def with_finishes(
    nodes: Sequence[Node], specs: Sequence[Spec], wanted: set[int]
) -> tuple[list[Node], list[Node]]:
    """Return the ops with activations as a part of the product that only they read, and these.

    A device says for which activations and sizes that gives the same bits faster. Types narrower
    than float32 stay apart: a product is rounded before its activation, and so would not be.
    """
    uses = Counter(value for node in nodes for value in values_of(node))
    made: dict[int, int] = {}  # by the result of a product, its place
    found: list[Node | None] = [*nodes]
    finished: list[Node] = []
    for place, node in enumerate(nodes):
        limits = node.device.limits
        if not limits.finishes or not node.results:
            continue
        spec = specs[node.results[0]]
        if spec.nbytes < limits.finishes_from:
            continue
        if node.op.name in limits.finishes.values():
            made[node.results[0]] = place
        value = node.operands[0].number if _is_of_one(node) else -1
        first = made.get(value)
        if first is None or uses[value] > 1 or value in wanted:
            continue
        product = nodes[first]
        fits = limits.finishes.get(node.op.name) == product.op.name
        if fits and product.device is node.device and spec.dtype.itemsize >= _WIDE:
            found[first] = _both(product, node)
            found[place] = None
            finished.append(node)
    return [node for node in found if node is not None], finished


def _is_of_one(node: Node) -> bool:
    """Whether an op takes one value and nothing else."""
    return len(node.operands) == 1 and type(node.operands[0]) is Value and not node.attributes


def _both(product: Node, last: Node) -> Node:
    op = REGISTRY["fused_linear"]
    entry = product.device.entry(op.name)
    assert entry is not None  # of a device that says what it finishes
    operands = (*product.operands, None)
    return Node(
        op, product.device, entry, operands, (last.op.name, 1.0), last.results, product.line
    )
