"""Check mode: the function beside its replay, bit for bit where the device is strict."""

from __future__ import annotations

from collections.abc import Callable
from math import inf
from typing import Any, Final

from phlox_tensor import Backend, DisagreementError, DType, finfo
from phlox_tensor.capture import Cell, Packed, same

from ._layout import Layout, TensorPart, flatten
from ._replay import MISS, Replay
from ._trace import Trace, packed

Array = Any  # of NumPy, which devices read into
# In units of epsilon of the largest value: drivers of GPUs choose how a kernel rounds.
_CONTRACTED: Final = 256


def compared(
    function: Callable[..., Any],
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    trace: Trace,
    replay: Replay,
    leaves: list[Any],
) -> Any:
    """Return what a replay gives, compared with what the function gives from the same state.

    Raises:
        DisagreementError: at the first result or state that differs.
    """
    cells = list({**trace.opened, **trace.left})
    before = [packed(cell) for cell in cells]
    out = replay(leaves, [])
    if out is MISS:
        return out
    after = [packed(cell) for cell in cells]
    for cell, content in zip(cells, before, strict=True):
        cell.pack(content)
    expected = function(*args, **kwargs)
    wanted = [packed(cell) for cell in cells]
    _agree("the result", _parts(out), _parts(expected), trace)
    for cell, mine, own in zip(cells, after, wanted, strict=True):
        _agree(f"what it leaves in {_name(cell)}", mine, own, trace)
    return out


def _name(cell: Cell[Any]) -> str:
    return f"a cell that holds {type(cell.current()).__name__}"


def _parts(value: Any) -> Packed:
    layout, leaves, _ = flatten(value, "the result")
    return layout.pack(leaves)


def _agree(what: str, mine: Packed, own: Packed, trace: Trace) -> None:
    layout: Layout = own.layout
    if len(mine.layout.leaves) != len(layout.leaves):
        raise _parted(what, "another number of parts", trace)
    for place, part in enumerate(layout.leaves):
        a, b = mine.leaves[place], own.leaves[place]
        if isinstance(part, TensorPart):
            device = part.levels[-1][0]
            left, right = device.read(a), device.read(b)
            if left.tobytes() == right.tobytes() or _as_near(left, right, part.spec.dtype, device):
                continue
            raise _parted(what, f"tensor {place} of shape {part.spec.shape}", trace)
        if not same(a, b):
            raise _parted(what, f"number {place}: {a} and {b}", trace)


def _as_near(left: Array, right: Array, dtype: DType, device: Backend) -> bool:
    """Whether floats differ by what a driver may change that contracts products and sums."""
    if device.strict or dtype.kind != "Float":
        return False
    mine, own = left.astype("float64"), right.astype("float64")
    finite = abs(own) < inf
    nan = ~(abs(mine) <= inf) & ~(abs(own) <= inf)
    if not (finite | nan | (mine == own)).all():
        return False
    largest = abs(own[finite]).max(initial=0.0)
    return bool((abs(mine[finite] - own[finite]) <= _CONTRACTED * finfo(dtype).eps * largest).all())


def _parted(what: str, got: str, trace: Trace) -> DisagreementError:
    return DisagreementError(
        "compile",
        f"a replay and the function differ in {what}",
        got=got,
        expected="equal bits",
        hint="side effects, or data that changed outside of the function; its ops were:\n"
        + str(trace.graph),
    )
