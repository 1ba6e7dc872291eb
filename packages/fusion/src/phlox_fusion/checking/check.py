"""Check mode compares a function with its replay, bit for bit where the device is strict."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any, NamedTuple

from phlox_tensor import DisagreementError
from phlox_tensor.capture import Cell, Packed, same, same_bits

from ..record.cells import cells_of, packed
from ..record.trace import Run, Trace
from ..replay.replay import MISS, Replay, undo_all
from ..trees.layout import Layout, TensorPart, flatten
from ..versions.form import other_form
from .bisect import fault, program_parts
from .fallback import Fallbacks


def compared(
    function: Callable[..., Any],
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    trace: Trace,
    replay: Replay,
    leaves: list[Any],
) -> Any:
    """Return what a replay gives, compared with what the function gives from the same state."""
    cells = cells_of({**trace.opened, **trace.left}, trace.arguments, leaves)
    with _locked(cells):
        undo: list[Any] = []
        try:
            found = outcome_of(replay, leaves, undo, trace)
        except Exception as error:
            undo_all(undo)
            expected = function(*args, **kwargs)  # may raise from the line at fault, as unchecked
            fallbacks = Fallbacks("compile")
            if fallbacks.may_be_caught(error):
                return expected
            raise fallbacks.disagreement(error) from error
        if found.out is MISS:
            return MISS
        for cell, content in found.before.items():
            cell.pack(content)
        expected = function(*args, **kwargs)
        try:
            agree("the result", in_parts(found.out), in_parts(expected), trace)
            for cell, mine in found.after.items():
                agree(f"what it leaves in {_name(cell)}", mine, packed(cell), trace)
        except DisagreementError as error:
            opened = cells_of(trace.opened, trace.arguments, leaves)
            parted = fault(trace, leaves, [found.before[cell].leaves for cell in opened])
            if parted is None:
                raise
            what = f"{error.what}: a program differs from its ops"
            raise program_parts("compile", what, parted) from error
        return found.out


@contextmanager
def _locked(cells: Sequence[Cell[Any]]) -> Iterator[None]:
    """While no other thread sets cells, taken in the order in which recorded runs take them."""
    with ExitStack() as held:
        for cell in cells:
            held.enter_context(cell.lock)
        yield


class Outcome(NamedTuple):
    """What one replay gave.

    Attributes:
        before: what the cells held that it may read or set.
        after: what it left in them.
    """

    out: Any
    before: dict[Cell[Any], Packed]
    after: dict[Cell[Any], Packed]


def outcome_of(replay: Replay, leaves: list[Any], undo: list[Any], trace: Trace) -> Outcome:
    """Run a replay while no other thread sets its cells."""
    cells = cells_of({**trace.opened, **trace.left}, trace.arguments, leaves)
    with _locked(cells):
        before = {cell: packed(cell) for cell in cells}
        out = replay(leaves, undo)
        return Outcome(out, before, {cell: packed(cell) for cell in cells})


def agree_on_a_run(found: Outcome, mine: Packed, run: Run, trace: Trace) -> None:
    """Compare the result of a replay, and what it left in cells, with a recorded run."""
    agree("the result", mine, run.trace.result.layout.pack(run.leaves), trace)
    for cell in {**found.after, **run.left}:
        own = run.left.get(cell) or found.before[cell]
        if cell not in found.after:
            raise _parted(f"what it leaves in {_name(cell)}", "nothing", trace)
        agree(f"what it leaves in {_name(cell)}", found.after[cell], own, trace)


def _name(cell: Cell[Any]) -> str:
    return f"a cell that holds {type(cell.current()).__name__}"


def in_parts(value: Any) -> Packed:
    """Return a tree in parts."""
    layout, leaves, _ = flatten(value, "the result")
    return layout.pack(leaves)


def agree(what: str, mine: Packed, own: Packed, trace: Trace) -> None:
    """Compare what a replay gives with what the function gives."""
    layout: Layout = own.layout
    if mine.layout is not layout:
        raise _parted(what, other_form(mine.layout, layout), trace)
    for place, part in enumerate(layout.leaves):
        a, b = mine.leaves[place], own.leaves[place]
        if isinstance(part, TensorPart):
            device = part.levels[-1][0]
            left, right = device.read(a), device.read(b)
            if same_bits(left, right, part.spec.dtype, device):
                continue
            raise _parted(what, f"tensor {place} of shape {part.spec.shape}", trace)
        if not same(a, b):
            raise _parted(what, f"number {place}: {a} and {b}", trace)


def _parted(what: str, got: str, trace: Trace) -> DisagreementError:
    return DisagreementError(
        "compile",
        f"a replay and the function differ in {what}",
        got=got,
        expected="equal bits",
        hint="side effects, or data that changed outside of the function; its ops were:\n"
        + str(trace.graph),
    )
