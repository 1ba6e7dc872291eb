"""Where did the NaN start: ``detect_nan`` checks every result and every cotangent."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from math import isinf
from threading import Lock, local
from typing import Any, Final, final

from phlox_tensor import Backend, Entry, GradientError, Op, Tensor
from phlox_tensor.blocks import block
from phlox_tensor.capture import EAGER, MODES, depend_on, each_primitive, line_of_user, watch
from phlox_tensor.scope import current_path, watching

from ._checkpoint_strategies import Memo
from ._graph import Node, Pending, Plan, accumulate, is_primitive
from ._lanes import unwrapped
from ._propose import PROPOSED
from ._slices import whole


@final
class _Mode:
    """How many ``detect_nan`` blocks are open, in all threads together; how many refuse inf."""

    __slots__ = ("blocks", "infinities")

    def __init__(self) -> None:
        self.blocks = self.infinities = 0


class _Depth(local):
    """Greater than 0 inside an op that is watched already, in this thread."""

    calls = 0


MODE: Final = _Mode()
depend_on(lambda: EAGER if MODE.blocks else None, mode=True)
_depth: Final = _Depth()
_lock: Final = Lock()


@final
class _Base:
    """Looks at what base devices compute that no recorded op has called."""

    def entry(self, device: Backend, op: Op, entry: Entry) -> Entry:
        """The entry, its results looked at."""
        return entry if not device.has_data else _looked_at(op, entry, device)

    def methods(self, device: Backend) -> dict[str, Callable[..., Any]]:
        """Nothing: what comes from the host is no result."""
        del device
        return {}


_BASE: Final = _Base()


@block
def detect_nan(*, infinities: bool = False) -> Iterator[None]:
    """Raise where a NaN first appears, in a ``with`` block: forward or backward.

    The error names the op, the shapes, the module and the line that called it, on any device. Every
    result is read, so this is slow, and it watches all threads; it is for finding a fault.

    Args:
        infinities: refuse infinities as well, where an op makes one of finite numbers. Those that
            are given to it pass, such as the ``-inf`` that hides a score of attention.

    Raises:
        GradientError: inside the block, when an op gives a NaN, or when its derivative does.

    Example:
        >>> import phlox_tensor as pt
        >>> from phlox_autodiff import Autodiff
        >>> x = pt.asarray([0.0], device=Autodiff("numpy")).require_grad()
        >>> try:
        ...     with detect_nan():
        ...         y = x.log() * 0.0
        ... except pt.GradientError as error:
        ...     print(error.op, error.got)
        multiply operands without nan: float32[1]
    """
    with watching():
        _switch(1, infinities=infinities)
        try:
            yield
        finally:
            _switch(-1, infinities=infinities)


def _switch(step: int, *, infinities: bool) -> None:
    """Open or close a block; devices look their entries up again when that changes them."""
    with _lock:
        MODE.blocks += step
        MODE.infinities += step * infinities
        MODES.change(step)
        watch(_BASE, on=MODE.blocks > 0)


def watched(op: Op, entry: Entry, device: Backend) -> Entry:
    """The entry, its results looked at, its nodes marked with the line that called it."""
    inner = device.inner
    assert inner is not None

    def run(*args: Any) -> Any:
        _depth.calls += 1
        try:
            out = entry(*args)
        finally:
            _depth.calls -= 1
        results = out if isinstance(out, tuple) else (out,)
        origin = _origin()
        for result in results:
            if result.node is not None:
                for node in (result.node, *result.node.parents[: len(results) > 1]):
                    node.origin = origin
        if not _depth.calls:
            found = filter(is_primitive, each_primitive(args))
            given = [Tensor[Any](p.value, inner) for p in found]
            _look(op, [Tensor(r.value, inner) for r in results], given, args)
        return out

    return run


def _looked_at(op: Op, entry: Entry, device: Backend) -> Entry:
    """The entry of a base device, its results looked at unless a recorded op called it."""
    count = len(op.signature.operands)

    def run(*args: Any) -> Any:
        out = entry(*args)
        if not _depth.calls:
            results = out if isinstance(out, tuple) else (out,)
            given = [Tensor[Any](p, device) for p in each_primitive(args[:count])]
            _look(op, [Tensor(r, device) for r in results], given, args)
        return out

    return run


def _look(
    op: Op, results: list[Tensor[Any]], given: list[Tensor[Any]], args: tuple[Any, ...]
) -> None:
    """Raise for results that are no numbers."""
    _depth.calls += 1
    try:
        bad = _bad(results)
        if bad is None or (bad == "inf" and (_is_infinite(args) or _bad(given) == "inf")):
            return
        raise GradientError(
            op.name,
            f"the result holds {bad}",
            got=_described("operand", given),
            expected="finite numbers" if MODE.infinities else "numbers",
            hint=f"look at {_origin()}",
        )
    finally:
        _depth.calls -= 1


def _is_infinite(args: tuple[Any, ...]) -> bool:
    """Whether one of the numbers that stand for operands or attributes is an infinity."""
    return any(isinstance(each, float) and isinf(each) for each in args)


def push(plan: Plan, node: Node, cotangent: Any, pending: Pending, memo: Memo | None) -> None:
    """Push the cotangents of a node, and look at them."""
    fresh: Pending = {}
    _depth.calls += 1
    try:
        plan.push(node, cotangent, fresh, memo)
        if PROPOSED in fresh:
            accumulate(pending, PROPOSED, fresh.pop(PROPOSED))
        for parent, found in fresh.items():
            item = whole(found)
            items = item if isinstance(item, list) else [item]
            bad = _bad([t for t in items if t is not None])
            if bad is not None:
                given = cotangent if isinstance(cotangent, list) else [cotangent]
                elsewhere = f"the call of {plan.name}, which is no op, or ran before the block"
                raise GradientError(
                    plan.name,
                    f"its derivative gives {bad}",
                    got=_described("cotangent", [t for t in given if t is not None]),
                    expected="finite numbers" if MODE.infinities else "numbers",
                    hint=f"look at {getattr(node, 'origin', elsewhere)}",
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


def _bad(tensors: list[Tensor[Any]]) -> str | None:
    """What some of the numbers are that they should not be."""
    floats = [unwrapped(t) for t in tensors if t.dtype.kind == "Float"]
    if any(bool(t.isnan().any()) for t in floats):
        return "nan"
    if MODE.infinities and any(bool(t.isinf().any()) for t in floats):
        return "inf"
    return None


def _described(what: str, tensors: list[Tensor[Any]]) -> str:
    """What went in, such as ``operands without nan: float32[2, 3], float32[3]``."""
    bad = _bad(tensors)
    shown = ", ".join(f"{t.dtype}{list(t.shape)}" for t in tensors)
    none = "nan or inf" if MODE.infinities else "nan"
    if bad is not None:
        article = "an" if what[0] in "aeiou" else "a"
        return f"{article} {what} with {bad}: {shown}"
    return f"{what}s without {none}: {shown}" if tensors else f"no {what}s"


def _origin() -> str:
    """The line that called an op, and the module that runs."""
    path = current_path()
    return f"{line_of_user()} in module {path}" if path else line_of_user()
