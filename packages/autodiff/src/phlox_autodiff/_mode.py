"""Whether ops are recorded: ``no_grad``."""

from __future__ import annotations

from collections.abc import Callable
from contextvars import ContextVar, Token
from functools import partial
from threading import Lock
from types import TracebackType
from typing import Any, Final, Never, ParamSpec, TypeVar, final, overload

from phlox_tensor import WrongTypeError
from phlox_tensor.blocks import Block
from phlox_tensor.capture import MODES, depend_on

P = ParamSpec("P")
R = TypeVar("R")

_off: ContextVar[bool] = ContextVar("phlox_no_grad", default=False)
_lock: Final = Lock()


@final
class _Mode:
    """How many ``no_grad`` blocks are open, in all threads together.

    While it is 0, an op need not ask which thread it runs in.
    """

    __slots__ = ("pauses",)

    def __init__(self) -> None:
        self.pauses = 0


MODE: Final = _Mode()


def paused() -> bool:
    """Whether this thread or task is inside ``no_grad``."""
    return _off.get()


depend_on(lambda: True if paused() else None, mode=True)


@final
class Recording:
    """A block in which ops are recorded, or are not, in this thread or task."""

    __slots__ = ("_off", "_tokens")

    def __init__(self, *, off: bool) -> None:
        """Choose what the block does."""
        self._off = off
        self._tokens: list[Token[bool]] = []

    def __enter__(self) -> None:
        if self._off:
            with _lock:
                MODE.pauses += 1
                MODES.change(1)
        self._tokens.append(_off.set(self._off))

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        _off.reset(self._tokens.pop())
        if self._off:
            with _lock:
                MODE.pauses -= 1
                MODES.change(-1)


@final
class _NoGrad:
    """Record nothing in a ``with`` block, or in calls of a decorated function.

    Results are constants, on every Autodiff device and at every depth. Other threads are not
    affected; ``grad`` and its relatives work inside as they do outside, with results that are
    constants to the devices of their arguments.

    Example:
        >>> import phlox_tensor as pt
        >>> from phlox_autodiff import Autodiff
        >>> x = pt.ones(2, device=Autodiff("numpy")).require_grad()
        >>> with no_grad():
        ...     y = x * 2.0
        >>> y.requires_grad
        False
    """

    __slots__ = ("__weakref__",)
    __name__ = __qualname__ = "no_grad"

    @overload
    def __call__(self, /) -> Block[None]: ...
    @overload
    def __call__(self, function: Callable[P, R], /) -> Callable[P, R]: ...
    def __call__(self, function: Any = None, /) -> Any:
        if function is not None and not callable(function):
            raise WrongTypeError(
                "no_grad",
                "not a function",
                got=repr(function),
                expected="a function, or nothing",
                hint="with px.no_grad(): ...",
            )
        opened: Block[None] = Block("no_grad", partial(Recording, off=True))
        return opened if function is None else opened(function)

    def __enter__(self) -> Never:
        raise WrongTypeError(
            "no_grad",
            "a block is opened by a call",
            got="px.no_grad",
            expected="px.no_grad()",
            hint="with px.no_grad(): ...",
        )

    def __exit__(self, *_: object) -> None:
        """Never reached."""

    def __repr__(self) -> str:
        return "<function no_grad>"


no_grad = _NoGrad()
