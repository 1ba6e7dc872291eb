"""A function of elements as one kernel that runs over all tensors of many arguments."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any, Final

from .._call.dispatch import wrap
from .._device.backend import Backend, watched
from .._device.program import Kernel, Program
from .._errors.classes import CompileError, Rejected
from .._recording.graph import Graph
from .._recording.record import recording
from .._tree import walk as trees
from .._values.tensor import Tensor
from .limits import too_much
from .lowering import Lowered
from .tracing import sketched

# So many times ``pays_from`` all first tensors have: finding out takes milliseconds.
_PAYS: Final = 2


def run_together(function: Callable[..., Any], rows: Sequence[Any]) -> list[Any] | None:
    """Return what a function of elements gives for each of some arguments, computed by one kernel.

    The function is traced, without data, for all rows: what it does to elements is the same for
    each, and has the bits that its ops one by one give.

    Args:
        function: a function from trees of tensors and plain values to such trees.
        rows: the arguments, which differ only in their tensors: same structure, same plain values,
            same element types. The tensors of a row have one shape.

    Returns:
        A result for each row; None where it depends on the device or on sizes, not on the function:
        no base device with programs, recordings, rows of tensors of several shapes, and too little
        to do for a kernel to take less time.

    Raises:
        CompileError: where the function does anything but elementwise ops: it asks for a shape,
            draws, reads, or raises by itself; and where no kernel takes all of them.

    Example:
        >>> import phlox_tensor as pt
        >>> rows = [(pt.ones(2, device=pt.Numpy()), 3.0), (pt.ones((2, 2), device=pt.Numpy()), 3.0)]
        >>> run_together(lambda row: row[0] * row[1], rows) is None  # NumPy has no programs
        True
    """
    given = [_tensors(trees.leaves(row)) for row in rows]
    if not given[0] or not _pays(given):
        return None
    device: Backend = given[0][0].device
    try:
        graph, parts, leaves, tree = _traced(function, rows[0], device)
        results = _run(device, parts, [[x.primitive for x in row] for row in given])
    except Exception as error:  # whatever it is: it comes again where each row is computed
        raise CompileError(
            "run_together",
            "the function is not one kernel for all rows",
            got=f"{type(error).__name__}: {error}".splitlines()[0],
            expected="elementwise ops of tensors and numbers",
            hint="call it for one row after the other",
        ) from error
    filled = []
    for row, made in zip(given, results, strict=True):
        known = dict(zip(graph.inputs, row, strict=True))
        known |= {v: wrap(x, device) for v, x in zip(parts.results, made, strict=True)}
        values = iter(graph.outputs)
        new = [known[next(values)] if isinstance(x, Tensor) else x for x in leaves]
        filled.append(tree.rebuild(new))
    return filled


def _traced(
    function: Callable[..., Any], row: Any, device: Backend
) -> tuple[Graph, Lowered, list[Any], trees.Structure]:
    """What a function does to the elements of a row, and what it gives, without data."""
    items, structure = trees.flatten(row)
    last: list[Any] = []

    def run(*tensors: Tensor[Any]) -> list[Tensor[Any]]:
        each = iter(tensors)
        mine = [next(each) if isinstance(item, Tensor) else item for item in items]
        last[:] = trees.flatten(function(structure.rebuild(mine)))
        return _tensors(last[0])

    dtypes = [x.dtype for x in _tensors(items)]
    found = sketched("run_together", run, device, dtypes, several=True)
    if isinstance(found.lowered, CompileError):
        raise found.lowered
    return found.graph, found.lowered, last[0], last[1]


def _tensors(leaves: Sequence[Any]) -> list[Tensor[Any]]:
    return [leaf for leaf in leaves if isinstance(leaf, Tensor)]


def _pays(rows: Sequence[Sequence[Tensor[Any]]]) -> bool:
    """Whether tensors can be taken by one kernel, and there is enough to do for it."""
    device = rows[0][0].device
    if device.inner is not None or not device.limits.bindings or watched() or recording():
        return False
    if any(x.device is not device or x.shape != row[0].shape for row in rows for x in row):
        return False
    return sum(row[0].nbytes for row in rows) >= _PAYS * device.limits.pays_from


@lru_cache(256)
def _kernel(device: Backend, program: Program) -> Kernel | None:
    return None if too_much(device, program) else device.kernel(program)


def _run(device: Backend, parts: Lowered, rows: list[list[Any]]) -> Sequence[Sequence[Any]]:
    """What the kernel gives for each row; a kernel that takes all at once has ``over``."""
    kernel = _kernel(device, parts.program)
    if kernel is None:
        raise Rejected("the device has no kernel for it")
    calls = [(*[row[at] for at in parts.inputs], *parts.numbers) for row in rows]
    over = getattr(kernel, "over", None)
    if over is None:
        return [kernel(*call) for call in calls]
    made, count = over(calls), len(parts.results)
    return [made[at : at + count] for at in range(0, len(made), count)]
