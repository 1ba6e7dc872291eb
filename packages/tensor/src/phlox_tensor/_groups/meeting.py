"""A group whose ranks are the parts of a step, of which each process may have several.

Each part has a thread, and one thread of a process runs at a time, until its part calls the group.
Once all parts of a process have made that call, the process makes it once for all of them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextvars import ContextVar, copy_context
from itertools import accumulate, pairwise
from threading import Semaphore, Thread
from typing import Any, Final, final

import numpy as np
from numpy.typing import NDArray

from .._errors.classes import ArgumentError
from .group import Group, broadcast_object

_HERE: Final[ContextVar[Any]] = ContextVar("phlox_part", default=None)


def part_here() -> Any:
    """Return this thread's part, which is a group of all parts; None outside of a step."""
    return _HERE.get()


@final
class Meeting:
    """One step of all parts, as one process sees it."""

    def __init__(self, group: Group, parts: Sequence[int]) -> None:
        """Begin.

        Args:
            group: the processes.
            parts: how many parts each of them has.
        """
        self.group = group
        self.edges: Final = [0, *accumulate(parts)]  # of the numbers of each process's parts
        self.mine: Final = range(self.edges[group.rank], self.edges[group.rank + 1])
        self._parts = [Part(self, number) for number in self.mine]
        # A process without parts runs nothing that calls the group: the leader tells it each call.
        self._leader: Final = next(rank for rank, count in enumerate(parts) if count)
        self._tells: Final = group.size > 1 and 0 in parts
        self._calling = False

    def run(self, functions: Sequence[Callable[[], Any]]) -> list[Any]:
        """Return what functions give, one for each part of this process.

        Raises:
            ArgumentError: if some parts meet and others are done, or a part of the leader failed.
        """
        turns = [_Turn(part, each) for part, each in zip(self._parts, functions, strict=True)]
        if not turns:
            while (call := broadcast_object(self.group, None, self._leader)) is not None:
                self._join(*call)
            return []
        try:
            results = [turns[0].run()] if len(turns) == 1 else self._in_turns(turns)
        except Exception as error:
            if self._tells and not self._calling:
                failed = ("failed", None, [f"{type(error).__name__}: {error}"])
                broadcast_object(self.group, failed, self._leader)
            raise
        if self._tells:
            broadcast_object(self.group, None, self._leader)
        return results

    def _in_turns(self, turns: list[_Turn]) -> list[Any]:
        try:
            while True:
                for turn in turns:
                    turn.go()
                waiting = [turn for turn in turns if not turn.over]
                if not waiting:
                    return [turn.result for turn in turns]
                if len(waiting) < len(turns):
                    raise ArgumentError(
                        "step",
                        "parts of a batch do not meet in the same calls",
                        got=f"{len(turns) - len(waiting)} of {len(turns)} parts are done",
                        expected="the same collectives in each",
                    )
                self.meet([turn.part.call for turn in turns])
        finally:
            for turn in turns:
                turn.end()

    def meet(self, calls: Sequence[Any]) -> None:
        """Make the same call for all parts of this process, with the other processes."""
        name, *arguments = calls[0]
        if any(call[0] != name for call in calls):
            got, expected = ", ".join(call[0] for call in calls), "one call"
            what = "parts of a batch meet in different calls"
            raise ArgumentError("step", what, got=got, expected=expected)
        self._calling = True
        if self._tells:
            sizes = [each.size if isinstance(each, np.ndarray) else each for each in arguments]
            kind = getattr(arguments[0], "dtype", None) if sizes else None
            told = broadcast_object(self.group, (name, kind, sizes), self._leader)
            if told is not None and told[0] == "failed":
                self._join(*told)
        getattr(self, f"_{name}")([call[1:] for call in calls])
        self._calling = False

    def _join(self, name: str, kind: Any, sizes: list[Any]) -> None:
        """Make the call that the leader told; of arrays in it, only type and sizes are known."""
        getattr(self, f"_join_{name}")(kind, sizes)

    def _join_failed(self, kind: Any, sizes: list[Any]) -> None:
        del kind
        what, expected = f"a part failed in process {self._leader}", "no error in any part"
        raise ArgumentError("step", what, got=sizes[0], expected=expected)

    def _join_all_to_all(self, kind: Any, sizes: list[Any]) -> None:
        del sizes
        none, nothing = np.empty(0, kind), [0] * self.group.size
        self.group.all_to_all(none, nothing, none, nothing)

    def _join_all_gather(self, kind: Any, sizes: list[Any]) -> None:
        counts = [sum(sizes[2][low:high]) for low, high in pairwise(self.edges)]
        self.group.all_gather(np.empty(0, kind), np.empty(sizes[1], kind), counts)

    def _join_broadcast(self, kind: Any, sizes: list[Any]) -> None:
        self._broadcast([(np.empty(sizes[0], kind), sizes[1])])

    def _join_barrier(self, kind: Any, sizes: list[Any]) -> None:
        del kind, sizes
        self.group.barrier()

    def _all_to_all(self, calls: list[Any]) -> None:
        """Pieces for a process lie by the part that sends them, then by the one that gets them."""
        ranks = [range(low, high) for low, high in pairwise(self.edges)]
        pieces = [_cut(send, counts) for send, counts, _, _ in calls]
        sent = [piece[to] for rank in ranks for piece in pieces for to in rank]
        places = [sum(sizes[p] for _, _, _, sizes in calls) for p in range(self.edges[-1])]
        totals = [sum(places[p] for p in rank) for rank in ranks]
        counts = [sum(piece[to].size for piece in pieces for to in rank) for rank in ranks]
        received = np.empty(sum(totals), calls[0][2].dtype)
        self.group.all_to_all(np.concatenate(sent), counts, received, totals)
        low, filled = 0, [0] * len(calls)
        for sender in range(self.edges[-1]):
            for k, (_, _, receive, sizes) in enumerate(calls):
                high = low + sizes[sender]
                receive[filled[k] : filled[k] + sizes[sender]] = received[low:high]
                filled[k] += sizes[sender]
                low = high

    def _all_gather(self, calls: list[Any]) -> None:
        counts = calls[0][2]
        sums = [sum(counts[low:high]) for low, high in pairwise(self.edges)]
        received = calls[0][1]
        self.group.all_gather(np.concatenate([send for send, _, _ in calls]), received, sums)
        for _, receive, _ in calls[1:]:
            receive[...] = received

    def _broadcast(self, calls: list[Any]) -> None:
        root = calls[0][1]
        owner = next(rank for rank, high in enumerate(self.edges[1:]) if root < high)
        source = calls[root - self.mine.start][0] if root in self.mine else calls[0][0]
        self.group.broadcast(source, owner)
        for buffer, _ in calls:
            buffer[...] = source

    def _barrier(self, calls: list[Any]) -> None:
        del calls
        self.group.barrier()


