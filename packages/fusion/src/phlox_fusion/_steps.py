"""The lines of a replay that run ops, and ops that a device repeats as one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from math import prod
from typing import Any, Final, NamedTuple

from phlox_tensor import Backend, Spec
from phlox_tensor.capture import Number, Run, Value

from ._layout import Source
from ._plan import Fused, Step, Together, gives, takes

_MOST_REPEATED: Final = 2**25  # bytes of results: of larger ones the device has enough to do


class Repeated(NamedTuple):
    """Steps without numbers of their own, which a device repeats."""

    inputs: tuple[int, ...]
    results: tuple[int, ...]
    run: Run


Call = Step | Together
Line = Call | Repeated


def named(source: Source, ref: Any, constants: Mapping[int, Any]) -> str:
    """Return what stands for a value, a number or something that is always the same."""
    if type(ref) is Value:
        if ref.number in constants:
            return source.constant(constants[ref.number])
        return f"v{ref.number}"
    return f"n{ref.place}" if type(ref) is Number else source.constant(ref)


def write_steps(
    source: Source, steps: Sequence[Line], kept: set[int], constants: Mapping[int, Any]
) -> None:
    """Add a line for each step; values that are not kept go with their last use."""
    last = _last_uses(steps)
    for place, step in enumerate(steps):
        _write(source, step, constants)
        done = {*_takes(step), *_gives(step)} - kept
        gone = [f"v{v}" for v in sorted(done) if last[v] == place]
        if gone:
            source.line(f"del {', '.join(gone)}")


def _write(source: Source, step: Line, constants: Mapping[int, Any]) -> None:
    given: tuple[Any, ...]
    if isinstance(step, Repeated):
        given = (tuple(map(Value, step.inputs)),)
        entry, several = source.constant(step.run, "repeated"), True
    elif isinstance(step, Together):
        given = (_Calls(map(_given, step.each)),)
        entry, several = source.constant(step.over, "kernel"), True
    elif isinstance(step, Fused):
        given = _given(step)
        entry, several = source.constant(step.kernel, "kernel"), True
    else:
        given = (*step.operands, *step.attributes)
        entry, several = source.constant(step.entry, step.op.name), step.op.signature.several
    results = ", ".join(f"v{v}" for v in _gives(step))
    operands = ", ".join(_operand(source, item, constants) for item in given)
    into = f"{results}{',' if several else ''} = " if results else ""  # some run only to be checked
    source.line(f"{into}{entry}({operands})")


class _Calls(list[Any]):
    """The arguments of several calls, which are one."""


def _given(step: Fused) -> tuple[Any, ...]:
    return (*map(Value, step.lowered.inputs), *step.lowered.numbers)


def _operand(source: Source, item: Any, constants: Mapping[int, Any]) -> str:
    if type(item) is _Calls:
        return f"[{', '.join(_operand(source, call, constants) for call in item)}]"
    if type(item) is tuple and any(type(x) is Value for x in item):
        return f"({''.join(f'{named(source, x, constants)}, ' for x in item)})"
    return named(source, item, constants)


def _takes(step: Line) -> Sequence[int]:
    return step.inputs if isinstance(step, Repeated) else takes(step)


def _gives(step: Line) -> Sequence[int]:
    return step.results if isinstance(step, Repeated) else gives(step)


def _last_uses(steps: Sequence[Line]) -> dict[int, int]:
    return {v: place for place, step in enumerate(steps) for v in (*_takes(step), *_gives(step))}


def with_repeated(
    steps: Sequence[Call], specs: Sequence[Spec], kept: set[int], constants: Mapping[int, Any]
) -> list[Line]:
    """Return the steps, those that follow each other on a device that repeats them as one."""
    last = _last_uses(steps)
    lines: list[Line] = []
    start = 0
    while start < len(steps):
        device, end = _device(steps[start]), start
        nbytes = 0
        while end < len(steps) and _device(steps[end]) is device and not _has_numbers(steps[end]):
            nbytes += sum(prod(specs[v].shape) * specs[v].dtype.itemsize for v in gives(steps[end]))
            if nbytes > _MOST_REPEATED:
                break
            end += 1
        group = steps[start : max(end, start + 1)]
        start += len(group)
        wanted = kept | {v for v, place in last.items() if place >= start}
        found = _repeated(device, group, wanted, constants) if len(group) > 1 else None
        lines += [found] if found else group
    return lines


def _repeated(
    device: Backend, steps: Sequence[Call], wanted: set[int], constants: Mapping[int, Any]
) -> Repeated | None:
    given = {v for step in steps for v in gives(step)}
    taken = dict.fromkeys(v for step in steps for v in takes(step))
    inputs = tuple(v for v in taken if v not in given and v not in constants)
    results = tuple(v for v in sorted(given) if v in wanted)
    run = device.repeated(partial(_function, steps, inputs, results, constants))
    return None if run is None else Repeated(inputs, results, run)


def _function(
    steps: Sequence[Call],
    inputs: tuple[int, ...],
    results: tuple[int, ...],
    constants: Mapping[int, Any],
) -> Run:
    """Return the function of some steps."""
    source = Source()
    if inputs:
        source.line(f"{', '.join(f'v{v}' for v in inputs)}, = operands")
    write_steps(source, steps, {*results, *constants}, constants)
    source.line(f"return ({''.join(f'v{v}, ' for v in results)})")
    return source.function("run", "operands")


def _device(step: Call) -> Backend:
    if isinstance(step, Together):
        return _device(step.each[0])
    return step.nodes[0].device if isinstance(step, Fused) else step.device


def _has_numbers(step: Call) -> bool:
    if isinstance(step, Together):
        return any(map(_has_numbers, step.each))
    if isinstance(step, Fused):
        return any(type(item) is Number for item in step.lowered.numbers)
    return any(type(item) is Number for item in (*step.operands, *step.attributes))
