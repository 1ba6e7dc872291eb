"""What two recorded runs of a function have to agree in."""

from __future__ import annotations

from types import MethodType
from typing import Any

from phlox_tensor.capture import Number, Value, error_of, same, shown

from ..trees.static import same_static
from .trace import Trace


def difference(a: Trace, b: Trace) -> str | None:
    """Return how two runs differ in more than their inputs; None where they agree."""
    for left, right in zip(a.graph.nodes, b.graph.nodes, strict=False):
        what = (left.op, left.device, left.results) == (right.op, right.device, right.results)
        if not what or not same_refs(left.operands, right.operands):
            return (
                f"{_call(left)} at {left.line} in the first run, "
                f"{_call(right)} at {right.line} in the second"
            )
        if not same_refs(left.attributes, right.attributes):
            return (
                f"{left.op.name} at {left.line} got {shown(left.attributes)} in the first run, "
                f"{shown(right.attributes)} in the second"
            )
    if len(a.graph.nodes) != len(b.graph.nodes):
        longer = max(a.graph.nodes, b.graph.nodes, key=len)
        extra = longer[min(len(a.graph.nodes), len(b.graph.nodes))]
        return f"{extra.op.name} at {extra.line} ran in one run only"
    return _other_captures(a, b) or _other_numbers(a, b) or _other_places(a, b)


def _call(node: Any) -> str:
    return f"{node.op.name}{shown(node.operands)}"


def _other_captures(a: Trace, b: Trace) -> str | None:
    left, right = a.graph.constants, b.graph.constants
    if left.keys() != right.keys() or a.graph.inputs != b.graph.inputs:
        return "the function took other tensors from outside in the second run"
    for value, primitive in left.items():
        if value in a.copied and value in b.copied:
            if a.copied[value][0] != b.copied[value][0]:
                return f"host data at {a.copied[value][1]} was other data in the second run"
        elif primitive is not right[value]:
            spec = a.graph.specs[value]
            lines = [n.line for n in a.graph.nodes if Value(value) in n.operands]
            used = f", used at {lines[0]}" if lines else ""
            return f"a tensor of shape {spec.shape} from outside was another one{used}"
    return None


def _other_numbers(a: Trace, b: Trace) -> str | None:
    if not same_refs(a.graph.numbers, b.graph.numbers):
        return "numbers came about in another way"
    for left, right in zip(a.graph.guards, b.graph.guards, strict=False):
        if not same_refs(left[:3], right[:3]):
            return f"the program went on in another way at {left.line}"
    return None if len(a.graph.guards) == len(b.graph.guards) else "more was asked of numbers"


def _other_places(a: Trace, b: Trace) -> str | None:
    if a.opened.keys() != b.opened.keys() or a.left.keys() != b.left.keys():
        return "other cells were read or set"
    pairs = [(a.result, b.result)]
    pairs += [(a.opened[c], b.opened[c]) for c in a.opened]
    pairs += [(a.left[c], b.left[c]) for c in a.left]
    for left, right in pairs:
        if left.layout is not right.layout or not same_refs(left.refs, right.refs):
            return "results or state had another form, or came about in another way"
    return None


def same_refs(a: Any, b: Any) -> bool:
    """Whether two lists of operands, attributes or refs are one, numbers by their place."""
    if type(a) is not type(b):
        return False
    if isinstance(a, tuple):
        return len(a) == len(b) and all(map(same_refs, a, b))
    if type(a) is Number:
        return bool(a.place == b.place)
    if isinstance(a, MethodType):  # of an argument, for which another call has an equal object
        return a.__func__ is b.__func__ and same_static(a.__self__, b.__self__)
    if isinstance(a, int | float):
        return same(a, b)
    return bool(a is b or a == b)


def fits(first: Trace, second: Trace) -> bool:
    """Whether two runs went the same way as far as numbers and cells decide it.

    Where they do not, the second one is a version of its own.
    """
    if [*first.opened] == [*second.opened]:
        for cell, place in first.opened.items():
            if place.layout is not second.opened[cell].layout:
                return False
    for left, right in zip(first.graph.guards, second.graph.guards, strict=False):
        if left.function is right.function and not same_refs(left.value, right.value):
            return False
    return same_refs(*(_errors(trace) for trace in (first, second)))


def _errors(trace: Trace) -> tuple[Any, ...]:
    """The errors of numbers that a run went on after: one that has none asked for none."""
    return tuple([(*g.args, g.value) for g in trace.graph.guards if g.function is error_of])
