"""Memory that processes share: a file without a name, in which each batch under way has a slot."""

from __future__ import annotations

import os
import pickle
import tempfile
from mmap import mmap
from multiprocessing.connection import Connection
from typing import Any, Final, NamedTuple, final
from weakref import finalize

import numpy as np
from numpy.typing import NDArray

from phlox_tensor import tree

from ._batch import array_of

_ALIGNED: Final = 64
_SIZE: Final = 8


class Column(NamedTuple):
    """Where the rows of a leaf lie in a slot."""

    start: int
    shape: tuple[int, ...]
    dtype: str


class Layout(NamedTuple):
    """What items look like: the structure, and a column for each leaf that is an array."""

    structure: Any
    columns: tuple[Column | None, ...]
    size: int


def layout_of(item: Any, rows: int) -> Layout | None:
    """Return how so many items like one lie in a slot; None where no leaf of it is an array."""
    leaves, structure = tree.flatten(item, leaf=list)
    columns: list[Column | None] = []
    size = 0
    for leaf in leaves:
        array = array_of(leaf)
        if array is None or array.dtype.hasobject:
            columns.append(None)
            continue
        columns.append(Column(size, array.shape, array.dtype.str))
        size += -(-rows * array.nbytes // _ALIGNED) * _ALIGNED
    return Layout(structure, tuple(columns), size) if size else None


def place(
    items: list[Any], layout: Layout, memory: memoryview, first: int
) -> list[list[Any]] | None:
    """Write items into the rows of a slot from the first on, and return what is no array.

    None says that an item is not like the layout: nothing may be read from the slot then.
    """
    others = []
    for row, item in enumerate(items, first):
        leaves, structure = tree.flatten(item, leaf=list)
        if structure != layout.structure:
            return None
        rest = []
        for leaf, column in zip(leaves, layout.columns, strict=True):
            array = array_of(leaf)
            if column is None:
                if array is not None:
                    return None
                rest.append(leaf)
                continue
            if array is None or array.shape != column.shape or array.dtype.str != column.dtype:
                return None
            _column(memory, column, row + 1)[row] = array
        others.append(rest)
    return others


def _column(memory: memoryview | NDArray[np.uint8], column: Column, rows: int) -> NDArray[Any]:
    dtype = np.dtype(column.dtype)
    shape = (rows, *column.shape)
    end = column.start + dtype.itemsize * int(np.prod(shape))
    flat = (
        np.frombuffer(memory[column.start : end], dtype)
        if isinstance(memory, memoryview)
        else memory[column.start : end].view(dtype)
    )
    return flat.reshape(shape)


@final
class Slots:
    """The slots for batches, in the process that hands them out.

    A slot is used again when the arrays that were made of it are gone; where somebody keeps them
    the file grows.
    """

    def __init__(self) -> None:
        self._file = _file()
        self.handle: Final = Connection(self._file)  # pickles together with its descriptor
        self.layout: Layout | None = None
        self._free: list[int] = []
        self._end = 0
        self._map: mmap | None = None

    def describe(self, item: Any, rows: int) -> None:
        """Take the layout of an item, which workers read, pickled, at the start of the file."""
        self.layout = layout_of(item, rows)
        data = pickle.dumps((item, rows))
        self._end = -(-(_SIZE + len(data)) // _ALIGNED) * _ALIGNED
        os.pwrite(self._file, len(data).to_bytes(_SIZE, "little") + data, 0)

    def take(self) -> int:
        """Return the offset of a free slot in the file."""
        assert self.layout is not None
        if self._free:
            return self._free.pop()
        start, self._end = self._end, self._end + self.layout.size
        os.ftruncate(self._file, self._end)
        self._map = mmap(self._file, self._end)  # older maps live as long as arrays on them
        return start

    def give(self, start: int) -> None:
        """Mark the slot at an offset as free."""
        self._free.append(start)

    def batch(self, start: int, rows: int, others: list[list[Any]]) -> Any:
        """Return the batch of a slot, whose arrays are the slot's own memory."""
        layout = self.layout
        assert layout is not None
        assert self._map is not None
        whole = np.frombuffer(self._map, np.uint8, layout.size, start)
        finalize(whole, self.give, start)  # after the last column, as each is a view of it
        lists = iter(zip(*others, strict=True)) if others and others[0] else iter(())
        return layout.structure.rebuild(
            [
                [*next(lists)] if column is None else _column(whole, column, rows)
                for column in layout.columns
            ]
        )

    def close(self) -> None:
        """Let the file go; it is there until the last array of it is gone."""
        self.handle.close()


@final
class Window:
    """The same memory in a worker, which writes into it."""

    def __init__(self, handle: Connection) -> None:
        self._handle = handle
        self._map: mmap | None = None
        self._layout: Layout | None = None

    def place(self, items: list[Any], start: int, first: int) -> list[list[Any]] | None:
        """Write items into the slot at offset ``start``, by the function ``place``."""
        file = self._handle.fileno()
        if self._layout is None:
            size = int.from_bytes(os.pread(file, _SIZE, 0), "little")
            self._layout = layout_of(*pickle.loads(os.pread(file, size, _SIZE)))
            assert self._layout is not None
        end = start + self._layout.size
        if self._map is None or len(self._map) < end:
            self._map = mmap(file, 0)
        return place(items, self._layout, memoryview(self._map)[start:end], first)


def _file() -> int:
    if hasattr(os, "memfd_create"):
        return os.memfd_create("phlox-data")
    with tempfile.TemporaryFile() as file:  # without a name, too, once it is open
        return os.dup(file.fileno())
