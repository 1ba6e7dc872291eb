"""Sequences of calls as plans of the native module."""

from __future__ import annotations

from typing import Any

from phlox_kernels import _native
from phlox_tensor.capture import CallSequence, Number, Value


def plan_of(sequence: CallSequence, names: dict[Any, str]) -> _native._Plan | None:
    """Return a plan that does a sequence; None where one of the calls is no native one.

    Args:
        sequence: the calls.
        names: of the native functions that are ops.
    """
    slots = {value: place for place, value in enumerate(sequence.inputs)}
    given = {number: place for place, number in enumerate(sequence.numbers)}

    def argument(item: Any) -> Any:
        if type(item) is Value:
            return _native._Slot(slots[item.number])
        if type(item) is Number:
            return _native._Given(given[item.place])
        if type(item) is tuple and any(type(part) is Value for part in item):
            return tuple(map(argument, item))
        return item

    lines: list[tuple[_native._Step, tuple[int, ...], tuple[int, ...]]] = []
    free: list[int] = []
    count = len(slots)
    for call in sequence.calls:
        each = [tuple(map(argument, args)) for args in call.each]
        step = _native._step(names.get(call.function, call.function), each)
        if step is None:
            return None
        for value in call.results:
            if free:
                slots[value] = free.pop()
            else:
                slots[value], count = count, count + 1
        gives = tuple(slots[value] for value in call.results)
        ends = tuple(slots[value] for value in call.ended)
        free += ends
        lines.append((step, gives, ends))
    return _native._Plan(lines, count, tuple(slots[v] for v in sequence.results), sequence.work)
