"""Processes that make batches, for functions of items that hold Python's lock."""

from __future__ import annotations

import os
import pickle
import signal
import sys
from collections import deque
from collections.abc import Iterator
from contextlib import suppress
from functools import lru_cache
from itertools import islice
from multiprocessing import connection, get_context
from multiprocessing.connection import Connection
from struct import Struct
from traceback import format_exception
from typing import Any, Final, NamedTuple, NoReturn, final

import numpy as np

from phlox_tensor import ArgumentError

from ._errors import WorkerError
from ._fetch import Fetch
from ._plan import PATIENCE, Plan, Plans
from ._slots import Slots, Window

# Epoch, batch, run of items, slot. A pipe keeps so few bytes together, so any process may read it.
_TICKET: Final = Struct("<4q")
# So many runs are in the pipe at most: one that is full would stop whoever writes.
_MOST: Final = 512


@final
class Processes:
    """So many processes as workers: ``DataLoader(..., workers=data.Processes(4))``.

    Threads are enough where items are read and decoded, since Pillow, NumPy and zlib let others
    run. Processes pay for functions in Python. They are started anew, never forked, so dataset and
    functions have to be ones that ``pickle`` takes, and a script needs
    ``if __name__ == "__main__":``.
    """

    def __init__(self, count: int) -> None:
        if type(count) is not int or count < 1:
            what, expected = "count is no number of processes", "1 or more"
            raise ArgumentError("Processes", what, got=count, expected=expected)
        if sys.platform == "win32":
            what = "processes share a file and a pipe as Windows does not"
            raise ArgumentError("Processes", what, hint="DataLoader(dataset, 64, workers=4)")
        self.count = count

    def __repr__(self) -> str:
        return f"Processes({self.count})"


class _Run(NamedTuple):
    """Items of a batch that one process makes: rows, or what of them is in no slot, or an error."""

    epoch: int
    number: int
    run: int
    rows: list[Any] | None = None
    others: list[list[Any]] | None = None
    error: BaseException | None = None
    began: bool = False


