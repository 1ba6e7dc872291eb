"""Ranks whose devices see each other's memory add up there, and end in the bits of one process."""

from __future__ import annotations

import threading
from functools import partial
from time import monotonic, sleep
from typing import Any, Final

import numpy as np
import pytest

from phlox import Numpy
from phlox_tensor import DType
from tests.distributed.test_steps import tokens, trained
from tests.distributed.threads import Threads, together

_HERE: Final = threading.local()  # what the rank of this thread called last waits for


class Pages:
    """Memory as a device of this thread sees it: behind a meeting, once all are there."""

    def __init__(self, memory: np.ndarray) -> None:
        assert memory.ctypes.data % 4096 == 0
        self.memory = memory

    def array(self, count: int, dtype: DType, at: int) -> Any:
        until = monotonic() + 30
        while _HERE.behind():
            assert monotonic() < until
            sleep(1e-4)
        return self.memory[at : at + count * dtype.itemsize].view(dtype.numpy)

    def put(self, x: Any, at: int) -> None:
        self.memory[at : at + x.nbytes].view(x.dtype)[...] = x

    def meet(self, words: Any, own: int, turn: int) -> Any:
        words[own][:] = turn
        _HERE.behind = lambda: any(word[0] < turn for word in words)
        return lambda: None


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Bytes of memory that ranks asked for; the devices of threads see it."""
    found: list[int] = []

    def memory(group: Threads, nbytes: int) -> Any:
        found.append(nbytes)
        views = group._swap(np.full(nbytes, 255, np.uint8))
        group.barrier()
        return views

    monkeypatch.setattr(Threads, "memory", memory, raising=False)
    monkeypatch.setattr(Numpy, "shared", lambda _, memory: Pages(memory))
    return found


@pytest.mark.parametrize(
    ("sizes", "settings"),
    [
        ((2, 3), {}),
        ((2,), {"step": tokens}),
        ((2,), {"microbatches": 2}),
        ((2,), {"compile": True}),
    ],
    ids=["ranks", "tokens", "two", "compiled"],
)
def test_ranks_that_add_up_themselves_end_in_the_bits_of_one(
    asked: list[int], sizes: tuple[int, ...], settings: dict[str, Any]
) -> None:
    run: Any = partial(trained, inner=Numpy, **settings)
    alone = run(None)
    for size in sizes:
        assert together(size, run) == [alone] * size, f"{size} ranks"
    assert len(set(asked)) > 1  # for gradients, and for what is small


def test_a_device_that_sees_no_memory_is_read(
    asked: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    alone = trained(None, inner=Numpy)
    monkeypatch.setattr(Numpy, "shared", lambda _, memory: None)
    assert together(2, partial(trained, inner=Numpy)) == [alone] * 2
    assert not asked
