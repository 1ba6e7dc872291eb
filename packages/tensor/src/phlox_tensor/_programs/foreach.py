"""One function of elements for many arguments, as one kernel that runs over all of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import Any, Final, NamedTuple, NoReturn

from .._call.dispatch import wrap
from .._device.backend import Backend, watched
from .._device.program import Kernel
from .._errors.classes import CompileError, Rejected
from .._recording.active import recorded
from .._recording.graph import needed
from .._recording.record import Recording, recording, refuse
from .._tree import walk as trees
from .._values.cell import Cell
from .._values.number import Number
from .._values.tensor import Tensor
from .limits import too_much
from .lowering import lowered
from .quick_tracing import Tape, Trial

_MOST_KEPT: Final = 256
_Path = tuple[Any, ...]


class _Plan(NamedTuple):
    """How what a trial did runs.

    Attributes:
        kernel: runs the program.
        inputs: which tensors of the arguments it takes.
        numbers: those that it takes, which are known by their place among those of the trial.
        outputs: the values that it gives.
    """

    kernel: Kernel
    inputs: tuple[int, ...]
    numbers: tuple[Any, ...]
    outputs: tuple[int, ...]


# Plans by device, types, what was done, and what is wanted; None where there is no kernel.
_PLANS: Final[dict[Any, _Plan | None]] = {}
_UNKNOWN: Final = object()


def run_together(function: Callable[..., Any], rows: Sequence[Any]) -> list[Any] | None:
    """Return what a function of elements gives for each of some arguments, computed by one kernel.

    The function is tried once, without data, for all rows: what it does to elements is the same for
    each, and has the bits that its ops one by one give. Whatever else it does, it does once.

    Args:
        function: of dicts, lists and tuples of tensors and plain values, to such.
        rows: the arguments, which differ in their tensors alone: same structure, same plain values,
            same element types. The tensors of a row have one shape.

    Returns:
        A result for each row; None where it depends on the place, not on the function: devices that
        are no base devices with programs, recordings, rows of tensors of several shapes, and too
        little to do for a kernel to take less time.

    Raises:
        CompileError: where the function does anything but elementwise ops: it asks for a shape,
            draws, reads, or raises by itself; and where no kernel takes all of them.

    Example:
        >>> import phlox_tensor as pt
        >>> rows = [(pt.ones(2, device=pt.Numpy()), 3.0), (pt.ones((2, 2), device=pt.Numpy()), 3.0)]
        >>> run_together(lambda row: row[0] * row[1], rows) is None  # NumPy has no programs
        True
    """
    paths = _paths(rows[0])
    if not paths:
        return None
    device: Backend = _at(rows[0], paths[0]).device
    if device.inner is not None or not device.limits.bindings or watched() or recording():
        return None
    if not _pays(rows, paths[0], device):
        return None
    given = [_primitives(row, paths, device) for row in rows]
    if None in given:
        return None
    trial = Trial(device)
    tape = Tape([device.dtype_of(p) for p in given[0] or ()])
    elements = iter(tape.elements())
    argument = _mapped(rows[0], lambda _: wrap(next(elements), trial))
    out, wanted = _tried(function, argument, trial)
    done, numbers = tape.written()
    key = device, tape.inputs, done, wanted
    plan: Any = _PLANS.get(key, _UNKNOWN)
    if plan is _UNKNOWN:  # another thread may clear them at any time
        if len(_PLANS) >= _MOST_KEPT:
            _PLANS.clear()
        plan = _PLANS[key] = _planned(device, tape, wanted)
    if plan is None:
        raise _not_one("what it does is no program that the device has a kernel for")
    values = [numbers[n.place] if type(n) is Number else n for n in plan.numbers]
    calls = [(*[each[at] for at in plan.inputs], *values) for each in given if each is not None]
    try:
        made = _run(plan, calls)
    except Rejected as refused:
        raise _not_one(str(refused)) from refused
    return [_filled(out, plan, *each, device) for each in zip(given, made, strict=True)]


def _run(plan: _Plan, calls: list[tuple[Any, ...]]) -> Sequence[Sequence[Any]]:
    """What the kernel gives for each row; a kernel that takes all at once has ``over``."""
    over = getattr(plan.kernel, "over", None)
    if over is None:
        return [plan.kernel(*call) for call in calls]
    made, count = over(calls), len(plan.outputs)
    return [made[at : at + count] for at in range(0, len(made), count)]


def _filled(out: Any, plan: _Plan, given: Any, made: Any, device: Backend) -> Any:
    """A result: what was computed, arguments as they are, and what is no tensor."""
    known = dict(zip(plan.outputs, made, strict=True))

    def tensor(trial: Tensor) -> Tensor:
        value = trial.primitive.value
        own: Tensor = wrap(known[value] if value in known else given[value], device)
        return own

    return _mapped(out, tensor)


def _pays(rows: Sequence[Any], path: _Path, device: Backend) -> bool:
    """Whether there is enough to do for a kernel to take less time than the ops, trial and all."""
    enough = device.limits.pays_from / device.dtype_of(_at(rows[0], path).primitive).itemsize
    shape_of = device.shape_of
    total = 0
    for row in rows:
        total += prod(shape_of(_at(row, path).primitive))
        if total >= enough:
            return True
    return False


def _paths(item: Any, path: _Path = ()) -> list[_Path]:
    """Where the tensors of a tree of dicts, lists and tuples are."""
    cls = type(item)
    if cls is Tensor:
        return [path]
    if cls is dict:
        return [each for key, part in item.items() for each in _paths(part, (*path, key))]
    if cls is list or cls is tuple:
        return [each for at, part in enumerate(item) for each in _paths(part, (*path, at))]
    return []


def _at(item: Any, path: _Path) -> Any:
    for key in path:
        item = item[key]
    return item


def _mapped(item: Any, function: Callable[[Tensor], Tensor]) -> Any:
    """A tree of dicts, lists and tuples with other tensors."""
    cls = type(item)
    if cls is Tensor:
        return function(item)
    if cls is dict:
        return {key: _mapped(part, function) for key, part in item.items()}
    if cls is list:
        return [_mapped(part, function) for part in item]
    if cls is tuple:
        return tuple([_mapped(part, function) for part in item])
    return item


def _primitives(row: Any, paths: Sequence[_Path], device: Backend) -> list[Any] | None:
    """The tensors of a row; None where they are not all of one shape and of the device."""
    found = []
    for path in paths:
        tensor = _at(row, path)
        if tensor.device is not device:
            return None
        found.append(tensor.primitive)
    shapes = list(map(device.shape_of, found))
    return found if shapes.count(shapes[0]) == len(shapes) else None


def _tried(
    function: Callable[..., Any], argument: Any, trial: Trial
) -> tuple[Any, tuple[int, ...]]:
    """What a function gives, and which values are in it."""
    made = Recording(_open_cell, "trial")
    try:
        with recorded(made, watching=False):
            out = function(argument)
            made.raise_caught()
    except Exception as error:  # whatever it is: it comes again where there is data
        raise _not_one(f"{type(error).__name__}: {error}".splitlines()[0]) from error
    tensors = [_at(out, path) for path in _paths(out)]
    hidden = sum(isinstance(leaf, Tensor) for leaf in trees.leaves(out)) - len(tensors)
    if hidden or any(tensor.device is not trial for tensor in tensors):
        raise _not_one("a result that is made of nothing that was given, or in another container")
    return out, tuple(dict.fromkeys(tensor.primitive.value for tensor in tensors))


def _open_cell(cell: Cell[Any], _: Recording) -> NoReturn:
    refuse(CompileError("trial", "the function reads state", got=repr(cell)))


def _planned(device: Backend, tape: Tape, wanted: Sequence[int]) -> _Plan | None:
    """What runs the ops of a trial; None where one kernel does not."""
    count = len(tape.inputs)
    outputs = [value for value in wanted if value >= count]
    if not outputs or any(dtype.kind == "Int" for dtype in tape.inputs):
        return None
    nodes, specs = tape.nodes(device)
    try:
        parts = lowered(needed(nodes, outputs), specs, outputs)
    except CompileError:
        return None
    if too_much(device, parts.program) is not None:
        return None
    kernel = device.kernel(parts.program)
    if kernel is None:
        return None
    return _Plan(kernel, parts.inputs, parts.numbers, parts.results)


def _not_one(got: str) -> CompileError:
    return CompileError(
        "run_together",
        "the function is not one kernel for all rows",
        got=got,
        expected="elementwise ops of tensors and numbers",
        hint="call it for one row after the other",
    )
