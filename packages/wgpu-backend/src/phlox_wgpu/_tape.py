"""Notes of the kernels that run, so that they can run again without the ops."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, final

from ._array import GpuArray, Storage
from ._engine import Buffer, Pipeline


class Noted(NamedTuple):
    """A dispatch: what it binds, of which it writes the last ``written``, and its parameters."""

    pipeline: Pipeline
    storages: tuple[Storage, ...]
    written: int
    params: bytes
    grid: tuple[int, int, int]


@final
@dataclass(slots=True)
class Tape:
    """What happened on a device while one function ran under its lock.

    Attributes:
        noted: the dispatches, in order. They hold their buffers, so that the pool reuses none.
        made: the storages that were taken from the pool.
        filled: those of them that got their content from the host.
        whole: False once the host read something, as what followed may depend on the values.
    """

    noted: list[Noted] = field(default_factory=list)
    made: set[Storage] = field(default_factory=set)
    filled: set[Storage] = field(default_factory=set)
    whole: bool = True

    def note(
        self,
        pipeline: Pipeline,
        inputs: Sequence[GpuArray],
        outputs: Sequence[GpuArray],
        params: Sequence[float],
        grid: tuple[int, int, int],
    ) -> None:
        """Add a dispatch."""
        storages = tuple([array.storage for array in (*inputs, *outputs)])
        packed = pipeline.pack(params) if pipeline.slot else b""
        self.noted.append(Noted(pipeline, storages, len(outputs), packed, grid))


@final
class Scratch:
    """Buffers for values that no repeated function returns; all such functions share them.

    One queue runs everything in order: when a function writes them, those before it are done.
    """

    def __init__(self) -> None:
        """Hold nothing."""
        self.generation = 0  # how often they were cleared
        self._held: dict[int, list[Storage]] = {}
        self._taking: list[Storage] = []

    def take(self, sizes: Sequence[int], make: Callable[[int], Storage]) -> list[Buffer]:
        """Return a buffer for each of the sizes, no two the same."""
        buffers: list[Buffer] = []
        used: Counter[int] = Counter()
        self._taking = taking = []
        for size in sizes:
            if used[size] == len(self._held.setdefault(size, [])):
                made = make(size)  # may clear, where memory is short
                self._held.setdefault(size, []).append(made)
            taking.append(self._held[size][used[size]])
            buffers.append(taking[-1].buffer)
            used[size] += 1
        self._taking = []
        return buffers

    def clear(self) -> None:
        """Give all buffers back to the pool but those that are being taken."""
        self.generation += 1
        self._held = {}
        for storage in self._taking:
            self._held.setdefault(storage.buffer.nbytes, []).append(storage)
