"""Memory that the GPUs of one machine have in common: what they add up needs no host.

Each GPU writes to its own memory and reads that of the others. What is called behind that is kept
back until all have written. So nobody waits for a step but the GPU: the next one is recorded
meanwhile.
"""

from __future__ import annotations

import mmap
from collections.abc import Callable, Sequence
from functools import cache
from itertools import accumulate
from typing import Any, Final, TypeAlias, final

import numpy as np
from numpy.typing import NDArray

from phlox_tensor import Backend, DType, Tensor, asarray
from phlox_tensor.groups import Group, TreeSum, all_gather_object, all_nodes
from phlox_tensor.names import warn_user

from .small import Form

# Of each bucket the element type, and how many elements.
Kinds: TypeAlias = tuple[tuple[DType, int], ...]

_APART: Final = 256  # bytes, of which what is put begins at a multiple
_SMALL: Final = 1 << 16  # bytes for what is small, at least
_PROBE: Final = mmap.mmap(-1, mmap.PAGESIZE)  # what a GPU took stays until the process ends


@final
class Memory:
    """Memory of all ranks. It is there twice, and meetings take turns.

    When all ranks have put values there and meet, all have read those of the meeting before, whose
    memory is written next. A step that fails before it meets has its half written again.
    """

    def __init__(self, exchange: GpuExchange, nbytes: int, halves: Sequence[Any]) -> None:
        """Take what a device makes of the memory of each rank, of each half, which is so large."""
        self._exchange, self.base, self.nbytes = exchange, exchange.base, nbytes
        self._halves = halves

    def put(self, value: Tensor[Any], at: int) -> None:
        """Write a tensor to the memory of this rank, after all calls before."""
        flat = value.detach().to_device(self.base).reshape(-1)
        half = self._halves[(self._exchange.turn + 1) % 2]
        half[self._exchange.group.rank].put(flat.primitive, at)

    def found(self, rank: int, count: int, dtype: DType, at: int) -> Tensor[Any]:
        """Return what a rank put before the last meeting: what is there when it is read."""
        half = self._halves[self._exchange.turn % 2]
        return Tensor(half[rank].array(count, dtype, at), self.base)


