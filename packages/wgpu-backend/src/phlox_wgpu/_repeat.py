"""Functions of ops that run again and again: their dispatches, handed over without the ops."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import Any, NamedTuple, final
from weakref import ref

from phlox_tensor import DType
from phlox_tensor.capture import Run

from ._append import is_newest
from ._array import GpuArray, Storage
from ._cache import Recent
from ._runtime import GpuDevice
from ._tape import Noted, Tape

_KEPT = 8  # layouts of the operands of one function
_MOST_SCRATCH = 1 << 26  # bytes held for one function; the kernels of a larger one take longer


class _Result(NamedTuple):
    """An array to give: the place of its buffer among operands, new ones and kept ones."""

    place: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    offset: int
    dtype: DType
    newest: bool  # of its storage: the next call may write it

    def over(self, storages: Sequence[Storage]) -> GpuArray:
        return GpuArray(storages[self.place], self.shape, self.strides, self.offset, self.dtype)


class _Script(NamedTuple):
    """What to do for operands of one layout.

    Attributes:
        turn: of the scratch buffers that it binds.
        run: the dispatches.
        new: the sizes of the buffers that results need.
        kept: storages that results show, the same each time.
        results: what to give.
        held: what the dispatches use and nobody else may hold.
    """

    turn: int
    run: Any
    new: tuple[int, ...]
    kept: tuple[Storage, ...]
    results: tuple[_Result, ...]
    held: Any


@final
class _Known:
    """What is known of operands of one layout."""

    script: _Script | None = None
    refused: bool = False


@final
class Repeated:
    """Runs a function of arrays; what it dispatched for one layout is noted, and then repeated."""

    def __init__(self, device: GpuDevice, run: Run) -> None:
        """Keep the function."""
        self._device = device
        self._run = run
        self._known: Recent[Any, _Known] = Recent(_KEPT)

    def __call__(self, operands: Sequence[GpuArray]) -> tuple[GpuArray, ...]:
        """Run the function, or do what it did."""
        first: dict[Storage, int] = {}
        key = tuple(
            [
                (x.shape, x.strides, x.offset, first.setdefault(x.storage, place), is_newest(x))
                for place, x in enumerate(operands)
            ]
        )
        with self._device.lock:
            known = self._known.get(key) or self._known.find(key, _Known)
            # Inside of another one the ops run, so that it notes them.
            if not known.refused and self._device.tape is None:
                return self._again(known, operands)
        return self._run(operands)

    def _again(self, known: _Known, operands: Sequence[GpuArray]) -> tuple[GpuArray, ...]:
        device, script = self._device, known.script
        if script is None:
            return self._noted(known, operands)
        storages = [x.storage for x in operands]
        storages += [device.storage(nbytes) for nbytes in script.new]
        if script.turn != device.scratch.turn:  # memory was short, now or before
            return self._noted(known, operands)
        table = [storage.buffer for storage in storages]
        device.record_again(script.run, table, script.held)
        storages += script.kept
        results = tuple([result.over(storages) for result in script.results])
        for result, made in zip(script.results, results, strict=True):
            if result.newest:
                made.storage.newest = ref(made)
        return results

    def _noted(self, known: _Known, operands: Sequence[GpuArray]) -> tuple[GpuArray, ...]:
        """Run the function and note how to do it again."""
        device = self._device
        device.tape = tape = Tape()
        try:
            results = self._run(operands)
        finally:
            device.tape = None
        known.script = _script(device, tape, operands, results)
        known.refused = known.script is None
        return results


def _script(
    device: GpuDevice, tape: Tape, operands: Sequence[GpuArray], results: Sequence[GpuArray]
) -> _Script | None:
    """Return how to do again what a tape has; None where that would not be the same, or large."""
    places: dict[Storage, int] = {}
    for place, x in enumerate(operands):
        places.setdefault(x.storage, place)
    own = tape.made - tape.filled  # what the dispatches wrote
    writes = {s for one in tape.noted for s in one.storages[len(one.storages) - one.written :]}
    rooms = {x.storage for x in operands if x.storage.newest}  # `append_at` writes its operand
    if not tape.whole or not writes <= own | rooms:
        return None
    shown = list(dict.fromkeys(r.storage for r in results if r.storage not in places))
    new = [storage for storage in shown if storage in own]
    kept = [storage for storage in shown if storage not in own]
    places |= {storage: len(operands) + n for n, storage in enumerate([*new, *kept])}
    slots, sizes = _slots(tape.noted, own - {*new})
    if sum(sizes) > _MOST_SCRATCH:
        return None
    scratch = device.scratch.take(sizes, device.storage)
    anew = {storage: place for storage, place in places.items() if storage not in {*kept}}
    bound = {storage: scratch[slot] for storage, slot in slots.items()} | anew
    noted = [
        (one.pipeline, [bound.get(s, s.buffer) for s in one.storages], one.params, one.grid)
        for one in tape.noted
    ]
    return _Script(
        turn=device.scratch.turn,
        run=device.script(noted),
        new=tuple(storage.buffer.nbytes for storage in new),
        kept=tuple(kept),
        results=tuple(
            _Result(places[r.storage], r.shape, r.strides, r.offset, r.dtype, is_newest(r))
            for r in results
        ),
        held=[s for one in tape.noted for s in one.storages if s not in bound],
    )


def _slots(noted: Sequence[Noted], inner: set[Storage]) -> tuple[dict[Storage, int], list[int]]:
    """Give each inner storage a slot, one slot to several that are not used at the same time.

    Returns:
        The slots, and the size of each.
    """
    last = {s: place for place, one in enumerate(noted) for s in one.storages}
    slots: dict[Storage, int] = {}
    sizes: list[int] = []
    free: defaultdict[int, list[int]] = defaultdict(list)
    for place, one in enumerate(noted):
        mine = [s for s in dict.fromkeys(one.storages) if s in inner]
        for storage in mine:
            if storage not in slots:
                size = storage.buffer.nbytes
                if not free[size]:
                    free[size].append(len(sizes))
                    sizes.append(size)
                slots[storage] = free[size].pop()
        for storage in mine:
            if last[storage] == place:
                free[storage.buffer.nbytes].append(slots[storage])
    return slots, sizes
