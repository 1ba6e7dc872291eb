"""Compiled functions in several threads and processes: none waits for another one's run."""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier, Event, Thread
from typing import Any

import pytest

import phlox_tensor as pt
from phlox_fusion import compile, kernel
from phlox_tensor import Tensor
from phlox_tensor.capture import RECORDINGS, Cell

LIMIT = 20  # seconds, of what takes milliseconds: a hang is a failure


def in_time(*works: Callable[[], Any]) -> list[Any]:
    """What functions give that run in a thread each."""
    pool = ThreadPoolExecutor(len(works))
    try:
        return [future.result(LIMIT) for future in [pool.submit(work) for work in works]]
    finally:
        pool.shutdown(wait=False, cancel_futures=True)


def waits_for(work: Callable[[], Any]) -> Any:
    """What a function gives in a thread of its own."""
    found: list[Any] = []
    thread = Thread(target=lambda: found.append(work()), daemon=True)
    thread.start()
    thread.join(LIMIT)
    assert found, "the thread hangs"
    return found[0]


def test_a_function_may_wait_for_a_thread_that_calls_another_one() -> None:
    prepared = compile(lambda x: x * 2)
    step = compile(lambda x: x + waits_for(lambda: prepared(pt.ones(2)).sum().item()))
    for _ in range(5):
        assert step(pt.zeros(2)).tolist() == [4.0, 4.0]
    assert (step.versions, prepared.versions) == (1, 1)


def test_a_function_may_wait_for_a_thread_that_calls_the_same_one() -> None:
    @compile
    def halved(x: Tensor, deep: bool) -> Tensor:
        if deep:
            waits_for(lambda: halved(pt.ones(2), False).sum().item())
        return x / 2

    for _ in range(5):
        assert halved(pt.ones(2), True).tolist() == [0.5, 0.5]
    assert halved.versions == 2


def test_a_function_may_wait_for_a_thread_that_calls_a_kernel() -> None:
    scaled = kernel(lambda x, n: x * n + 1)
    step = compile(lambda x: x + waits_for(lambda: scaled(pt.ones(2), 3.0).sum().item()))
    assert [step(pt.zeros(1)).item() for _ in range(4)] == [8.0] * 4


def test_a_function_that_draws_may_wait_for_a_thread_that_draws() -> None:
    def draws(x: Tensor) -> Tensor:
        first = pt.random.uniform((2,))
        waits_for(lambda: pt.random.uniform((2,)).tolist())
        return x + first + pt.random.uniform((2,))

    pt.random.seed(3)
    step = compile(draws)
    found = [tuple(step(pt.zeros(2)).tolist()) for _ in range(8)]
    assert len({*found}) == 8


def test_threads_draw_no_number_twice_while_functions_are_recorded() -> None:
    pt.random.seed(4)
    found: list[bytes] = []
    start = Barrier(3)

    def work() -> None:
        start.wait(LIMIT)
        for size in range(1, 20):
            fast = compile(lambda x: (pt.random.uniform((64,)), x))
            for _ in range(3):
                found.append(fast(pt.ones(size))[0].numpy().tobytes())

    def draw() -> None:
        start.wait(LIMIT)
        for _ in range(200):
            found.append(pt.random.uniform((64,)).numpy().tobytes())

    in_time(work, work, draw)
    assert len({*found}) == len(found) == 2 * 19 * 3 + 200


def test_one_thread_draws_as_it_would_without_others() -> None:
    pt.random.seed(5)
    expected = [pt.random.uniform((3,)).tolist() for _ in range(6)]
    pt.random.seed(5)
    fast = compile(lambda: pt.random.uniform((3,)))
    assert [fast().tolist() for _ in range(6)] == expected
    assert pt.random.generator().state() == (5, 6)


def test_a_run_that_fails_leaves_the_stream_where_it_was() -> None:
    def fails(x: Tensor) -> Tensor:
        pt.random.uniform((2,))
        raise OSError("no disk")

    pt.random.seed(6)
    with pytest.raises(OSError, match="no disk"):
        compile(fails)(pt.ones(1))
    assert pt.random.generator().state() == (6, 1)


