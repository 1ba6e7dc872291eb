"""Threads that make batches: all of them at the same one, so that the first is there early."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from concurrent.futures import CancelledError
from contextvars import copy_context
from itertools import islice
from queue import SimpleQueue
from threading import Event, Lock, Thread, current_thread
from typing import Any, Final, final

from ._fetch import Fetch
from ._plan import PATIENCE, Plan

# So many items are one job: enough for two threads at a batch of 16, few enough to share evenly.
_RUN: Final = 8


@final
class _Pending:
    """A batch under way, whose runs of items may be done in any order."""

    def __init__(self, plan: Plan, runs: int) -> None:
        self.plan = plan
        self.done = Event()
        self.value: Any = None
        self.errors: dict[int, BaseException] = {}
        self._rows: list[list[Any]] = [[]] * runs
        self._left, self._lock = runs, Lock()

    def add(self, run: int, rows: list[Any]) -> None:
        self._rows[run] = rows

    def finished_one(self) -> bool:
        """Count a run; whether it was the last one."""
        with self._lock:
            self._left -= 1
            return not self._left

    def rows(self) -> list[Any]:
        return [row for rows in self._rows for row in rows]

    def result(self) -> Any:
        """The batch, or the error of its first item that has one, however many others have."""
        self.done.wait()
        if self.errors:
            raise self.errors.pop(min(self.errors))
        return self.value


_Job = tuple[_Pending, int]


@final
class ThreadPool:
    """The threads of one iteration; they know the dataset and nothing of the loader."""

    def __init__(self, fetch: Fetch, workers: int, prefetch: int) -> None:
        self._fetch, self._prefetch = fetch, prefetch
        self._jobs: SimpleQueue[_Job | None] = SimpleQueue()
        self._stopped = Event()
        given = (fetch, self._jobs, self._stopped)
        self._threads = [
            Thread(
                target=copy_context().run,
                args=(_work, number, *given),
                name=f"phlox-data-{number}",
                daemon=True,
            )
            for number in range(workers)
        ]
        for thread in self._threads:
            thread.start()

    def batches(self, plans: Iterable[Plan]) -> Iterator[Any]:
        """Yield the batches in order; so many more are made while one is in use."""
        rest = iter(plans)
        ahead = deque(self._start(plan) for plan in islice(rest, self._prefetch))
        while True:
            ahead.extend(self._start(plan) for plan in islice(rest, 1))
            if not ahead:
                return
            yield ahead.popleft().result()

    def close(self) -> None:
        """End the threads; what they have not begun is dropped."""
        self._stopped.set()
        for _ in self._threads:
            self._jobs.put(None)
        for thread in self._threads:
            if thread is not current_thread():  # garbage may be collected in any thread
                thread.join(PATIENCE)

    def _start(self, plan: Plan) -> _Pending:
        count = 1 if self._fetch.gathers else -(-len(plan.indices) // _RUN)
        pending = _Pending(plan, count)
        for run in range(count):
            self._jobs.put((pending, run))
        return pending


def _work(worker: int, fetch: Fetch, jobs: SimpleQueue[_Job | None], stopped: Event) -> None:
    while (job := jobs.get()) is not None:
        if stopped.is_set():
            job[0].errors[0] = CancelledError()
            job[0].done.set()  # somebody may wait for it
        else:
            _do(worker, fetch, *job)
        del job  # or the thread would keep the last batch while it waits for the next one


def _do(worker: int, fetch: Fetch, pending: _Pending, run: int) -> None:
    plan = pending.plan
    try:
        if not fetch.gathers:
            pending.add(run, fetch.rows(plan, run * _RUN, (run + 1) * _RUN, worker))
    except BaseException as error:  # whatever it is, it comes out at its batch
        pending.errors[run] = error
    if not pending.finished_one():
        return
    try:
        if not pending.errors:
            pending.value = fetch.joined(plan, pending.rows(), worker)
    except BaseException as error:
        pending.errors[run] = error
    finally:
        pending.done.set()
