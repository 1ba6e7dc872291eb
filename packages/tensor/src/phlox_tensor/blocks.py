"""Functions that open a ``with`` block; called without one they do nothing, and warn."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar
from functools import wraps
from inspect import isasyncgenfunction, isclass, iscoroutinefunction, isgeneratorfunction, signature
from types import TracebackType
from typing import Any, Final, Generic, ParamSpec, TypeVar, final

from ._errors.classes import WrongTypeError
from ._errors.unknown_argument import unknown_argument

P = ParamSpec("P")
R = TypeVar("R")
V_co = TypeVar("V_co", covariant=True)


# What is called long before it does its work, and how errors name it.
_LATER: Final[tuple[tuple[Callable[[Any], bool], str], ...]] = (
    (isclass, "a class"),
    (isasyncgenfunction, "a function of asynchronous generators"),
    (iscoroutinefunction, "a function of coroutines"),
    (isgeneratorfunction, "a function of generators"),
)


# What this thread or task has entered and not left: the block, and what it opened.
_OPEN: Final[ContextVar[tuple[tuple[object, AbstractContextManager[Any]], ...]]] = ContextVar(
    "phlox_blocks", default=()
)


@final
class Block(Generic[V_co]):
    """What a ``with`` statement opens, or what decorates a function whose calls run inside.

    Warns:
        RuntimeWarning: where it is thrown away unused: a statement alone changes nothing.
    """

    __slots__ = ("_make", "_name", "_used")

    def __init__(self, name: str, make: Callable[[], AbstractContextManager[V_co]]) -> None:
        """Keep what makes the block, anew for each use."""
        self._name, self._make = name, make
        self._used = False

    def __enter__(self) -> V_co:
        self._used = True
        block = self._make()
        value = block.__enter__()
        _OPEN.set((*_OPEN.get(), (self, block)))
        return value

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> bool | None:
        opened = _OPEN.get()
        last = next((i for i in reversed(range(len(opened))) if opened[i][0] is self), None)
        if last is None:
            raise RuntimeError(
                f"[{self._name}] the block is left in another thread or task than it was entered "
                f"in\nhint: with {self._name}(...): in the one that computes"
            )
        _OPEN.set(opened[:last] + opened[last + 1 :])
        return opened[last][1].__exit__(kind, error, trace)

    def __call__(self, function: Callable[P, R]) -> Callable[P, R]:
        """Return the function with its calls inside a block of their own.

        Raises:
            WrongTypeError: for what does its work after its call: a class, or a function of
                generators or coroutines.
        """
        self._used = True
        later = next((name for is_one, name in _LATER if is_one(function)), None)
        if later is not None:
            raise WrongTypeError(
                self._name,
                "the block would end before the work begins",
                got=f"{getattr(function, '__name__', function)}, {later}",
                expected="a function that ends its work before it returns",
                hint=f"with {self._name}(...): inside of it",
            )

        @wraps(function)
        def run(*args: P.args, **kwargs: P.kwargs) -> R:
            with self._make():
                return function(*args, **kwargs)

        return run

    def __del__(self) -> None:
        if not getattr(self, "_used", True):
            warnings.warn(
                f"[{self._name}] the block was never entered, so nothing changed: got a call "
                f"alone, expected a with statement or a decorator\nhint: with {self._name}(...):",
                RuntimeWarning,
                stacklevel=2,
            )

    def __repr__(self) -> str:
        return f"<block of {self._name}>"


def block(function: Callable[P, Iterator[V_co]]) -> Callable[P, Block[V_co]]:
    """Make a generator that yields once open a block, as ``contextmanager`` does."""
    opened = contextmanager(function)

    @wraps(function)
    def call(*args: P.args, **kwargs: P.kwargs) -> Block[V_co]:
        try:
            function(*args, **kwargs)  # runs nothing; an error would otherwise wait for the with
        except TypeError:
            known = list(signature(function).parameters)
            wrong = unknown_argument(function.__name__, kwargs, known)
            if wrong is None:
                raise
            raise wrong from None
        return Block(function.__name__, lambda: opened(*args, **kwargs))

    return call
