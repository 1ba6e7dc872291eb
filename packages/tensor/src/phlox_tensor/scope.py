"""The path of the module that runs, noted only while something watches.

``Profile`` asks; a package of modules answers: it runs each call by ``run_inside`` while
``WATCH.count`` is not 0.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import partial
from threading import Lock
from typing import Any, Final, TypeVar, final

from ._values.ambient import EAGER, MODES, depend_on

R = TypeVar("R")
# Gets the module, its path and the call, and returns what the call gives.
Around = Callable[[object, str, Callable[[], Any]], Any]


@final
class _Watch:
    """How many watchers there are, in all threads together.

    While it is 0, a module that is called need not say where it stands.
    """

    __slots__ = ("count",)

    def __init__(self) -> None:
        self.count = 0


WATCH: Final = _Watch()
depend_on(lambda: EAGER if WATCH.count else None, mode=True)
_lock: Final = Lock()
_arounds: Final[ContextVar[tuple[Around, ...]]] = ContextVar("phlox_arounds", default=())
_modules: Final[ContextVar[tuple[tuple[object, str], ...]]] = ContextVar("phlox_scope", default=())


@contextmanager
def watching(around: Around | None = None) -> Iterator[None]:
    """Let modules that are called inside the block say where they stand.

    Args:
        around: what runs their calls, in this thread or task.
    """
    with _lock:
        WATCH.count += 1
        MODES.change(1)
    token = _arounds.set((*_arounds.get(), *([] if around is None else [around])))
    try:
        yield
    finally:
        _arounds.reset(token)
        with _lock:
            WATCH.count -= 1
            MODES.change(-1)


def run_inside(module: object, path: str, call: Callable[[], R]) -> R:
    """Return what ``call`` gives, run as a part of ``module``, which stands at ``path``."""
    for around in reversed(_arounds.get()):
        call = partial(around, module, path, call)
    with entered(module, path):
        return call()


@contextmanager
def entered(module: object, path: str) -> Iterator[None]:
    """Run the block as a part of ``module``, which stands at ``path``."""
    token = _modules.set((*_modules.get(), (module, path)))
    try:
        yield
    finally:
        _modules.reset(token)


def current_path() -> str:
    """Return the path of the module that runs in this thread or task; "" outside of any."""
    modules = _modules.get()
    return modules[-1][1] if modules else ""


def running_modules() -> tuple[tuple[object, str], ...]:
    """Return the modules that run in this thread or task with their paths, the outermost first."""
    return _modules.get()
