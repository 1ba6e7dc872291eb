"""The lines of a replay that run ops, and runs of ops that a device repeats as one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from itertools import groupby, pairwise
from math import prod
from typing import Any, Final

from phlox_tensor import Backend, Spec
from phlox_tensor.capture import Call, CallSequence, Number, Run, Value

from ..plan.items import (
    Batch,
    DeviceReplay,
    Fused,
    NativeRun,
    PlanItem,
    Products,
    Single,
    gives,
    last_uses,
    taken,
    takes,
)
from ..record.cells import Owner
from ..source import Source

_MOST_REPEATED: Final = 2**25  # bytes of results: of larger ones the device has enough to do


def named(source: Source, ref: Any, constants: Mapping[int, Any]) -> str:
    """Return what stands for a value, a number or something that is always the same."""
    if type(ref) is Value:
        if ref.number in constants:
            return source.constant(constants[ref.number])
        return f"v{ref.number}"
    if type(ref) is Owner:
        return f"o{ref.number}"
    return f"n{ref.place}" if type(ref) is Number else source.constant(ref)


def write_steps(
    source: Source, steps: Sequence[PlanItem], kept: set[int], constants: Mapping[int, Any]
) -> None:
    """Add a line for each step; values that are not kept go with their last use."""
    last = last_uses(steps)
    for place, step in enumerate(steps):
        _write(source, step, constants)
        done = {*takes(step), *gives(step)} - kept
        if isinstance(step, NativeRun):
            done.difference_update(step.ended)
        gone = [f"v{v}" for v in sorted(done) if last[v] == place]
        if gone:
            source.line(f"del {', '.join(gone)}")


def _write(source: Source, step: PlanItem, constants: Mapping[int, Any]) -> None:
    if not isinstance(step, NativeRun):
        source.line(_text(source, step, constants))
        return
    for each in step.steps:
        source.line(f"# {_text(source, each, constants)}")
    given, run = source.name("g"), source.constant(step.run, "sequence")
    source.line(f"{given} = [{', '.join(f'v{v}' for v in step.inputs)}]")
    if step.ended:
        source.line(f"del {', '.join(f'v{v}' for v in step.ended)}")
    numbers = "".join(f"n{number.place}, " for number in step.numbers)
    results = "".join(f"v{v}, " for v in step.results)
    source.line(f"{f'{results}= ' if results else ''}{run}({given}, ({numbers}))")


def _text(source: Source, step: Single | DeviceReplay, constants: Mapping[int, Any]) -> str:
    """The line of one step."""
    given: tuple[Any, ...]
    if isinstance(step, DeviceReplay):
        given = (tuple(map(Value, step.inputs)),)
        entry, several = source.constant(step.run, "repeated"), True
    elif isinstance(step, Batch):
        given = (_Calls(each.args for each in step.each),)
        entry, several = source.constant(step.over, "kernel"), True
    elif isinstance(step, Fused | Products):
        given = step.args
        entry, several = source.constant(step.kernel, "kernel"), True
    else:
        given = (*step.operands, *step.attributes)
        entry, several = source.constant(step.entry, step.op.name), step.op.signature.several
    results = ", ".join(f"v{v}" for v in gives(step))
    operands = ", ".join(_operand(source, item, constants) for item in given)
    into = f"{results}{',' if several else ''} = " if results else ""  # some run only to be checked
    return f"{into}{entry}({operands})"


class _Calls(list[Any]):
    """The arguments of several calls, which are one."""


def _operand(source: Source, item: Any, constants: Mapping[int, Any]) -> str:
    if type(item) is _Calls:
        return f"[{', '.join(_operand(source, call, constants) for call in item)}]"
    if type(item) is tuple and any(type(x) is Value for x in item):
        return f"({''.join(f'{named(source, x, constants)}, ' for x in item)})"
    return named(source, item, constants)


def lines_of(
    steps: Sequence[Single], specs: Sequence[Spec], kept: set[int], constants: Mapping[int, Any]
) -> list[PlanItem]:
    """Return the steps, those that a device does as one together; values that stay are ``kept``."""
    lines = with_repeated(steps, specs, kept, constants)
    return with_sequences(lines, specs, kept, constants)


def with_repeated(
    steps: Sequence[Single], specs: Sequence[Spec], kept: set[int], constants: Mapping[int, Any]
) -> list[PlanItem]:
    """Return the steps, those that follow each other on a device that repeats them as one."""
    last = last_uses(steps)
    lines: list[PlanItem] = []
    start = 0
    while start < len(steps):
        device, end = _device(steps[start]), start
        nbytes = 0
        while end < len(steps) and _device(steps[end]) is device and not _numbers(steps[end]):
            nbytes += sum(specs[v].nbytes for v in gives(steps[end]))
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
    device: Backend, steps: Sequence[Single], wanted: set[int], constants: Mapping[int, Any]
) -> DeviceReplay | None:
    inputs = taken(steps, constants)
    results = tuple(v for v in sorted({v for s in steps for v in gives(s)}) if v in wanted)
    run = device.repeated(partial(_function, steps, inputs, results, constants))
    return None if run is None else DeviceReplay((*steps,), inputs, results, run)


def _function(
    steps: Sequence[Single],
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


def _device(step: Single) -> Backend:
    if isinstance(step, Batch):
        return _device(step.each[0])
    if isinstance(step, Products):
        return _device(step.steps[0])
    return step.nodes[0].device if isinstance(step, Fused) else step.device


def with_sequences(
    lines: Sequence[PlanItem], specs: Sequence[Spec], kept: set[int], constants: Mapping[int, Any]
) -> list[PlanItem]:
    """Return the lines, those that follow each other on a device that takes several as one."""
    last = last_uses(lines)
    found: list[PlanItem] = []

    def as_one(start: int, group: Sequence[Any]) -> Sequence[PlanItem]:
        own = range(start, start + len(group))
        going = {v: at - start for v, at in last.items() if at in own and v not in kept}
        made = _sequenced(group, going, specs, constants) if len(group) > 1 else None
        return group if made is None else [made]

    start = 0
    for device, some in groupby(lines, _apart):
        group = [*some]
        made = as_one(start, group) if device else group
        if device and len(made) > 1:  # around those that the device does not take
            apart = [at for at, step in enumerate(group) if not _runs(step, constants)]
            cuts = pairwise([0, *(cut for at in apart for cut in (at, at + 1)), len(group)])
            made = [item for at, end in cuts for item in as_one(start + at, group[at:end])]
        found += made
        start += len(group)
    return found


def _apart(step: PlanItem) -> int:
    """Which device runs a step; 0 where it is several already."""
    return 0 if isinstance(step, DeviceReplay | NativeRun) else id(_device(step))


def _runs(step: Any, constants: Mapping[int, Any]) -> bool:
    """Whether its device takes such a step into a sequence."""
    given = tuple(v for v in dict.fromkeys(takes(step)) if v not in constants)
    places = tuple(number.place for number in _numbers(step))
    call = _call(step, constants, ())
    sequence = CallSequence(given, places, (call,), call.results, 0)
    return _device(step).sequence(sequence) is not None


def _sequenced(
    steps: Sequence[Single],
    going: Mapping[int, int],
    specs: Sequence[Spec],
    constants: Mapping[int, Any],
) -> NativeRun | None:
    """Steps as one call; ``going`` says at which of them values end."""
    calls = []
    for at, step in enumerate(steps):
        own = dict.fromkeys((*takes(step), *gives(step)))
        ended = tuple(v for v in own if going.get(v) == at and v not in constants)
        calls.append(_call(step, constants, ended))
    made = {v for step in steps for v in gives(step)}
    inputs = taken(steps, constants)
    numbers = {number.place: number for step in steps for number in _numbers(step)}
    results = tuple(v for v in sorted(made) if v not in going)
    used = [v for step in steps for v in (*takes(step), *gives(step))]
    work = sum(prod(specs[v].shape) for v in used)
    run = _device(steps[0]).sequence(CallSequence(inputs, (*numbers,), (*calls,), results, work))
    if run is None:
        return None
    ended = tuple(v for v in inputs if v in going)
    return NativeRun((*steps,), inputs, ended, (*numbers.values(),), results, run)


def _call(step: Single, constants: Mapping[int, Any], ended: tuple[int, ...]) -> Call:
    function, each = _called(step)
    filled = tuple(tuple(_filled(item, constants) for item in args) for args in each)
    return Call(function, filled, (*gives(step),), ended)


def _called(step: Single) -> tuple[Any, tuple[tuple[Any, ...], ...]]:
    """What runs a step, and the arguments of each call of it."""
    if isinstance(step, Batch):
        return step.each[0].kernel, tuple(one.args for one in step.each)
    if isinstance(step, Fused | Products):
        return step.kernel, (step.args,)
    return step.entry, ((*step.operands, *step.attributes),)


def _filled(item: Any, constants: Mapping[int, Any]) -> Any:
    """An argument, with the primitive itself for what is always the same."""
    if type(item) is tuple and any(type(part) is Value for part in item):
        return tuple(_filled(part, constants) for part in item)
    if type(item) is Value and item.number in constants:
        return constants[item.number]
    return item


def _numbers(step: Single) -> list[Number]:
    """The numbers that a step takes, each of them once."""
    given = [item for args in _called(step)[1] for item in args]
    return [*{item.place: item for item in given if type(item) is Number}.values()]
