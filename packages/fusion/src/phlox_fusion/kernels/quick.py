"""A kernel's short path: one look at each argument tells that a call is like the last one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from phlox_tensor import DType, Rejected
from phlox_tensor.capture import MODES, RECORDINGS, Direct, Number, registry_mark

from ..record.watch import Watch, write
from ..replay.replay import MISS
from ..source import Source

# What a kernel gives for arguments; ``MISS`` where its formula has to look at them.
Quick = Callable[[tuple[Any, ...]], Any]


def quick_of(direct: Direct, outside: Sequence[Watch]) -> Quick:
    """Return what runs calls of one form, shapes and numbers aside."""
    source = Source()
    miss = f"return {source.held(MISS, 'MISS')}"
    modes, recordings = source.held(MODES, "modes"), source.held(RECORDINGS, "recordings")
    device = source.held(direct.device, "device")
    source.line(f"if {modes}.entered or {recordings}.count: {miss}")
    source.line(f"if {device}.ops is not {source.held(direct.table, 'table')}: {miss}")
    source.line(f"if len(given) != {len(direct.form)}: {miss}")
    ops = source.held(registry_mark(), "ops")
    source.line(f"if {source.held(registry_mark, 'registry_mark')}() is not {ops}: {miss}")
    write(source, outside, miss)
    names = [f"a{place}" for place in range(len(direct.form))]
    source.line(f"{', '.join(names)}, = given")
    numbers: list[str] = []
    for name, form in zip(names, direct.form, strict=True):
        _look(source, name, form, device, miss, numbers)
    first = iter(numbers)
    for place, formula in enumerate(direct.numbers):
        if formula.function is None:
            source.line(f"n{place} = {next(first)}")
    source.numbers(direct.numbers, miss)
    given = [f"a{place}.primitive" for place in direct.inputs]
    given += [f"n{n.place}" if type(n) is Number else source.constant(n) for n in direct.given]
    source.line(f"try: out, = {source.held(direct.kernel, 'kernel')}({', '.join(given)})")
    source.line(f"except {source.held(Rejected, 'Rejected')}: {miss}")
    source.line(f"return {source.tensor(direct.device, 'out')}")
    return source.function("quick", "given")


def _look(source: Source, name: str, form: Any, device: str, miss: str, numbers: list[str]) -> None:
    """Add the lines for one argument."""
    if isinstance(form, DType):
        own = source.held(form, "dtype")
        source.line(f"if type({name}) is not Tensor or {name}.device is not {device}: {miss}")
        source.line(f"if {device}.dtype_of({name}.primitive) is not {own}: {miss}")
    elif form is float or form is int:
        source.line(f"if type({name}) is not {form.__name__}: {miss}")
        numbers.append(name)
    else:
        kind, value = form
        other = (
            f"type({name}) is not str or {name} != {value!r}"
            if kind is str
            else f"{name} is not {value!r}"
        )
        source.line(f"if {other}: {miss}")