@final
class Part:
    """One part: a group whose ranks are all parts that have examples."""

    def __init__(self, meeting: Meeting, number: int) -> None:
        """Begin without a call."""
        self._meeting = meeting
        self.rank = number
        self.size = meeting.edges[-1]
        self.local_rank, self.local_size = number - meeting.mine.start, len(meeting.mine)
        self.call: tuple[Any, ...] = ()
        self.wait: Callable[[], None] | None = None

    def all_to_all(
        self,
        send: NDArray[Any],
        send_counts: Sequence[int],
        receive: NDArray[Any],
        receive_counts: Sequence[int],
    ) -> None:
        """Give each part its piece of ``send``, and fill ``receive`` with those of all parts."""
        self._meet("all_to_all", send, send_counts, receive, receive_counts)

    def all_gather(self, send: NDArray[Any], receive: NDArray[Any], counts: Sequence[int]) -> None:
        """Fill ``receive`` with what all parts send, in their order."""
        self._meet("all_gather", send, receive, counts)

    def broadcast(self, buffer: NDArray[Any], root: int = 0) -> None:
        """Fill ``buffer`` with that of one part."""
        self._meet("broadcast", buffer, root)

    def barrier(self) -> None:
        """Wait until all parts are here."""
        self._meet("barrier")

    def _meet(self, *call: Any) -> None:
        if self.wait is None:  # the only part of its process
            self._meeting.meet([call])
            return
        self.call = call
        self.wait()


@final
class _Turn:
    """A part in its thread: ``go`` runs it until it calls the group or is done."""

    def __init__(self, part: Part, function: Callable[[], Any]) -> None:
        self.part, self._function = part, function
        self.over, self.result = False, None
        self._error: BaseException | None = None
        self._stopped = False
        self._resumed, self._paused = Semaphore(0), Semaphore(0)
        self._thread: Thread | None = None

    def run(self) -> Any:
        """Run the part to its end, in this thread."""
        token = _HERE.set(self.part)
        try:
            return self._function()
        finally:
            _HERE.reset(token)

    def go(self) -> None:
        """Run the part until it calls the group or is done, and raise its error."""
        if self._thread is None:
            self.part.wait = self._wait
            self._thread = Thread(target=copy_context().run, args=(self._all,), daemon=True)
            self._thread.start()
        else:
            self._resumed.release()
        self._paused.acquire()
        if self._error is not None:
            raise self._error

    def end(self) -> None:
        """End the thread of a part that waits in a call, which will not be made after an error."""
        if self._thread is not None and not self.over:
            self._stopped = True
            self._resumed.release()
            self._thread.join()

    def _all(self) -> None:
        try:
            self.result = self.run()
        except BaseException as error:
            self._error = error
        self.over = True
        self._paused.release()

    def _wait(self) -> None:
        if not self._stopped:  # else a ``finally`` of the function calls
            self._paused.release()
            self._resumed.acquire()
        if self._stopped:
            raise SystemExit


def _cut(array: NDArray[Any], counts: Sequence[int]) -> list[NDArray[Any]]:
    return [array[low:high] for low, high in pairwise([0, *accumulate(counts)])]
