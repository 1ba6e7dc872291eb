"""Functions of ops that run again and again: their dispatches are repeated without the ops."""

from __future__ import annotations

from collections import defaultdict, deque
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

_KEPT = 8  # scripts of one function, by layouts of its operands
_MOST_SCRATCH = 1 << 26  # bytes for one function: kernels on more take longer than the ops' Python
# A kernel waits for all before it where it writes to a buffer that one of those used. So buffers of
# few bytes are used again when so many kernels have run, which engines submit together at most.
_FEW_BYTES, _REST = 1 << 16, 128


class _Result(NamedTuple):
    """A result of a script: which storage it shows, and how."""

    place: int  # of its storage in the row of those of operands, new ones and kept ones
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    offset: int
    dtype: DType
    newest: bool  # of the arrays that show its storage: the next `append_at` may write there

    def over(self, storages: Sequence[Storage]) -> GpuArray:
        return GpuArray(storages[self.place], self.shape, self.strides, self.offset, self.dtype)


class _Script(NamedTuple):
    """How to do again what a function did for operands of one layout.

    Attributes:
        generation: of the scratch buffers that it binds; those of an earlier one are gone.
        run: the dispatches.
        new: the sizes in bytes of the buffers that are made for results in each call.
        kept: storages that results show in each call, as no dispatch writes them.
        results: what the function returns.
        held: storages that the dispatches bind, which might be freed otherwise.
    """

    generation: int
    run: Any
    new: tuple[int, ...]
    kept: tuple[Storage, ...]
    results: tuple[_Result, ...]
    held: Any


@final
class _Known:
    """The script for operands of one layout; ``refused`` where there can be none."""

    script: _Script | None = None
    refused: bool = False


@final
class Repeated:
    """A function of arrays: a first call for a layout notes dispatches, later ones repeat them."""

    def __init__(self, device: GpuDevice, run: Run) -> None:
        """Keep the function."""
        self._device = device
        self._run = run
        self._known: Recent[Any, _Known] = Recent(_KEPT)

    def __call__(self, operands: Sequence[GpuArray]) -> tuple[GpuArray, ...]:
        """Run the function, or repeat its dispatches."""
        first: dict[Storage, int] = {}
        key = tuple(
            [
                (x.shape, x.strides, x.offset, first.setdefault(x.storage, place), is_newest(x))
                for place, x in enumerate(operands)
            ]
        )
        with self._device.lock:
            known = self._known.get(key) or self._known.find(key, _Known)
            # While another function is noted, the ops run, so that its tape gets their dispatches.
            if not known.refused and self._device.tape is None:
                return self._again(known, operands)
        return self._run(operands)

    def _again(self, known: _Known, operands: Sequence[GpuArray]) -> tuple[GpuArray, ...]:
        device, script = self._device, known.script
        if script is None:
            return self._noted(known, operands)
        storages = [x.storage for x in operands]
        storages += [device.storage(nbytes) for nbytes in script.new]
        if script.generation != device.scratch.generation:  # cleared, as memory was short
            return self._noted(known, operands)
        table = [storage.buffer for storage in storages]
        device.record_again(script.run, table, script.held)
        storages += script.kept
        results = tuple([result.over(storages) for result in script.results])
        for planned, array in zip(script.results, results, strict=True):
            if planned.newest:
                array.storage.newest = ref(array)
        return results

    def _noted(self, known: _Known, operands: Sequence[GpuArray]) -> tuple[GpuArray, ...]:
        """Run the function, and note how to repeat it."""
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
    """Return a script of a tape; None where repeating would differ, or take much memory."""
    places: dict[Storage, int] = {}
    for place, x in enumerate(operands):
        places.setdefault(x.storage, place)
    local = tape.made - tape.filled  # made by the function, with nothing from the host in them
    written = {s for one in tape.noted for s in one.storages[len(one.storages) - one.written :]}
    rooms = {x.storage for x in operands if x.storage.newest}  # `append_at` writes its operand
    if not tape.whole or not written <= local | rooms:
        return None
    shown = list(dict.fromkeys(r.storage for r in results if r.storage not in places))
    new = [storage for storage in shown if storage in local]
    kept = [storage for storage in shown if storage not in local]
    places |= {storage: len(operands) + n for n, storage in enumerate([*new, *kept])}
    slots, sizes = _slots(tape.noted, local - {*new})
    if sum(sizes) > _MOST_SCRATCH:
        return None
    scratch = device.scratch.take(sizes, device.storage)
    by_call = {storage: place for storage, place in places.items() if storage not in {*kept}}
    bound = {storage: scratch[slot] for storage, slot in slots.items()} | by_call
    noted = [
        (one.pipeline, [bound.get(s, s.buffer) for s in one.storages], one.params, one.grid)
        for one in tape.noted
    ]
    return _Script(
        generation=device.scratch.generation,
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
    """Give each inner storage a slot; several that are never in use together get the same one.

    Returns:
        The slot of each storage, and the size in bytes of each slot.
    """
    last = {s: place for place, one in enumerate(noted) for s in one.storages}
    slots: dict[Storage, int] = {}
    sizes: list[int] = []
    free: defaultdict[int, deque[tuple[int, int]]] = defaultdict(deque)  # from when on
    for place, one in enumerate(noted):
        used = [s for s in dict.fromkeys(one.storages) if s in inner]
        for storage in used:
            if storage not in slots:
                size = storage.buffer.nbytes
                known = free[size]
                if known and known[0][0] <= place:
                    slots[storage] = (known.popleft() if size <= _FEW_BYTES else known.pop())[1]
                else:
                    slots[storage] = len(sizes)
                    sizes.append(size)
        for storage in used:
            if last[storage] == place:
                size = storage.buffer.nbytes
                free[size].append((place + (_REST if size <= _FEW_BYTES else 0), slots[storage]))
    return slots, sizes
