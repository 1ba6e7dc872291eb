"""Steps of plans: an op, or what replaces some ops; and the values that steps take and give."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from phlox_tensor import Spec
from phlox_tensor.capture import (
    Kernel,
    Lowered,
    Node,
    Number,
    RowProduct,
    Run,
    SequenceRun,
    Value,
    filled,
    values_of,
)


class Fused(NamedTuple):
    """A program in the place of the ops that it does."""

    nodes: tuple[Node, ...]
    lowered: Lowered
    kernel: Kernel

    @property
    def args(self) -> tuple[Any, ...]:
        """What the kernel is called with: values as ``Value``, and numbers."""
        return (*map(Value, self.lowered.inputs), *self.lowered.numbers)


Step = Node | Fused


class Products(NamedTuple):
    """Products of few rows, with what is before and after them, in the place of their steps."""

    steps: tuple[Step, ...]
    product: RowProduct
    args: tuple[Any, ...]
    results: tuple[int, ...]
    kernel: Kernel

    @property
    def inputs(self) -> tuple[int, ...]:
        """The values that it takes."""
        return tuple(item.number for item in self.args if type(item) is Value)


class Batch(NamedTuple):
    """Equal programs of which none takes what another one gives: one call of a kernel."""

    each: tuple[Fused, ...]
    over: Callable[[list[tuple[Any, ...]]], tuple[Any, ...]]


Single = Step | Batch | Products


class DeviceReplay(NamedTuple):
    """Steps without numbers of their own, which a device repeats."""

    steps: tuple[Single, ...]
    inputs: tuple[int, ...]
    results: tuple[int, ...]
    run: Run


class NativeRun(NamedTuple):
    """Steps that a device runs as one call, which lets go of ``ended`` on its way."""

    steps: tuple[Single, ...]
    inputs: tuple[int, ...]
    ended: tuple[int, ...]
    numbers: tuple[Number, ...]
    results: tuple[int, ...]
    run: SequenceRun


PlanItem = Single | DeviceReplay | NativeRun


def takes(step: PlanItem) -> Sequence[int]:
    """Return the values that a step takes."""
    if isinstance(step, Batch):
        return [value for each in step.each for value in takes(each)]
    if isinstance(step, DeviceReplay | NativeRun | Products):
        return step.inputs
    return step.lowered.inputs if isinstance(step, Fused) else values_of(step)


def gives(step: PlanItem) -> Sequence[int]:
    """Return the values that a step gives."""
    if isinstance(step, Batch):
        return [value for each in step.each for value in gives(each)]
    return step.lowered.results if isinstance(step, Fused) else step.results


def taken(steps: Sequence[PlanItem], constants: Mapping[int, Any]) -> tuple[int, ...]:
    """Return the values that steps take and none of them gives, without constants."""
    made = {value for step in steps for value in gives(step)} | constants.keys()
    own = dict.fromkeys(value for step in steps for value in takes(step))
    return tuple(value for value in own if value not in made)


class Known(NamedTuple):
    """Values of a graph that are there, what all of them are, and what its numbers stand for."""

    values: dict[int, Any]
    specs: Sequence[Spec]
    numbers: Sequence[Any]


def run_steps(steps: Sequence[Step], known: Known) -> None:
    """Run steps on values, and add what they give."""
    values, _, numbers = known
    for step in steps:
        if isinstance(step, Fused):
            out = step.kernel(*[filled(x, values, numbers) for x in step.args])
        else:
            given = [filled(x, values, numbers) for x in (*step.operands, *step.attributes)]
            out = step.entry(*given)
            out = out if step.op.signature.several else (out,)
        values.update(zip(gives(step), out, strict=True))


def last_uses(steps: Sequence[PlanItem]) -> dict[int, int]:
    """Return for each value at which step it is taken last, or given where none takes it."""
    return {v: place for place, step in enumerate(steps) for v in (*takes(step), *gives(step))}
