"""Where a replay parts from the function: the first program, and the op in it."""

from __future__ import annotations

from collections.abc import Sequence
from math import inf
from typing import Any, Final

from phlox_tensor import Backend, DType, Spec, finfo
from phlox_tensor.capture import Node, Number, Program, Value, lowered, values_of

from ._cluster import spans
from ._fused import Fused
from ._replay import folded, plan_of
from ._trace import Place, Ref, Trace

Array = Any  # of NumPy, which devices read into
# In units of epsilon of the largest value: drivers of GPUs choose how a kernel rounds.
_CONTRACTED: Final = 256


def alike(left: Array, right: Array, dtype: DType, device: Backend) -> bool:
    """Whether two arrays have equal bits; on devices that are not strict, nearly equal floats."""
    if left.tobytes() == right.tobytes():
        return True
    if device.strict or dtype.kind != "Float":
        return False
    mine, own = left.astype("float64"), right.astype("float64")
    finite = abs(own) < inf
    nan = ~(abs(mine) <= inf) & ~(abs(own) <= inf)
    if not (finite | nan | (mine == own)).all():
        return False
    largest = abs(own[finite]).max(initial=0.0)
    return bool((abs(mine[finite] - own[finite]) <= _CONTRACTED * finfo(dtype).eps * largest).all())


def fault(trace: Trace, leaves: Sequence[Any], opened: Sequence[Sequence[Any]]) -> str | None:
    """Return which program parts from its ops, and at which op; None where none does.

    Args:
        trace: the recorded run.
        leaves: those of the arguments, as a replay gets them.
        opened: those of the cells that it reads, in its order.
    """
    graph = trace.graph
    values, numbers = _given(trace, leaves, opened)
    nodes, constants = folded(graph)
    values |= constants
    for node in nodes:
        values.update(ran(node, values, numbers))
    for step in plan_of(graph).steps:
        if isinstance(step, Fused) and (found := parts_of(step, graph.specs, values, numbers)):
            return found
    return None


def _given(
    trace: Trace, leaves: Sequence[Any], opened: Sequence[Sequence[Any]]
) -> tuple[dict[int, Any], list[Any]]:
    """The values and numbers of a graph that are there before its ops run."""
    values: dict[int, Any] = {}
    known: dict[int, Any] = {}

    def take(refs: Sequence[Ref], found: Sequence[Any]) -> None:
        for ref, item in zip(refs, found, strict=True):
            if type(ref) is Value:
                values[ref.number] = item
            elif type(ref) is Number:
                known[ref.place] = item

    take(trace.arguments, leaves)
    places: list[Place] = [*trace.opened.values()]
    for place, found in zip(places, opened, strict=True):
        take(place.refs, found)
    numbers: list[Any] = []
    for at, (function, args) in enumerate(trace.graph.numbers):
        own = [numbers[a.place] if type(a) is Number else a for a in args]
        numbers.append(known[at] if function is None else function(*own))
    return values, numbers


def ran(node: Node, values: dict[int, Any], numbers: Sequence[Any]) -> dict[int, Any]:
    """What an op gives, by value."""

    def item(x: Any) -> Any:
        if type(x) is tuple and any(type(each) is Value for each in x):
            return tuple(map(item, x))
        if type(x) is Value:
            return values[x.number]
        return numbers[x.place] if type(x) is Number else x

    out = node.entry(*map(item, (*node.operands, *node.attributes)))
    return dict(zip(node.results, out if node.op.signature.several else (out,), strict=True))


def parts_of(
    step: Fused, specs: Sequence[Spec], values: dict[int, Any], numbers: Sequence[Any]
) -> str | None:
    """Where a program parts from its ops, given what the ops gave."""
    wanted, whole = step.lowered.results, step.lowered.program
    if _agrees(step.nodes, wanted, specs, values, numbers, whole):
        return None
    # The shortest program of its first ops that parts: the last of them is at fault.
    count = next(
        (
            at
            for at in range(1, len(step.nodes))
            if not _agrees(
                step.nodes[:at], step.nodes[at - 1].results, specs, values, numbers, whole
            )
        ),
        len(step.nodes),
    )
    node = step.nodes[count - 1]
    names = ", ".join(each.op.name for each in step.nodes)
    shapes = ", ".join(f"{specs[v].dtype.name}{[*specs[v].shape]}" for v in step.lowered.inputs)
    given = [numbers[n.place] if type(n) is Number else n for n in step.lowered.numbers]
    return (
        f"{node.op.name}, op {count} of a program of {len(step.nodes)} ({names}), at {node.line}\n"
        f"program = {step.lowered.program!r}\n"
        f"numbers = {given!r}  # arrays: {shapes}, on {node.device!r}"
    )


def _agrees(
    nodes: Sequence[Node],
    wanted: Sequence[int],
    specs: Sequence[Spec],
    values: dict[int, Any],
    numbers: Sequence[Any],
    whole: Program,
) -> bool:
    """Whether ops as one program give what they gave one by one; ``whole``: the program of all."""
    if any(node.op.source for node in nodes):
        made = {v for node in nodes for v in node.results}
        taken = [v for node in nodes for v in values_of(node) if v not in made]
        if not spans(taken, specs, specs[nodes[-1].results[0]].shape) or nodes[-1].op.source:
            return True  # the first ops by themselves do not tell how much to draw
    device = nodes[0].device
    parts = lowered(nodes, specs, wanted, whole.inner, whole.keepdims)
    kernel = device.kernel(parts.program)
    if kernel is None:
        return True
    given = [numbers[n.place] if type(n) is Number else n for n in parts.numbers]
    out = kernel(*[values[v] for v in parts.inputs], *given)
    return all(
        alike(device.read(a), device.read(values[v]), specs[v].dtype, device)
        for a, v in zip(out, parts.results, strict=True)
    )