@final
class GpuExchange:
    """What carries values of the GPUs of one machine.

    Attributes:
        turn: how often the ranks have met.
    """

    def __init__(self, group: Group, base: Backend) -> None:
        """Begin without memory.

        Args:
            group: the ranks, all of them on this machine.
            base: the device that computes.
        """
        self.group, self.base = group, base
        self._here: Any = None  # the memory of this rank
        self._words: list[NDArray[Any]] = []
        self.turn = 0
        self._wait: Callable[[], None] | None = None
        self._held: dict[str, Memory] = {}
        self._refused: int | None = None  # bytes
        self._rows: dict[Any, Rows] = {}

    def memory(self, use: str, nbytes: int) -> Memory | None:
        """Return memory of all ranks, which a use keeps while it is large enough. All call.

        None where a GPU does not see that of another, or where there was no room for so much.
        """
        held = self._held.get(use)
        if held is not None and held.nbytes >= nbytes:
            return held
        if self._refused is not None and nbytes >= self._refused:
            return None
        # What the GPU took stays until the process ends, so each is twice as large as the last.
        found = self._allocated(max(nbytes, 0 if held is None else 2 * held.nbytes))
        if found is None:
            if self._refused is None and self.group.rank == 0:
                _warn(nbytes)
            self._refused = nbytes
        else:
            self._held[use] = found
        return found

    def _allocated(self, nbytes: int) -> Memory | None:
        nbytes = -(-nbytes // mmap.PAGESIZE) * mmap.PAGESIZE
        ask: Any = self.group
        views = ask.memory(2 * nbytes + 2 * mmap.PAGESIZE)  # a page for the word, one to begin at
        if views is None:
            return None
        pages = [_pages(view, 2 * nbytes + mmap.PAGESIZE) for view in views]
        if not self._words:
            self._words = [page[:4].view(np.uint32) for page in pages]
            self._words[self.group.rank][:] = 0
        low = mmap.PAGESIZE
        halves = [
            [self.base.shared(page[at : at + nbytes]) for page in pages]
            for at in (low, low + nbytes)
        ]
        if not all(all_gather_object(self.group, all(None not in half for half in halves))):
            return None
        self._here = halves[0][self.group.rank]
        return Memory(self, nbytes, halves)

    def rows(self, leaves: int, kinds: Kinds) -> Rows | None:
        """Return where buckets of these kinds are added up, the same in each step."""
        key = leaves, kinds
        if key not in self._rows:
            self._rows[key] = Rows(self.group, leaves, kinds)
        rows = self._rows[key]
        rows.memory = self.memory("rows", rows.nbytes)
        return None if rows.memory is None else rows

    def carried(
        self, flats: Sequence[Tensor[Any]], forms: Sequence[Form]
    ) -> list[list[Tensor[Any]]] | None:
        """Return the tensors of all ranks, which travel with all that was put in this step.

        None where there is no room for them.
        """
        widths = [[_wide(*flat) for flat in form.flats] for form in forms]
        small = self.memory("small", max(*map(sum, widths), _SMALL))
        if small is not None:
            at = 0
            for flat, width in zip(flats, widths[self.group.rank], strict=True):
                small.put(flat, at)
                at += width
        self._keep_back()
        if small is None:
            return None
        # Copies, as what is a state is read in later steps too.
        return [
            [
                asarray(small.found(rank, count, dtype, at), copy=True)
                for (dtype, count), at in zip(form.flats, accumulate(theirs, initial=0))  # noqa: B905 - and the end
            ]
            for rank, (form, theirs) in enumerate(zip(forms, widths, strict=True))
        ]

    def _keep_back(self) -> None:
        """Keep back what is called from now on until all ranks have put what they did before."""
        if self._wait is not None:  # no more than a step is on its way
            self._wait()
        self.turn += 1
        self._wait = self._here.meet(self._words, self.group.rank, self.turn)


@final
class Rows:
    """Where buckets of all ranks are, and their sums."""

    def __init__(self, group: Group, leaves: int, kinds: Kinds) -> None:
        """Lay out the rows of each rank: one for each node of its share of the tree."""
        self._rank, self._kinds = group.rank, kinds
        self._nodes = all_nodes(leaves, group.size)
        rows = max(map(len, self._nodes))
        self._widths = [_wide(*kind) for kind in kinds]
        *self._starts, self.nbytes = accumulate((w * rows for w in self._widths), initial=0)
        self.memory: Memory | None = None

    def put(self, number: int, rows: Sequence[Tensor[Any]]) -> None:
        """Write the rows of a bucket of this rank, after all calls before."""
        assert self.memory is not None
        for k, row in enumerate(rows):
            self.memory.put(row, self._starts[number] + k * self._widths[number])

    def summed(self, number: int, own: Sequence[Tensor[Any]]) -> Tensor[Any]:
        """Return the sum of a bucket over all ranks, of which this one has its rows at hand."""
        assert self.memory is not None
        dtype, count = self._kinds[number]
        total: TreeSum[Tensor[Any]] = TreeSum()
        for rank, nodes in enumerate(self._nodes):
            for k, node in enumerate(nodes):
                if rank == self._rank:
                    total.join(node, own[k].to_device(self.memory.base))
                else:
                    place = self._starts[number] + k * self._widths[number]
                    total.join(node, self.memory.found(rank, count, dtype, place))
        return total.value()


def gpu_exchange_of(group: Group, base: Backend) -> GpuExchange | None:
    """Return what carries values of GPUs of one machine; None where there is no such thing.

    All that trains in a group has one: its memory stays until the process ends.
    """
    if not hasattr(group, "memory") or group.local_size < group.size:
        return None
    ranks: Any = group  # all that have memory are told apart by identity
    return _exchange_of(ranks, base)


@cache
def _exchange_of(group: Group, base: Backend) -> GpuExchange | None:
    if not all(all_gather_object(group, base.shared(np.frombuffer(_PROBE, np.uint8)) is not None)):
        return None
    return GpuExchange(group, base)


def _pages(view: NDArray[Any], nbytes: int) -> NDArray[Any]:
    """The whole pages of a view: the same ones in each process."""
    skip = -view.ctypes.data % mmap.PAGESIZE
    return view[skip : skip + nbytes]


def _wide(dtype: DType, count: int) -> int:
    """Bytes of so many elements, up to where the next ones may begin."""
    size = 4 if dtype.name == "bool" else dtype.itemsize  # a GPU has no bytes
    return -(-size * count // _APART) * _APART


def _warn(nbytes: int) -> None:
    text = f"GPUs share no {nbytes} bytes of memory: what they add up goes through the host, slower"
    warn_user(f"[Learner] {text}\nhint: more room in /dev/shm, such as docker run --shm-size=8g")
