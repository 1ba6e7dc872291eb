"""Where a replay differs from the function: the first program that does, and the op in it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from phlox_tensor import Backend, DisagreementError
from phlox_tensor.capture import (
    Lowered,
    Node,
    Number,
    Program,
    Value,
    filled,
    lowered,
    same_bits,
    values_of,
)

from ..plan.cluster import spans
from ..plan.items import Fused, Known, run_steps
from ..record.trace import Place, Ref, Trace
from ..replay.replay import folded, plan_of

_MOST_SHOWN: Final = 64  # elements of an operand that are written out


def fault(trace: Trace, leaves: Sequence[Any], opened: Sequence[Sequence[Any]]) -> str | None:
    """Return which program parts from its ops, and at which op; None where none does.

    Args:
        trace: the recorded run.
        leaves: those of the arguments, as a replay gets them.
        opened: those of the cells that it reads, in its order.
    """
    known = _given(trace, leaves, opened)
    nodes, constants = folded(trace.graph)
    known.values.update(constants)
    run_steps(nodes, known)
    for step in plan_of(trace.graph).steps:
        if isinstance(step, Fused) and (found := parting(step, known)):
            return found
    return None


def _given(trace: Trace, leaves: Sequence[Any], opened: Sequence[Sequence[Any]]) -> Known:
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
        own = [filled(a, values, numbers) for a in args]
        numbers.append(known[at] if function is None else function(*own))
    return Known(values, trace.graph.specs, numbers)


def parting(step: Fused, known: Known) -> str | None:
    """Where a program parts from its ops, and what it ran on; None where it does not."""
    wanted, whole = step.lowered.results, step.lowered.program
    if _agrees(step.nodes, wanted, known, whole):
        return None
    # The shortest program of its first ops that parts: the last of them is at fault.
    count, parts = len(step.nodes), step.lowered
    for at in range(1, len(step.nodes)):
        results = step.nodes[at - 1].results
        if not _agrees(step.nodes[:at], results, known, whole):
            count = at
            parts = lowered(step.nodes[:at], known.specs, results, whole.inner, whole.keepdims)
            break
    node = step.nodes[count - 1]
    names = ", ".join(each.op.name for each in step.nodes)
    operands, given = _given_to(parts, known)
    return (
        f"{node.op.name}, op {count} of a program of {len(step.nodes)} ({names}), at {node.line}\n"
        f"{parts.program!r}\n"
        + "".join(_shown(node.device, operand) for operand in operands)
        + f"numbers {given}\n"
    )


def _shown(device: Backend, operand: Any) -> str:
    """A line for an operand of a program: type, shape, strides, values."""
    array = device.read(operand)
    values = np.array2string(array, threshold=_MOST_SHOWN, separator=", ", floatmode="unique")
    how = f"{device.dtype_of(operand).name} {array.shape}, strides {device.strides_of(operand)}"
    return f"{how}: {' '.join(values.split())}\n"


def program_parts(op: str, what: str, found: str) -> DisagreementError:
    """The error where a program is at fault; ``found`` says which, and what it ran on."""
    return DisagreementError(
        op,
        what,
        got=found,
        expected="the bits of its ops",
        hint="phlox_tensor.testing.assert_program(program, operands, numbers)",
    )


def _given_to(parts: Lowered, known: Known) -> tuple[list[Any], list[Any]]:
    """The operands and numbers of a kernel."""
    given = [filled(n, known.values, known.numbers) for n in parts.numbers]
    return [known.values[v] for v in parts.inputs], given


def _agrees(nodes: Sequence[Node], wanted: Sequence[int], known: Known, whole: Program) -> bool:
    """Whether ops as one program give what they gave one by one; ``whole``: the program of all."""
    values, specs, _ = known
    if any(node.op.traits.source for node in nodes):
        made = {v for node in nodes for v in node.results}
        taken = [v for node in nodes for v in values_of(node) if v not in made]
        if not spans(taken, specs, specs[nodes[-1].results[0]].shape) or nodes[-1].op.traits.source:
            return True  # the first ops by themselves do not tell how much to draw
    device = nodes[0].device
    parts = lowered(nodes, specs, wanted, whole.inner, whole.keepdims)
    kernel = device.kernel(parts.program)
    if kernel is None:
        return True
    operands, given = _given_to(parts, known)
    return all(
        same_bits(device.read(a), device.read(values[v]), specs[v].dtype, device)
        for a, v in zip(kernel(*operands, *given), parts.results, strict=True)
    )
