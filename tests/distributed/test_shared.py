"""Ranks whose devices see each other's memory add up there, and end in the bits of one process."""

from __future__ import annotations

import mmap
import threading
from collections import Counter
from functools import partial
from pathlib import Path
from time import monotonic, sleep
from typing import Any, Final

import numpy as np
import pytest

from phlox import Numpy, Wgpu, asarray, float32
from phlox_tensor import DType, tree
from phlox_train.step.gpu_exchange import gpu_exchange_of
from phlox_train.step.small import Form
from tests.distributed.test_mpi import MPIEXEC, mpiexec
from tests.distributed.test_steps import tokens, trained
from tests.distributed.threads import Threads, together
from tests.train.nets import batches

_PAGE: Final = mmap.mmap(-1, mmap.PAGESIZE)  # a GPU may keep it until the process ends
_RANK: Final = """
import sys
from phlox import distributed
from tests.distributed.test_shared import few

asked = []
memory = distributed.Mpi.memory
distributed.Mpi.memory = lambda *given: asked.append(given) or memory(*given)
group = distributed.init()
open(f"{sys.argv[1]}/{group.rank}", "wb").write(few(group))
assert len(asked) == 2, asked
"""
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


def test_a_step_that_fails_writes_nothing_that_a_slower_rank_still_reads(asked: list[int]) -> None:
    put_again = threading.Barrier(2)

    leaves, structure = tree.flatten([])

    def run(group: Any) -> list[float]:
        exchange = gpu_exchange_of(group, Numpy())
        assert exchange is not None

        def begun(value: float) -> Any:
            rows = exchange.rows(2, ((float32, 4),))
            assert rows is not None
            own = [asarray(np.full(4, value, np.float32))]
            rows.put(0, own)
            return rows, own

        rows, own = begun(1.0 + group.rank)
        exchange.carried([], [Form(structure, leaves)] * 2)
        early = rows.summed(0, own) if group.rank == 0 else None
        begun(10.0)  # of a step that fails before the ranks meet
        begun(20.0)
        put_again.wait(20)
        found: list[float] = (rows.summed(0, own) if early is None else early).tolist()
        return found

    assert together(2, run) == [[3.0] * 4] * 2


def test_what_trains_later_takes_the_memory_of_what_trained_before(asked: list[int]) -> None:
    def run(group: Any) -> list[Any]:
        return [trained(group, inner=Numpy, microbatches=parts) for parts in (8, 8, 4)]

    first, second, _ = together(2, run)[0]
    assert first == second
    assert len(asked) == 2 * 2  # on each rank for gradients, and for what is small


@pytest.mark.parametrize(("taken", "count"), [(1, 1), (5, 2)], ids=["rows", "small"])
def test_memory_that_a_device_refuses_is_asked_for_once(
    asked: list[int], monkeypatch: pytest.MonkeyPatch, taken: int, count: int
) -> None:
    alone = trained(None, inner=Numpy)

    def shared(_: Numpy, memory: np.ndarray) -> Any:
        calls[threading.get_ident()] += 1
        return Pages(memory) if calls[threading.get_ident()] <= taken else None

    calls: Counter[int] = Counter()
    monkeypatch.setattr(Numpy, "shared", shared)
    with pytest.warns(UserWarning, match="--shm-size") as told:
        assert together(2, partial(trained, inner=Numpy)) == [alone] * 2
    assert len(told) == 1
    assert len(asked) == 2 * count


def few(group: Any) -> bytes:
    """What a few steps on a GPU leave."""
    return b"".join(trained(group, inner=Wgpu, feed=batches((8, 7, 8)), microbatches=2))


@pytest.mark.skipif(MPIEXEC is None, reason="no mpiexec is here: pip install mpich")
def test_processes_on_gpus_that_share_memory_end_in_the_bits_of_one(tmp_path: Path) -> None:
    if not Wgpu.found() or Wgpu().shared(np.frombuffer(_PAGE, np.uint8)) is None:
        pytest.skip("no native engine is here (./x engine), or its driver takes no memory")
    done = mpiexec(2, _RANK, str(tmp_path))
    assert done.returncode == 0, done.stderr
    assert {(tmp_path / str(rank)).read_bytes() for rank in range(2)} == {few(None)}