@final
class _Pending:
    """A batch under way."""

    def __init__(self, plan: Plan, size: int, slot: int) -> None:
        self.plan, self.size, self.slot = plan, size, slot
        self.runs: dict[int, _Run] = {}
        self.count = -(-len(plan.indices) // size)


@final
class ProcessPool:
    """Processes that live as long as their loader, and the batches that they have under way."""

    def __init__(self, fetch: Fetch, plans: Plans, count: int) -> None:
        self._fetch = fetch
        self._size = max(8, -(-plans.batch // 64))
        self._batch = plans.batch
        self._slots = Slots()
        self._waiting: deque[bytes] = deque()
        self._sent = 0
        self._ahead: deque[_Pending] = deque()
        self._last: dict[int, _Run] = {}
        context = _context()
        tickets, self._tickets = context.Pipe(duplex=False)
        self._workers: list[tuple[Any, Connection]] = []
        given = (fetch, plans, self._size, tickets, self._slots.handle)
        try:
            for number in range(count):
                ours, theirs = context.Pipe(duplex=False)
                process = context.Process(target=_work, args=(number, theirs, *given), daemon=True)
                process.start()
                theirs.close()
                self._workers.append((process, ours))
        except (AttributeError, TypeError, pickle.PicklingError) as error:
            self.close()
            raise ArgumentError(
                "DataLoader",
                "the dataset cannot go to other processes",
                got=error,
                hint="workers=4, which are threads, or functions at the top of a module",
            ) from error
        finally:
            tickets.close()

    def batches(self, plans: Iterator[Plan], prefetch: int) -> Iterator[Any]:
        """Yield the batches in order; so many more are made while one is in use."""
        self._drop()
        while True:
            wanted = prefetch + 1 - len(self._ahead)
            self._ahead.extend(self._start(plan) for plan in islice(plans, wanted))
            self._feed()
            if not self._ahead:
                return
            pending = self._ahead[0]
            while len(pending.runs) < pending.count:
                self._receive()
            self._ahead.popleft()
            yield self._result(pending)

    def close(self, *, now: bool = False) -> None:
        """End the processes, in the middle of an item where that is to be now."""
        with suppress(OSError):
            self._tickets.close()  # they end when there is nothing to read any more
        for process, _ in self._workers if now else ():
            process.kill()
        for process, results in self._workers:
            results.close()
            process.join(PATIENCE)
            if process.is_alive():
                process.kill()
                process.join()
        self._workers = []
        self._slots.close()

    def _start(self, plan: Plan) -> _Pending:
        slot = self._slots.take() if self._slots.layout is not None and not plan.empty else 0
        pending = _Pending(plan, self._size, slot)
        for run in range(pending.count):
            self._waiting.append(_TICKET.pack(plan.epoch, plan.number, run, slot))
        return pending

    def _feed(self) -> None:
        while self._waiting and self._sent < _MOST:
            os.write(self._tickets.fileno(), self._waiting.popleft())
            self._sent += 1

    def _receive(self) -> None:
        """Take what processes have done, or say that one of them is gone."""
        by_pipe = {results: worker for worker, (_, results) in enumerate(self._workers)}
        for ready in connection.wait([*by_pipe]):
            worker = by_pipe[ready]  # type: ignore[index]
            try:
                run: _Run = self._workers[worker][1].recv()
            except (EOFError, OSError):
                self._gone(worker)
            self._last[worker] = run
            if run.began:
                continue
            self._sent -= 1
            for pending in self._ahead:
                if (pending.plan.epoch, pending.plan.number) == (run.epoch, run.number):
                    pending.runs[run.run] = run
        self._feed()

    def _result(self, pending: _Pending) -> Any:
        """The batch, or the error of its first run that has one."""
        runs = [pending.runs[run] for run in range(pending.count)]
        failed = [run.error for run in runs if run.error is not None]
        placed = [run.others for run in runs if run.others is not None]
        if len(placed) == len(runs):
            others = [row for run in placed for row in run]
            return self._slots.batch(pending.slot, len(pending.plan.indices), others)
        if pending.slot:  # an item was not like the first one: all are made again, and told apart
            self._slots.give(pending.slot)
        if failed:
            raise failed[0]
        if pending.slot:
            return self._fetch.whole(pending.plan)
        rows = [row for run in runs for row in run.rows or ()]
        if self._slots.layout is None and self._fetch.stacks:
            self._slots.describe(rows[0], self._batch)
        return self._fetch.joined(pending.plan, rows)

    def _drop(self) -> None:
        """Wait for what a loop that was left had under way."""
        self._waiting.clear()
        while self._sent:
            self._receive()
        for pending in self._ahead:
            if pending.slot:
                self._slots.give(pending.slot)
        self._ahead.clear()

    def _gone(self, worker: int) -> NoReturn:
        process = self._workers[worker][0]
        process.join(PATIENCE)
        code, last = process.exitcode, self._last.get(worker)
        self.close(now=True)
        how = f"with {code}" if code is None or code >= 0 else f"by {signal.Signals(-code).name}"
        if last is None:
            what, hint = "before it began", 'if __name__ == "__main__": around the program'
        else:
            first = last.run * self._size
            what = f"at items {first} to {first + self._size - 1} of batch {last.number}"
            what, hint = f"{what} of epoch {last.epoch}", f"loader.at({last.epoch}, {last.number})"
        raise WorkerError("DataLoader", f"process {worker} ended {how} {what}", hint=hint)


def _context() -> Any:
    """How processes start: beside this package, which the server of forks imports for all."""
    if sys.platform == "darwin":
        return get_context("spawn")
    from multiprocessing import forkserver  # noqa: PLC0415 - Windows has none

    server: Any = vars(forkserver)["_forkserver"]
    if server._preload_modules == ["__main__"]:  # nobody has said what it imports
        server.set_forkserver_preload(["__main__", __name__])
    return get_context("forkserver")


def _work(
    worker: int,
    results: Connection,
    fetch: Fetch,
    plans: Plans,
    size: int,
    tickets: Connection,
    memory: Connection,
) -> None:
    """Make runs of items for as long as somebody asks; that is over when the pipe ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # whoever started this is told
    np.random.seed()  # not the numbers of the other processes
    window = Window(memory)
    plan_of = lru_cache(maxsize=4)(plans.of)  # a process makes several runs of a batch
    with suppress(BrokenPipeError):
        while len(ticket := os.read(tickets.fileno(), _TICKET.size)) == _TICKET.size:
            epoch, number, run, slot = _TICKET.unpack(ticket)
            results.send(_Run(epoch, number, run, began=True))
            made = _Run(epoch, number, run)
            try:
                plan = plan_of(epoch, number)
                rows = fetch.rows(plan, run * size, (run + 1) * size, worker)
                others = window.place(rows, slot, run * size) if slot else None
                made = made._replace(others=others, rows=None if slot else rows)
            except BaseException as error:
                made = made._replace(error=_sendable(error))
            try:
                results.send(made)
            except (AttributeError, TypeError, pickle.PicklingError) as error:
                error.add_note("workers=4, which are threads, need not send items")
                results.send(_Run(epoch, number, run, error=_sendable(error)))


def _sendable(error: BaseException) -> BaseException:
    """The error with where it happened as a note, or one that says what it was."""
    text = "".join(format_exception(error))
    try:
        error.add_note(f"in a process:\n{text}")
        pickle.loads(pickle.dumps(error))
    except Exception:
        return WorkerError("DataLoader", f"{type(error).__name__} in a process", got=text)
    return error