@pytest.mark.filterwarnings("ignore:.*changes runs at each call")
def test_two_threads_compile_one_function() -> None:
    runs: list[int] = []

    def note() -> None:
        runs.append(1)

    def body(x: Tensor) -> Tensor:
        note()
        return (x * 2 + 1).sum()

    fast = compile(body)
    start = Barrier(4)

    def work() -> list[float]:
        start.wait(LIMIT)
        return [fast(pt.full((4,), float(i))).item() for i in range(20)]

    expected = [8.0 * i + 4 for i in range(20)]
    assert in_time(work, work, work, work) == [expected] * 4
    assert len(runs) <= 5 * 4  # each thread twice at most, and at calls 4, 16, 64
    assert fast.versions == 1


def test_threads_compile_functions_of_their_own() -> None:
    start = Barrier(4)

    def work(n: int) -> list[float]:
        fast = compile(lambda x: (x * n + 1).sum())
        start.wait(LIMIT)
        return [fast(pt.ones(size)).item() for size in range(1, 9) for _ in range(3)]

    found = in_time(*(lambda n=n: work(n) for n in range(4)))
    for n, values in enumerate(found):
        assert values == [size * (n + 1.0) for size in range(1, 9) for _ in range(3)]
    assert (RECORDINGS.count, RECORDINGS.watching) == (0, 0)


def test_a_loader_prepares_while_the_main_thread_records() -> None:
    prepared = compile(lambda x: (x - x.mean()) * (1 + pt.random.uniform(())))
    step = compile(lambda x: (x * 2).sum())
    batches: list[Tensor] = []
    more, done = Event(), Event()

    def load() -> None:
        while not done.is_set():
            batches.append(prepared(pt.arange(4.0)))
            more.set()

    thread = Thread(target=load, daemon=True)
    thread.start()
    try:
        for _ in range(30):
            assert more.wait(LIMIT)
            assert abs(step(batches[-1]).item()) < 1e-5
    finally:
        done.set()
        thread.join(LIMIT)
    assert not thread.is_alive()


def test_what_another_thread_set_and_a_recorded_run_sets_over_is_told() -> None:
    count = Cell(0)

    def other() -> int:
        count.set(count.get() + 10)
        return 1

    def counted(x: Tensor) -> Tensor:
        before = count.get()
        waits_for(other)
        count.set(before + 1)
        return x + before

    fast = compile(counted)
    with pytest.warns(UserWarning, match="another thread set a Cell"):
        assert fast(pt.zeros(1)).item() == 0.0
    assert count.get() == 1


@pytest.mark.skipif(not hasattr(os, "fork"), reason="the platform has no fork")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_process_that_is_forked_while_a_thread_records_compiles() -> None:
    inside, go = Event(), Event()

    def slow(x: Tensor) -> Tensor:
        y = x + pt.random.uniform((2,))
        inside.set()
        assert go.wait(LIMIT)
        return y * 2

    recorded = compile(slow)
    thread = Thread(target=lambda: recorded(pt.ones(2)), daemon=True)
    thread.start()
    assert inside.wait(LIMIT)
    child = os.fork()
    if child == 0:
        try:
            fast = compile(lambda x: x * 3 + pt.random.uniform((1,)) * 0)
            good = [fast(pt.ones(1)).item() for _ in range(4)] == [3.0] * 4
            os._exit(0 if good and not RECORDINGS.count and not RECORDINGS.watching else 1)
        finally:
            os._exit(2)
    ended = waits_for(lambda: os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) + 100)
    go.set()
    thread.join(LIMIT)
    assert ended == 100
    assert not thread.is_alive()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="the platform has no fork")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_function_may_fork_while_it_is_recorded() -> None:
    def forks(x: Tensor) -> Tensor:
        y = x * 2
        child = os.fork()
        if child == 0:
            out = compile(lambda x: x + 1)(pt.ones(1))
            os._exit(0 if out.shape == (1,) and RECORDINGS.count == 1 else 1)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        return y + 1

    fast = compile(forks)
    assert [fast(pt.ones(1)).item() for _ in range(3)] == [3.0] * 3
