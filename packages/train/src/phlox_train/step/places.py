"""Where each rank is: ranks that exchange have to be at the same step and batch."""

from __future__ import annotations

from concurrent.futures import Future
from typing import Any, Final, final
from weakref import WeakKeyDictionary
from zlib import crc32

import numpy as np

from phlox_tensor import ArgumentError, Tensor, tree
from phlox_tensor.groups import Group, all_gather_object, differing, notes_in_step

_SAMPLES: Final = 256  # elements of an array that are compared
_ROWS: Final = 8  # rows of a loader that are compared
_KNOWN: Final[WeakKeyDictionary[Any, dict[str, Any]]] = WeakKeyDictionary()  # facts of loaders
_HOST: Final = frozenset({"cpu", "numpy"})


def checked_barrier(group: Group, place: str, note: int = 0) -> list[int]:
    """Wait for the others, and refuse ranks that are elsewhere: what they send would be mixed up.

    Returns:
        The number below 2**64 that each rank gives.

    Raises:
        ArgumentError: on all ranks, saying where each is.
    """
    notes = notes_in_step(group, place, note)
    if notes is not None:
        return notes
    got = "; ".join(f"{theirs} on rank {ranks}" for theirs, _, ranks in differing(group, place))
    hint = "leave out a batch, a step or an evaluation on all ranks, or on none"
    what, expected = "ranks are out of step", "the same step and batch on all ranks"
    raise ArgumentError("group", what, got=got, expected=expected, hint=hint)


@final
class Arrival:
    """Meets the others once, before the first exchange of a step."""

    def __init__(self, group: Group, place: str) -> None:
        """Note where this rank is; it waits for nobody yet."""
        self._group, self._place = group, place
        self._note = 0
        self._met: Future[list[int]] = Future()

    def announce(self, note: int) -> bool:
        """Give the others a number when they meet; False where they have met already."""
        self._note = note
        return not self._met.done()

    def again(self, note: int) -> list[int]:
        """Meet once more, and return the numbers of all ranks."""
        return checked_barrier(self._group, self._place, note)

    def __call__(self) -> list[int]:
        """Meet, and return the numbers of all ranks; every later call ends as the first one did."""
        if not self._met.done():
            try:
                notes = checked_barrier(self._group, self._place, self._note)
            except Exception as error:
                self._met.set_exception(error)
            else:
                self._met.set_result(notes)
        return self._met.result()


def fingerprint(batch: Any, *, everywhere: bool = False) -> int:
    """Return a number of some elements of a batch, those of arrays and tensors on the host.

    Args:
        everywhere: read tensors of other devices too, which waits for them.
    """
    found = 0
    for leaf in tree.leaves(batch):
        array = leaf
        if isinstance(leaf, Tensor) and (everywhere or leaf.device.base.name in _HOST):
            array = leaf.numpy()
        if isinstance(array, np.ndarray) and not array.dtype.hasobject:
            flat = array.reshape(-1)[:: max(1, array.size // _SAMPLES)]
            found = crc32(flat.tobytes(), crc32(repr(array.shape).encode(), found))
        elif isinstance(leaf, str):
            found = crc32(leaf.encode(), found)
    return found


def require_same_batches(group: Group, batches: Any, op: str) -> None:
    """Refuse loaders that differ between ranks: each deals rows of its own, and the rest is lost.

    Raises:
        ArgumentError: on all ranks, naming what differs on which.
    """
    if group.size == 1:
        return
    checked_barrier(group, f"the start of {op}")
    first, *others = all_gather_object(group, _facts(batches))
    for rank, other in enumerate(others, 1):
        for name in dict.fromkeys([*first, *other]):
            one, two = first.get(name, "none"), other.get(name, "none")
            if one == two or None in (one, two):
                continue
            raise ArgumentError(
                op,
                f"the batches of ranks differ in {name}",
                got=f"{one} on rank 0, {two} on rank {rank}",
                expected="the whole data on each rank, in one order, of which each takes its share",
                hint="data.DataLoader(dataset, 64, shuffle=True), the same on all ranks",
            )


def _facts(batches: Any) -> dict[str, Any]:
    """What tells loaders apart: sizes, seed, order, and some of their rows."""
    if not hasattr(batches, "at") or not hasattr(batches, "into_record"):
        return {"length": len(batches)} if hasattr(batches, "__len__") else {}
    if (known := _KNOWN.get(batches)) is not None:
        return known
    facts = {k: v for k, v in batches.into_record().items() if k not in ("epoch", "number")}
    one = batches.part(0, 1, facts["batch"]) if batches.splits else batches
    last, count = len(one) - 1, _ROWS if batches.splits else 2
    for number in sorted({k * last // (count - 1) for k in range(count)}):
        marks = {fingerprint(one.at(0, number), everywhere=True) for _ in range(2)}
        # None where a dataset gives other numbers each time, as from a generator of its own.
        mark = f"{marks.pop():08x}" if len(marks) == 1 else None
        facts[f"the first row of batch {number}"] = mark
    _KNOWN[batches] = facts
    return facts
