"""A group of threads in one process: the protocol a second time, for tests."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from itertools import accumulate, pairwise
from typing import Any

import numpy as np

from phlox_tensor.groups import Group, TreeSum, absent_of, share_of, tree_sum

MAKING = threading.Lock()  # of models: the seed of weights is that of the process


class Shared:
    """What the ranks of a group of threads have in common."""

    def __init__(self, size: int) -> None:
        self.barrier = threading.Barrier(size)
        self.slots: list[Any] = [None] * size


class Threads:
    """One rank of a group of threads."""

    def __init__(self, shared: Shared, rank: int) -> None:
        self._shared = shared
        self.rank = self.local_rank = rank
        self.size = self.local_size = len(shared.slots)
        self.calls: list[tuple[str, int]] = []  # with the bytes that leave this rank

    def all_to_all(
        self, send: Any, send_counts: Sequence[int], receive: Any, receive_counts: Sequence[int]
    ) -> None:
        assert send.flags.c_contiguous
        assert receive.flags.c_contiguous
        assert send.ndim == receive.ndim == 1
        assert (sum(send_counts), sum(receive_counts)) == (send.size, receive.size)
        self.calls.append(("all_to_all", send.nbytes - send_counts[self.rank] * send.itemsize))
        places = [0, *accumulate(send_counts)]
        pieces = [send[low:high] for low, high in pairwise(places)]
        found = [theirs[self.rank] for theirs in self._swap(pieces)]
        assert [piece.size for piece in found] == list(receive_counts)
        receive[...] = np.concatenate(found)
        self.barrier()

    def all_gather(self, send: Any, receive: Any, counts: Sequence[int]) -> None:
        assert send.ndim == receive.ndim == 1
        assert sum(counts) == receive.size
        self.calls.append(("all_gather", send.nbytes))
        found = self._swap(send)
        assert [piece.size for piece in found] == list(counts)
        receive[...] = np.concatenate(found)
        self.barrier()

    def broadcast(self, buffer: Any, root: int = 0) -> None:
        found = self._swap(buffer)[root]
        assert (found.shape, found.dtype) == (buffer.shape, buffer.dtype)
        if self.rank != root:
            buffer[...] = found
        self.barrier()

    def barrier(self) -> None:
        self._shared.barrier.wait(30)

    def _swap(self, mine: Any) -> list[Any]:
        self._shared.slots[self.rank] = mine
        self.barrier()
        return list(self._shared.slots)


def together(size: int, function: Callable[[Threads], Any]) -> list[Any]:
    """What a function gives on each rank of a group of threads, or the first error of one."""
    shared = Shared(size)
    results: list[Any] = [None] * size
    errors: list[BaseException] = []

    def run(rank: int) -> None:
        try:
            results[rank] = function(Threads(shared, rank))
        except BaseException as error:
            errors.append(error)
            shared.barrier.abort()

    threads = [threading.Thread(target=run, args=(rank,)) for rank in range(size)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if errors:
        raise next(
            (e for e in errors if not isinstance(e, threading.BrokenBarrierError)), errors[0]
        )
    return results


def leaves_of(count: int, elements: int, dtype: str = "float32") -> Any:
    """Numbers of many sizes, so that no two orders of a sum agree."""
    rng = np.random.default_rng(count)
    scale = 10.0 ** rng.integers(-3, 4, (count, elements))
    return (rng.normal(size=(count, elements)) * scale).astype(dtype)


def summed(group: Group, leaves: Any, there: Any = None) -> Any:
    """The sum of rows of leaves, each computed by the rank that it belongs to."""
    mine = share_of(len(leaves), group.rank, group.size)
    local: TreeSum[Any] = TreeSum(mine.start)
    for leaf in mine:
        local.add(leaves[leaf] if there is None or there[leaf] else None)
    absent = np.full(leaves.shape[1], absent_of(leaves.dtype))
    rows = [absent if value is None else value for _, value in local.parts()]
    held = np.stack(rows) if rows else np.empty((0, leaves.shape[1]), leaves.dtype)
    return tree_sum(group, len(leaves), held)
