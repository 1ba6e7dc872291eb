"""Where did the NaN start: ``detect_nan`` checks every result and every cotangent."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Lock, local
from typing import TYPE_CHECKING, Any, Final, final
from weakref import WeakSet

from phlox_tensor import GradientError, Tensor

from ._graph import Node, Pending, Plan, accumulate, is_primitive
from ._lanes import Lanes
from ._slices import whole

if TYPE_CHECKING:
    from phlox_tensor import Backend, Entry, Op

    from ._checkpoint import Memo


@final
class _Mode:
    """How many ``detect_nan`` blocks are open, in all threads together."""

    __slots__ = ("blocks",)

    def __init__(self) -> None:
        self.blocks = 0


class _Depth(local):
    """Greater than 0 inside an op that is watched already, in this thread."""

    calls = 0


MODE: Final = _Mode()
_depth: Final = _Depth()
_lock: Final = Lock()
_devices: Final[WeakSet[Backend]] = WeakSet()


def register(device: Backend) -> None:
    """Remember a device whose entries a block replaces."""
    with _lock:
        _devices.add(device)


@contextmanager
def detect_nan() -> Iterator[None]:
    """Raise where a NaN first appears, in a ``with`` block: forward or backward.

    The error names the op and the line that called it. Every result is read, so this is slow, and
    it watches all threads; it is for finding a fault, not for running.

    Raises:
        GradientError: inside the block, when an op on an Autodiff device gives a NaN, or when its
            derivative does.
    """
    _switch(1)
    try:
        yield
    finally:
        _switch(-1)


def _switch(step: int) -> None:
    """Open or close a block; devices look their entries up again when that changes them."""
    with _lock:
        before = MODE.blocks
        MODE.blocks += step
        if before and MODE.blocks:
            return
        for device in _devices:
            device.forget()


def watched(op: Op, entry: Entry, device: Backend) -> Entry:
    """The entry, its results looked at, its nodes marked with the line that called it."""

    def run(*args: Any) -> Any:
        _depth.calls += 1
        try:
            out = entry(*args)
        finally:
            _depth.calls -= 1
        results = out if isinstance(out, tuple) else (out,)
        origin = _user_line()
        for result in results:
            if result.node is not None:
                for node in (result.node, *result.node.parents[: len(results) > 1]):
                    node.origin = origin
        if not _depth.calls and _any_nan(results, device):
            flat = [p for a in args for p in (a if isinstance(a, tuple) else (a,))]
            before = _any_nan([p for p in flat if is_primitive(p)], device)
            raise GradientError(
                op.name,
                "the result holds nan",
                got="an operand with nan" if before else "operands without nan",
                hint=f"look at {origin}",
            )
        return out

    return run


def push(plan: Plan, node: Node, cotangent: Any, pending: Pending, memo: Memo | None) -> None:
    """Push the cotangents of a node, and look at them."""
    fresh: Pending = {}
    _depth.calls += 1
    try:
        plan.push(node, cotangent, fresh, memo)
        for parent, found in fresh.items():
            item = whole(found)
            items = item if isinstance(item, list) else [item]
            if any(_has_nan(t) for t in items if t is not None):
                given = cotangent if isinstance(cotangent, list) else [cotangent]
                before = any(_has_nan(t) for t in given if t is not None)
                raise GradientError(
                    plan.name,
                    "its derivative gives nan",
                    got="a cotangent with nan" if before else "a cotangent without nan",
                    hint=f"look at {getattr(node, 'origin', 'the call; it ran before the block')}",
                )
            _merge(pending, parent, item)
    finally:
        _depth.calls -= 1


def _merge(pending: Pending, parent: Node, item: Any) -> None:
    if not isinstance(item, list):
        accumulate(pending, parent, item)
        return
    places = pending.setdefault(parent, [None] * len(item))
    for i, part in enumerate(item):
        if part is not None:
            places[i] = part if places[i] is None else places[i] + part


def _has_nan(tensor: Tensor[Any]) -> bool:
    while type(tensor.primitive) is Lanes:  # of all lanes at once
        assert tensor.device.inner is not None
        tensor = Tensor(tensor.primitive.value, tensor.device.inner)
    return tensor.dtype.kind == "Float" and bool(tensor.isnan().any())


def _any_nan(primitives: Any, device: Backend) -> bool:
    inner = device.inner
    assert inner is not None
    return any(_has_nan(Tensor(p.value, inner)) for p in primitives)


def _user_line() -> str:
    """File and line of the innermost frame outside phlox."""
    frame = sys._getframe(1)
    while frame.f_back is not None:
        package = str(frame.f_globals.get("__name__", "")).partition(".")[0]
        if package != "phlox" and not package.startswith("phlox_"):
            break
        frame = frame.f_back
    return f"{frame.f_code.co_filename}:{frame.f_lineno}"
