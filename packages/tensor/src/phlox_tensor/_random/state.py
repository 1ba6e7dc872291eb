"""Where random numbers come from: a seed, and a counter that is drawn on the host."""

from __future__ import annotations

import operator
import os
import pickle
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from hashlib import blake2b
from random import Random, getstate
from typing import TYPE_CHECKING, Any, Final, NoReturn, TypeVar, final

import numpy as np

from .._device.backend import Backend, is_inside
from .._errors.classes import ArgumentError, UnknownNameError
from .._values.ambient import depend_on
from .._values.cell import Cell, register_state
from .._values.number import Number, plain
from ..blocks import block

T = TypeVar("T")
_LIMIT = 2**64


@final
class Generator:
    """A stream of random blocks: the key is the seed, the counter says how many were drawn.

    Drawing is safe from many threads; for the same numbers in every run, give each thread a
    generator of its own with ``use_generator``.
    """

    __slots__ = ("_state",)

    def __init__(self, seed: int = 0, counter: int = 0) -> None:
        """Start the stream of ``seed`` at block ``counter``."""
        self._state: Final = Cell((_word(seed), _word(counter)))

    def cells(self) -> tuple[Cell[Any], ...]:
        """The state, which compiled functions follow where a generator is an argument."""
        return (self._state,)

    def draw(self, blocks: int) -> tuple[int, int]:
        """Reserve ``blocks`` blocks of four words; return the key and the first block."""
        with self._state.lock:
            key, first = self._state.get()
            self._state.set((key, (first + blocks) % _LIMIT))
            return key, first

    def state(self) -> tuple[int, int]:
        """Return seed and counter, to be saved in a checkpoint."""
        return self._state.get()

    def set_state(self, seed: int, counter: int = 0) -> None:
        """Go to a state that ``state()`` gave.

        Raises:
            ArgumentError: when a number is not an integer in 0..2**64-1.
        """
        self._state.set((_word(seed), _word(counter)))

    if not TYPE_CHECKING:  # a checker would take any name for one that is there

        def __getattr__(self, name: str) -> NoReturn:
            """Say how numbers are drawn from a stream: NumPy's generators have methods for it."""
            raise UnknownNameError(name, "functions draw from a generator", hint=USE)


# What a generator is for, as code.
USE: Final = "with px.random.use_generator(generator): px.random.normal((2, 3))"


class _Forks:
    """What keeps a process and its forks from drawing the same numbers.

    A child goes on with streams of its own: the same for the same seed, draws and forks before.
    """

    def __init__(self) -> None:
        self._count = 0
        self._held: list[Generator] = []

    def before(self) -> None:
        """Take the streams in use, so that no thread leaves one locked in the child."""
        self._count += 1
        self._held = list(dict.fromkeys((_default, generator())))
        for held in self._held:
            held._state.lock.acquire()

    def in_parent(self) -> None:
        """Go on as before."""
        while self._held:
            self._held.pop()._state.lock.release()

    def in_child(self) -> None:
        """Start other streams."""
        for held in self._held:
            words = (*held.state(), self._count)
            digest = blake2b(repr(words).encode(), digest_size=8, person=b"fork")
            held.set_state(int.from_bytes(digest.digest(), "little"))
        self.in_parent()


def _word(number: Any) -> int:
    if type(number) is int and 0 <= number < _LIMIT:  # most, and a step goes to a state
        return number
    try:
        index = operator.index(plain(number))
    except TypeError:
        index = -1
    if not 0 <= index < _LIMIT:
        raise ArgumentError(
            "seed", "not an integer in range", got=repr(number), expected="0 <= n < 2**64"
        )
    word: Any = number
    kept: int = word if isinstance(number, Number) else index  # one of a recording stays one
    return kept


register_state(Generator, Generator.cells, lambda _: None)
_default = Generator()
_current: ContextVar[Generator | None] = ContextVar("phlox_generator", default=None)


depend_on(_current.get)


def generator() -> Generator:
    """Return the generator in use.

    Example:
        >>> generator() is generator()
        True
    """
    return _current.get() or _default


def is_stream(cell: Cell[Any]) -> bool:
    """Whether a cell is the state of the generator in use."""
    return cell is generator()._state


@block
def use_generator(chosen: Generator) -> Iterator[Generator]:
    """Draw from ``chosen`` inside a ``with`` block, in this thread or task.

    Example:
        >>> with use_generator(Generator(3)):
        ...     generator().state()
        (3, 0)
    """
    token = _current.set(chosen)
    try:
        yield chosen
    finally:
        _current.reset(token)


def drawing_from(chosen: Generator, function: Callable[..., T], *args: Any) -> T:
    """Call a function that draws from ``chosen``; opening a block would take longer."""
    token = _current.set(chosen)
    try:
        return function(*args)
    finally:
        _current.reset(token)


# Of each function that runs for many lanes at once: its device, and the one that holds all lanes.
_lanes: ContextVar[tuple[tuple[Backend, Backend], ...]] = ContextVar("phlox_draws", default=())


@contextmanager
def drawing_by_lane(base: Backend, lanes: Backend) -> Iterator[None]:
    """Let what is drawn on ``base``, or a device inside, be drawn on ``lanes``."""
    token = _lanes.set((*_lanes.get(), (base, lanes)))
    try:
        yield
    finally:
        _lanes.reset(token)


@contextmanager
def drawing_once() -> Iterator[None]:
    """Draw on the given devices, even in code that runs for many lanes."""
    token = _lanes.set(())
    try:
        yield
    finally:
        _lanes.reset(token)


def drawing_device(device: Backend) -> Backend:
    """Return the device that draws in the place of another."""
    for base, lanes in _lanes.get():
        if is_inside(device, base):
            device = lanes
    return device


def seed(value: int) -> None:
    """Start the generator in use anew from ``value``; the same numbers follow on any device.

    Example:
        >>> seed(0)
        >>> first = random.normal((3,))
        >>> seed(0)
        >>> bool((random.normal((3,)) == first).all())
        True
    """
    generator().set_state(value)


if hasattr(os, "register_at_fork"):
    _forks = _Forks()
    os.register_at_fork(
        before=_forks.before,
        after_in_parent=_forks.in_parent,
        after_in_child=_forks.in_child,
    )


def host_random_state(generators: Iterable[Any] = ()) -> tuple[Any, ...]:
    """Return the state of ``random``, of ``np.random`` and of further generators of theirs.

    Nobody has drawn from ``np.random`` before it is loaded, which is not done for this: it takes
    more time than a small model. What it is loaded with equals the state before.
    """
    loaded = "numpy.random" in sys.modules
    state = pickle.dumps(np.random.get_state(legacy=False)) if loaded else _UNLOADED
    return getstate(), state, *map(_state_of, generators)


class _Unloaded:
    """The state of ``np.random`` before it is loaded."""

    __hash__ = object.__hash__

    def __eq__(self, other: object) -> bool:
        return True


_UNLOADED: Final = _Unloaded()


def _state_of(generator: Any) -> Any:
    if isinstance(generator, Random):
        return generator.getstate()
    if isinstance(generator, np.random.RandomState):
        return pickle.dumps(generator.get_state(legacy=False))
    bits = getattr(generator, "bit_generator", generator)
    return pickle.dumps(bits.state)
