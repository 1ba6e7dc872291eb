"""Cells: state that changes between calls, and that compiled functions follow."""

from __future__ import annotations

from collections.abc import Callable
from contextvars import ContextVar
from threading import RLock
from typing import TYPE_CHECKING, Any, Final, Generic, NamedTuple, TypeVar, final

if TYPE_CHECKING:
    from .._recording.record import Recording

T = TypeVar("T")


class Packed(NamedTuple):
    """The content of a cell in parts: what a replay reads and leaves.

    Attributes:
        layout: what all contents of this structure have in common.
        leaves: base primitives and numbers.
        make: makes the content out of both.
    """

    layout: Any
    leaves: Any
    make: Callable[[Any, Any], Any]


@final
class _Absent:
    """Stands for a content that nobody has made out of its parts yet."""


_ABSENT: Final = _Absent()


@final
class _Recordings:
    """How many recordings are under way, in all threads together; while it is 0 nobody asks."""

    __slots__ = "count", "watching"

    def __init__(self) -> None:
        self.count = 0
        self.watching = 0  # those for which all devices are watched


RECORDINGS: Final = _Recordings()
recording_here: Final[ContextVar[Recording | None]] = ContextVar("phlox_recording", default=None)


class Stateful(NamedTuple):
    """What objects of a class have that keep their state in cells.

    Attributes:
        cells: gives the cells of an object, always as many.
        static: gives a tree of what distinguishes two objects besides their cells.
    """

    cells: Callable[[Any], tuple[Cell[Any], ...]]
    static: Callable[[Any], Any]


STATEFUL: Final[dict[type, Stateful]] = {}


def register_state(
    type: type, cells: Callable[[Any], tuple[Cell[Any], ...]], static: Callable[[Any], Any]
) -> None:
    """Let objects of a class count as one to compiled functions but for what their cells hold.

    Args:
        type: the class, whose objects change nothing but their cells; not those made from it.
        cells: gives the cells of an object, always as many.
        static: gives a tree of what else distinguishes two objects.
    """
    STATEFUL[type] = Stateful(cells, static)


@final
class Cell(Generic[T]):
    """A place for a value that changes: a count, a running mean, the state of an optimizer.

    A compiled function reads the cells that it reached when it was recorded at each call, and
    leaves new values there. The value may be any tree of tensors and numbers; it never changes in
    place, a new one is set.

    >>> from phlox_tensor.capture import Cell
    >>> count = Cell(0)
    >>> count.set(count.get() + 1)
    >>> count.get()
    1
    """

    __slots__ = ("__weakref__", "_packed", "_value", "lock")

    def __init__(self, value: T) -> None:
        """Start with a value."""
        self._value: Any = value
        self._packed: Packed | None = None
        self.lock: Final = RLock()
        if RECORDINGS.count:
            recording = recording_here.get()
            if recording is not None:
                recording.born(self)

    def get(self) -> T:
        """Return the value."""
        if RECORDINGS.count:
            recording = recording_here.get()
            if recording is not None:
                return recording.content(self)
        value = self._value
        return self.current() if value is _ABSENT else value

    def current(self) -> T:
        """Return the value that stands here, whatever a recording would put in its place."""
        value = self._value
        if value is _ABSENT:
            with self.lock:
                value = self._value
                if value is _ABSENT:
                    assert self._packed is not None
                    value = self._value = self._packed.make(
                        self._packed.layout, self._packed.leaves
                    )
        return value

    def set(self, value: T) -> None:
        """Put another value into the cell."""
        if RECORDINGS.count:
            recording = recording_here.get()
            if recording is not None:
                recording.put(self, value)
                return
        with self.lock:
            self._value, self._packed = value, None

    @property
    def packed(self) -> Packed | None:
        """The content in parts, if somebody took it apart."""
        return self._packed

    def keep_packed(self, value: Any, packed: Packed) -> None:
        """Remember the parts of ``value``, unless the content has changed meanwhile."""
        with self.lock:
            if self._value is value:
                self._packed = packed

    def pack(self, packed: Packed) -> None:
        """Set a content by its parts; it is made when somebody asks for it."""
        with self.lock:
            self._packed, self._value = packed, _ABSENT

    def swap(self, before: Packed, after: Packed) -> bool:
        """Set a content by its parts if it is still ``before``, and say whether it was."""
        with self.lock:
            if self._packed is not before:
                return False
            self._packed, self._value = after, _ABSENT
            return True

    def __reduce__(self) -> Any:
        return Cell, (self.current(),)

    def __repr__(self) -> str:
        return f"Cell({self.current()!r})"


register_state(Cell, lambda cell: (cell,), lambda _: None)
