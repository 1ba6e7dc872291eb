"""The backward pass: nodes in reverse order of their numbers, and the gradients as a value."""

from __future__ import annotations

from math import prod
from operator import attrgetter
from typing import TYPE_CHECKING, Any, final

from phlox_tensor import GradientError, ShapeError, Tensor

from . import _nan
from ._checkpoint import Memo
from ._graph import LEAF, USED, Node, Pending

if TYPE_CHECKING:
    from collections.abc import Iterator

    from phlox_tensor import Backend

_by_id = attrgetter("id")


@final
class Gradients:
    """The gradients of the leaves that one backward pass reached.

    They live on the inner backend. Where the same leaf is used several times, they are summed.
    """

    __slots__ = ("_device", "_found")

    def __init__(self, found: dict[Node, Tensor[Any]], device: Backend) -> None:
        """Keep the tensors that a pass left at the leaves."""
        self._found = found
        self._device = device

    def get(self, tensor: Tensor[Any]) -> Tensor[Any] | None:
        """Return the gradient of a leaf; None when no gradient flowed to it, or it is no leaf."""
        if tensor.device is not self._device:
            return None
        node: Node = tensor.primitive.node  # None for a constant, of which there is none here
        return self._found.get(node)

    def pop(self, tensor: Tensor[Any]) -> Tensor[Any] | None:
        """Return the gradient of a leaf as ``get`` does, and forget it to free its memory."""
        node = self._node(tensor)
        return None if node is None else self._found.pop(node, None)

    def nodes(self) -> Iterator[Node]:
        """The leaves, as nodes."""
        return iter(self._found)

    def _node(self, tensor: Tensor[Any]) -> Node | None:
        return tensor.primitive.node if tensor.device is self._device else None

    def __contains__(self, tensor: object) -> bool:
        return isinstance(tensor, Tensor) and self._node(tensor) in self._found

    def __len__(self) -> int:
        return len(self._found)

    def __repr__(self) -> str:
        return f"Gradients(of {len(self._found)} tensors on {self._device!r})"


def backward(
    device: Backend, tensor: Tensor[Any], seed: Tensor[Any] | None, retain_graph: bool
) -> Gradients:
    """Run the pass of a Tensor and return its gradients.

    Raises:
        GradientError: when nothing was recorded, or the graph was used already.
        ShapeError: without a seed, when there is more than one element.
    """
    node = tensor.primitive.node
    if node is None:
        raise GradientError(
            "backward",
            "nothing was recorded for this tensor",
            expected="a result of a tensor on which require_grad() was called",
            hint="w = w.require_grad()",
        )
    return Gradients(run({node: start(device, tensor, seed)}, retain_graph=retain_graph), device)


def start(device: Backend, tensor: Tensor[Any], seed: Tensor[Any] | None) -> Tensor[Any]:
    """The cotangent that a pass starts from, on the inner backend."""
    inner = device.inner
    assert inner is not None
    if seed is None:
        shape = tensor.shape
        if prod(shape) != 1:
            raise ShapeError(
                "backward",
                "not one element",
                got=f"shape {shape}",
                expected="one element, or a seed of that shape",
                hint="x.sum().backward()",
            )
        return Tensor(inner.ops.full(shape, 1, tensor.dtype), inner)
    if seed.shape != tensor.shape or seed.dtype is not tensor.dtype:
        raise ShapeError(
            "backward",
            "the seed does not fit",
            got=f"{seed.shape} of {seed.dtype}",
            expected=f"{tensor.shape} of {tensor.dtype}",
        )
    return seed.to_device(inner)


def reachable(roots: list[Node]) -> list[Node]:
    """All nodes behind ``roots`` but leaves, later ones first.

    Raises:
        GradientError: when one was freed by an earlier pass.
    """
    found = [node for node in roots if node.plan is not LEAF]
    seen = set(found)
    for node in found:  # which grows meanwhile
        if node.plan is USED:
            raise GradientError(
                "backward",
                "the graph was used by an earlier backward pass and freed",
                hint="the earlier one as backward(retain_graph=True)",
            )
        for parent in node.parents:
            if parent is not None and parent.plan is not LEAF and parent not in seen:
                seen.add(parent)
                found.append(parent)
    found.sort(key=_by_id, reverse=True)
    return found


def run(pending: Pending, *, retain_graph: bool) -> dict[Node, Tensor[Any]]:
    """Carry cotangents from the nodes in ``pending`` to the leaves, which stay in it."""
    memo: Memo = {}
    watched = _nan.MODE.blocks > 0
    for node in reachable(list(pending)):
        cotangent = pending.pop(node, None)
        if cotangent is not None:
            if watched:
                _nan.push(node, cotangent, pending, memo)
            else:
                node.plan.push(node, cotangent, pending, memo)
        if memo:
            memo.pop(node.id, None)
        if not retain_graph:
            node.plan, node.saved, node.parents = USED, (), ()
    return pending
