"""The cells that a recorded run reads: who owns them, and what other threads do with them."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from types import FrameType
from typing import Any, Final, NamedTuple, TypeVar, final

from phlox_tensor.capture import (
    STATEFUL,
    Cell,
    NeedsValue,
    Number,
    Packed,
    Recording,
    is_stream,
    itself,
)

from .. import refused
from ..trees.layout import Layout, flatten

T = TypeVar("T")


class Owner(NamedTuple):
    """Which of the objects with state that arguments and cells bring, in one count."""

    number: int


class CellOf(NamedTuple):
    """A cell of such an object, which another call may have another one for."""

    owner: Owner
    place: int
    cells: Callable[[Any], tuple[Cell[Any], ...]]


# How a trace knows a cell: of an argument by its place, any other by itself.
Key = Cell[Any] | CellOf


# Which number: of the arguments (None) or of a cell, by its place among the leaves there.
Pin = tuple[Key | None, int]
EVERY: Final[Pin] = (None, -1)


class StartAgain(BaseException):
    """A run used numbers as what only plain values can be, and starts again with those."""

    def __init__(self, pins: frozenset[Pin]) -> None:
        super().__init__(pins)
        self.pins: Final = pins


@final
class Inputs:
    """What one run was given: objects with state, and numbers."""

    def __init__(self, pins: frozenset[Pin]) -> None:
        self.pins: Final = pins
        self._numbers: dict[int, Pin] = {}
        self._found: dict[int, Owner] = {}
        self._cells: dict[Cell[Any], CellOf] = {}

    def add(self, item: Any) -> Owner:
        """Note an object that is given anew at each call."""
        owner = Owner(len(self._found))
        cells = STATEFUL[type(item)].cells
        own = {cell: CellOf(owner, at, cells) for at, cell in enumerate(cells(item))}
        if id(item) in self._found or not self._cells.keys().isdisjoint(own):
            raise refused.reached_twice(item)
        self._found[id(item)] = owner
        self._cells |= own
        return owner

    def number(self, made: Recording, pin: Pin, value: Any) -> tuple[Number, Any]:
        """Return a number that is given anew at each call, and what the function gets for it."""
        number = made.given(value)
        self._numbers[number.place] = pin
        return number, number.ask(itself) if {pin, EVERY} & self.pins else number

    def pinned(self, made: Recording, error: BaseException) -> frozenset[Pin]:
        """Which numbers have to be plain values after an error, beside those that are.

        Functions of other languages take no numbers but Python's own: where one says so, these are
        the numbers at hand where it was called, or else all arguments.
        """
        if isinstance(error, NeedsValue):
            return frozenset(self._numbers[place] for place in error.given) - self.pins
        step = error.__traceback__
        while step is not None and step.tb_next is not None:
            step = step.tb_next
        found = set[Pin]() if step is None else self.near(made, step.tb_frame)
        rest = {pin for pin in self._numbers.values() if pin[0] is None} - self.pins
        return frozenset(found or rest)

    def near(self, made: Recording, frame: FrameType) -> set[Pin]:
        """Which numbers stand in the names of a frame, and in containers there."""
        found = [*frame.f_locals.values()]
        for item in [*found]:
            if type(item) in (dict, list, tuple):
                found += item.values() if type(item) is dict else item
        numbers = [x for x in found if type(x) is Number and made.has(x)]
        return {self._numbers[place] for x in numbers for place in made.given_for(x)} - self.pins

    def of(self, item: Any) -> Owner | None:
        """Which one an object is; None for any other."""
        return self._found.get(id(item))

    def key(self, cell: Cell[Any]) -> Key:
        """How a trace knows a cell."""
        return self._cells.get(cell, cell)


def cells_of(keys: Iterable[Key], refs: Sequence[Any], leaves: Sequence[Any]) -> list[Cell[Any]]:
    """Return the cells that keys stand for, where leaves are what refs stand for."""
    owners = {r: leaf for r, leaf in zip(refs, leaves, strict=True) if type(r) is Owner}
    return [
        key.cells(owners[key.owner])[key.place] if isinstance(key, CellOf) else key for key in keys
    ]


def packed(cell: Cell[Any]) -> Packed:
    """Return the content of a cell in parts, taken apart now where nobody has."""
    found = cell.packed
    if found is None or not isinstance(found.layout, Layout):
        value = cell.current()
        layout, leaves, _ = flatten(value, "state in a cell")
        found = layout.pack(leaves)
        cell.keep_packed(value, found)
    return found


_FAR: Final = 2**40  # blocks of random numbers: more than one run draws


@final
class Shared:
    """The cells that a recorded run reads, which other threads may read and set meanwhile."""

    def __init__(self, contents: dict[Cell[Any], Packed]) -> None:
        self._read = contents
        self._far: dict[Cell[Any], Packed] = {}  # streams: where others go on

    def read(self, cell: Cell[Any]) -> Packed:
        """Return the content of a cell; who else draws from a stream goes on far behind it."""
        if cell in self._read:
            return self._read[cell]
        with cell.lock:
            found = self._read[cell] = packed(cell)
            if is_stream(cell):
                key, first = found.leaves
                far = found._replace(leaves=[key, (first + _FAR) % 2**64])
                self._far[cell] = far
                cell.pack(far)
        return found

    def left_by(
        self, made: Recording, take: Callable[[Any], tuple[T, Packed]], *, back: bool
    ) -> Iterator[tuple[Cell[Any], T, Packed]]:
        """Set the cells that a run set, and streams that it only read to where they were.

        Args:
            back: it goes back through an earlier one, and leaves no state.
        """
        try:
            for cell, value in made.outcomes.items():
                place, content = take(value)
                if not back:
                    self._leave(cell, content)
                yield cell, place, content
        finally:
            for cell, far in self._far.items():
                cell.swap(far, self._read[cell])

    def _leave(self, cell: Cell[Any], content: Packed) -> None:
        """Set a cell to what the run leaves in it."""
        before = self._read.get(cell)
        with cell.lock:
            far = self._far.pop(cell, None)
            others = before is not None and cell.packed is not (far or before)
            if others and far is not None and far.leaves[0] == content.leaves[0]:
                return  # another thread goes on with this stream, behind all that was drawn here
            cell.pack(content)
        if others and far is None:
            warnings.warn(
                "[compile] another thread set a Cell while a function was recorded that sets it "
                "too, and what it had set is lost\n"
                "hint: call the compiled function twice before the threads start",
                stacklevel=2,
            )
