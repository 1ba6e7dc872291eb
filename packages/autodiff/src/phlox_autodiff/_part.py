"""Compiled functions as nodes of a graph: one step forward, one step back."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, final

from phlox_tensor import Backend, GradientError, Pull, Tensor

from . import _backward
from ._checkpoint_strategies import Memo
from ._graph import LEAF, Node, Pending, Plan, Primitive, accumulate, make_node, ports, primitive
from ._propose import NO_PROPOSALS, PROPOSED, Proposals


@final
class _Part(Plan):
    """The plan of one part; what its nodes keep is the operands, and what carries cotangents."""

    __slots__ = ("_device", "name")

    def __init__(self, name: str, device: Backend) -> None:
        self.name = name
        self._device: Final = device

    def push(self, node: Node, cotangent: Any, pending: Pending, memo: Memo | None) -> None:
        """Ask for the cotangents of all operands; those of constants are proposals."""
        operands: tuple[Primitive, ...]
        operands, pull = node.saved
        given = cotangent if isinstance(cotangent, list) else [cotangent]
        for operand, parts in zip(operands, pull(given, memo is not None), strict=True):
            if operand.node is None:
                if parts:
                    pending.setdefault(PROPOSED, Proposals()).add(operand, *parts)
                continue
            for part in parts:
                accumulate(pending, operand.node, part)

    def kept(self, node: Node) -> Iterator[tuple[str, Any]]:
        """The operands, and what the part itself says that it holds."""
        operands, pull = node.saved
        for operand in operands:
            yield "operand", Tensor(operand, self._device)
        for tensor in getattr(pull, "kept", tuple)():
            yield "saved", tensor


def as_one_step(
    device: Backend, name: str, operands: Sequence[Primitive], values: Sequence[Any], pull: Pull
) -> tuple[Primitive, ...]:
    """Return values of the inner device as the results of one step; see ``Backend``."""
    shapes = [device.shape_of(primitive(value)) for value in values]
    parents = [operand.node for operand in operands]
    step = make_node(_Part(name, device), parents, (tuple(operands), pull), shapes[0])
    if len(values) == 1:
        return (primitive(values[0], step),)
    return ports(step, values, shapes, [True] * len(values))


def pull_back(
    device: Backend,
    results: Sequence[Tensor[Any]],
    cotangents: Sequence[Tensor[Any] | None],
    operands: Sequence[Primitive],
) -> list[tuple[Tensor[Any], ...]]:
    """Carry cotangents of results back to operands; see ``Backend``.

    Raises:
        GradientError: when a result depends on a tracked tensor that is no operand.
    """
    own = {operand.node for operand in operands if operand.node is not None}
    after = max((node.id for node in own), default=-1)
    pending: Pending = {}
    for result, cotangent in zip(results, cotangents, strict=True):
        node = result.primitive.node
        if cotangent is None or node is None:
            continue
        lanes = cotangent.device is not device.inner
        seed = cotangent if lanes else _backward.start(device, result, cotangent)
        if node in own or node.plan is LEAF or node.id > after:
            accumulate(pending, node, seed)
        else:
            raise _from_outside(device)
    found = _backward.run(pending, retain_graph=False, after=after)
    proposals = found.pop(PROPOSED, NO_PROPOSALS)
    refuse_retained(found, after, "the compiled function is replayed", "the compiled function")
    if not found.keys() <= own:
        raise _from_outside(device)
    return [_of(operand, found, proposals) for operand in operands]


def refuse_retained(found: Mapping[Node, Any], first: int, what: str, of: str) -> None:
    """Refuse gradients that were requested inside of what keeps no graph.

    Args:
        found: by node, what a way back left.
        first: nodes with larger ids are inside.
        what: happens, so that no tensor is left.
        of: what takes or gives tensors whose gradients may be requested.
    """
    if any(node.id > first and node.plan is not LEAF for node in found):
        raise GradientError(
            "retain_grad",
            f"{what}, so that no tensor inside of it stays",
            hint=f"retain_grad() of what {of} takes or gives",
        )


def _of(operand: Primitive, found: Pending, proposals: Proposals) -> tuple[Tensor[Any], ...]:
    if operand.node is None:
        return proposals.of(operand)
    gradient = found.get(operand.node)
    return () if gradient is None else (gradient,)


def _from_outside(device: Backend) -> GradientError:
    return GradientError(
        "compile",
        "the result depends on a tracked tensor that is no argument of the compiled function",
        got=f"a tensor on {device!r} that the function closes over",
        expected="tracked tensors and models as arguments",
        hint="fast = px.compile(lambda model, x: model(x)); fast(model, x)",
    )
