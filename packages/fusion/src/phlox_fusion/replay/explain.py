"""What a replay does and depends on, in words."""

from __future__ import annotations

from collections import Counter

from phlox_tensor.capture import Node, Number, Value, written

from ..plan.items import Batch, DeviceReplay, Fused, NativeRun, PlanItem, Products
from ..record.trace import Trace, has_history
from ..trees.layout import NumberPart, TensorPart
from ..versions.form import Form, ids_in
from .replay import Schedule, scheduled


def explained(trace: Trace, form: Form) -> str:
    """Return the report on one recorded run, and on the form of its arguments."""
    graph = trace.graph
    live = graph.live()
    tensors = sum(type(ref) is Value for ref in trace.arguments)
    numbers = sum(type(ref) is Number for ref in trace.arguments)
    lines = [
        f"arguments: {_count(tensors, 'tensor')}, {_count(numbers, 'number')}",
        f"captured: {_count(len(graph.constants), 'tensor')}, of which "
        f"{len(trace.copied)} from host data",
    ]
    lines += [
        f"holds for the ids of {many} {name}: another model is another version"
        for name, many in ids_in(form).items()
    ]
    for cell, place in trace.opened.items():
        held = ", ".join(
            _count(sum(isinstance(p, kind) for p in place.layout.leaves), word)
            for kind, word in ((TensorPart, "tensor"), (NumberPart, "number"))
        )
        left = "read and set" if cell in trace.left else "read"
        lines.append(f"cell: {held}, {left}")
    for guard in graph.guards:
        how = written(guard.function, guard.args)
        lines.append(f"holds while {how} is {guard.value!r}, asked at {guard.line}")
    joined = sum(map(has_history, trace.result.layout.leaves))
    if joined:
        lines.append(
            f"history: {_count(joined, 'result')} as one step; two halves when it is known"
        )
    dropped = len(graph.nodes) - len(live)
    lines.append(f"ops: {len(live)} to run, {dropped} left out since nobody needs them")
    lines += _steps(scheduled(graph), len(live))
    return "\n".join(lines)


def _steps(found: Schedule, count: int) -> list[str]:
    """What a replay calls."""
    plan = found.plan
    fused = [step for step in plan.steps if isinstance(step, Fused)]
    inside = sum(len(step.nodes) for step in fused)
    ahead = count - inside - len(plan.alone) - len(plan.finished)
    lines = [f"calls: {len(plan.steps)}, of which {_count(len(fused), 'program')} for {inside} ops"]
    if ahead:
        lines[0] += f"; {_count(ahead, 'op')} computed once, ahead of the calls"
    lines += filter(None, map(_joined, found.lines))
    for step in found.steps:
        if isinstance(step, Batch):
            lines.append(f"{_program(step.each[0])}; {len(step.each)} of them are one call")
        elif isinstance(step, Products):
            lines.append(_products(step))
        elif isinstance(step, Fused):
            lines.append(_program(step))
    alone = Counter((node.op.name, why) for node, why in plan.alone)
    lines += [f"  {many:4} {name}: {why}" for (name, why), many in alone.most_common()]
    finished = Counter(node.op.name for node in plan.finished)
    lines += [f"  {many:4} {name}: by the product before" for name, many in finished.items()]
    return lines


def _joined(line: PlanItem) -> str:
    """What a device does as one call; empty for a single step."""
    if isinstance(line, NativeRun):
        return f"  {len(line.steps)} calls are one: the device goes through them without Python"
    if isinstance(line, DeviceReplay):
        return f"  {len(line.steps)} calls are one: the device repeats what it ran before"
    return ""


def _program(step: Fused) -> str:
    names = ", ".join(node.op.name for node in step.nodes)
    program = step.lowered.program
    return (
        f"  program of {len(step.nodes)}: {names}; {_count(len(program.inputs), 'input')}, "
        f"{_count(len(program.outputs), 'output')}, from {step.nodes[0].line}"
    )


def _products(step: Products) -> str:
    nodes: list[Node] = []
    for one in step.steps:
        nodes += one.nodes if isinstance(one, Fused) else (one,)
    names = ", ".join(node.op.name for node in nodes)
    return f"  products of few rows in one kernel: {names}, from {nodes[0].line}"


def _count(number: int, word: str) -> str:
    return f"{number} {word}{'' if number == 1 else 's'}"
