"""What a replay does and depends on, in words."""

from __future__ import annotations

from collections import Counter

from phlox_tensor.capture import Number, Value, written

from ._layout import NumberPart, TensorPart
from ._trace import Trace


def explained(trace: Trace) -> str:
    """Return the report on one recorded run."""
    graph = trace.graph
    live = graph.live()
    tensors = sum(type(ref) is Value for ref in trace.arguments)
    numbers = sum(type(ref) is Number for ref in trace.arguments)
    lines = [
        f"arguments: {_count(tensors, 'tensor')}, {_count(numbers, 'number')}",
        f"captured: {_count(len(graph.constants), 'tensor')}, of which "
        f"{len(trace.copied)} from host data",
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
    dropped = len(graph.nodes) - len(live)
    lines.append(f"ops: {len(live)} calls in a row, {dropped} left out since nobody needs them")
    counts = Counter(node.op.name for node in live)
    lines += [f"  {count:4} {name}" for name, count in counts.most_common()]
    return "\n".join(lines)


def _count(number: int, word: str) -> str:
    return f"{number} {word}{'' if number == 1 else 's'}"
