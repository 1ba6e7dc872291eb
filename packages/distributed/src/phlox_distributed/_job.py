"""One start of all ranks: waiting for its end, and ending it where it cannot."""

from __future__ import annotations

import os
import selectors
import signal
import socket
import subprocess
import sys
from collections.abc import Container, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from time import monotonic
from typing import Final, final

from . import _memory, _rank
from ._watchdog import ASKS

_TURN: Final = 0.05  # seconds between two looks
_GRACE: Final = 1.0  # seconds in which a job ends by itself, once a rank has failed
_STACKS: Final = 2.0  # seconds in which all ranks print their stacks, once one has
_ALONE: Final = 5.0  # seconds; a hang if all ranks that go on wait that long for one that has ended
_LINES: Final = 30  # of the log of a rank that failed


@final
class Job:
    """The processes of one start."""

    def __init__(
        self, command: Sequence[str], env: Mapping[str, str], logs: Path, ranks: int
    ) -> None:
        """Start them."""
        self._logs, self._ranks = logs, ranks
        self._seen: set[int] = set()  # those of this machine
        self._lost: int | None = None  # the first that is gone: it neither ended nor failed
        self._alive = selectors.DefaultSelector()
        self._inside: dict[Path, int] = {}  # exchanges begun and ended: odd inside of one
        self._since = 0.0
        self._asked: set[int] = set()  # for their stacks
        self.left = ""  # the text of a hang: which ranks wait for which that have ended
        logs.mkdir(parents=True, exist_ok=True)
        _memory.remove(logs)  # what a job left that was killed with its launcher
        for kind in ("pid", "failed", "stacks", "shm", "ended", "calls"):
            for old in logs.glob(f"rank-*.{kind}"):
                old.unlink()
        self._process = subprocess.Popen(command, env=dict(env), start_new_session=True)

    def wait(self) -> int:
        """Wait for the end, and return the exit status: that of the launcher, 1 after a hang."""
        failed: float | None = None
        while self._process.poll() is None:
            self._look()
            stacks = any(path.stat().st_size for path in self._logs.glob("rank-*.stacks"))
            if failed is None and (stacks or any(self._logs.glob("rank-*.failed"))):
                failed = monotonic() + (_STACKS if stacks else _GRACE)
                if stacks:
                    self._ask()
            if failed is None:
                self.left = self._alone()
            if self.left or (failed is not None and monotonic() > failed):
                self.kill()
        self._look()
        self._sweep()
        _memory.remove(self._logs)
        code = self._process.returncode
        if code == 0 and self._lost is None:  # it began and was gone between two looks
            self._lost = min(self._seen - set(self._marked("ended")), default=None)
        return code if code > 0 else int(code < 0 or self._lost is not None)

    def _look(self) -> None:
        """Wait a turn, or until a rank is gone; note the first that was not at its end."""
        for rank, pid in self._mine(self._seen):
            self._seen.add(rank)
            if hasattr(os, "pidfd_open"):
                with suppress(OSError):  # it is gone already
                    self._alive.register(os.pidfd_open(pid), selectors.EVENT_READ, rank)
        for key, _ in self._alive.select(_TURN):  # those that went first come first
            self._alive.unregister(key.fd)
            os.close(key.fd)
            marks = self._logs.glob(f"rank-{key.data}.[ef]*ed")  # ended, failed
            if self._lost is None and not any(marks):
                self._lost = key.data

    def _ask(self) -> None:
        """Ask ranks that have shown no stacks for theirs, such as one at work in a long call."""
        for rank, pid in self._here():
            path = self._logs / f"rank-{rank}.stacks"
            if ASKS is not None and path.is_file() and not path.stat().st_size:
                self._asked.add(rank)
                with suppress(ProcessLookupError):
                    os.kill(pid, ASKS)

    def _why_none(self, rank: int) -> str:
        """Say why a rank has shown no stacks."""
        if rank in self._marked("ended"):
            return "  none: its script had ended"
        stopped = rank in self._asked
        return f"  none: {'it is stopped' if stopped else 'it is gone, or on another machine'}"

    def _alone(self) -> str:
        """Say who waits for whom, where all that go on have waited long, and one has ended."""
        ended = self._marked("ended")
        on = sorted(self._seen.difference(ended))
        known = ended and on and len(self._seen) == self._ranks
        paths = [self._logs / f"rank-{rank}.calls" for rank in on] if known else []
        if not paths or not all(path.is_file() for path in paths):
            return ""
        inside = {path: int.from_bytes(path.read_bytes(), sys.byteorder) for path in paths}
        if inside != self._inside or not all(number % 2 for number in inside.values()):
            self._inside, self._since = inside, monotonic()
        if monotonic() - self._since < _ALONE:
            return ""
        ones, others = (", ".join(map(str, ranks)) for ranks in (ended, on))
        return f"rank {ones} ended, and rank {others} waits for it in an exchange"

    def _marked(self, kind: str) -> list[int]:
        """Ranks that left a file of a kind."""
        return sorted(_number(path) for path in self._logs.glob(f"rank-*.{kind}"))

    def kill(self) -> None:
        """End all processes at once."""
        self._sweep()
        with suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGTERM)
        try:
            self._process.wait(_GRACE)
        except subprocess.TimeoutExpired:
            with suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGKILL)

    def tell(self, number: int) -> bool:
        """Send a signal to rank 0, and say whether it is on this machine."""
        for rank, pid in self._here():
            if rank == 0:
                with suppress(ProcessLookupError):
                    os.kill(pid, number)
                return True
        return False

    def errors(self) -> set[str]:
        """Return what ranks failed by, where, and at which checkpoint of a run they were."""
        saved = self._logs / "saved"
        at = saved.read_text() if saved.is_file() else ""
        return {f"{path.read_text()}\f{at}" for path in self._logs.glob("rank-*.failed")}

    @property
    def began(self) -> bool:
        """Whether a rank of this machine came to life."""
        return bool(self._seen)

    @property
    def failed_early(self) -> bool:
        """Whether a rank failed by an error, and none had come to ``init()``."""
        return any(self._logs.glob("rank-*.failed")) and not self.joined

    @property
    def joined(self) -> bool:
        """Whether a rank came to ``init()``."""
        return any(self._logs.glob("rank-*.shm"))

    def reasons(self) -> Iterator[str]:
        """Yield what ranks left behind: why they failed, their stacks, the ends of their logs."""
        stacks = sorted(self._logs.glob("rank-*.stacks"), key=_number)
        still = any(path.stat().st_size for path in stacks)
        if still:
            yield "it stood still; the stacks of its ranks:"
            for path in stacks:
                text = path.read_text() or self._why_none(_number(path))
                yield f"rank {_number(path)}:\n{text.rstrip()}"
        if self.left:
            yield self.left
            yield "hint: if group.rank == 0: print(loss)  # no step, collective or Run inside of it"
        elif self._lost is not None and not still and not any(self._logs.glob("rank-*.failed")):
            yield f"rank {self._lost} was gone first: no end of its script, no error of Python"
            yield "hint: it was killed, as by a system out of memory; or called os._exit; or MPI"
            yield "ended it, whose error is above or in its log"
        failed: dict[str, list[int]] = {}
        for path in sorted(self._logs.glob("rank-*.failed"), key=_number):
            failed.setdefault(path.read_text(), []).append(_number(path))
        for text, ranks in failed.items():
            headline, _, trace = text.partition("\f")
            yield f"rank {', '.join(map(str, ranks))} failed: {headline}"
            log = self._logs / f"rank-{ranks[0]}.log"
            if ranks[0] and log.is_file():  # rank 0 wrote to the terminal
                most = max(_LINES, trace.count("\n") + _LINES // 3)  # and what was written since
                lines = log.read_text(errors="replace").splitlines()[-most:]
                yield "\n".join([f"the end of {log}:", *lines])

    def _here(self) -> Iterator[tuple[int, int]]:
        """Rank and process of those on this machine that are alive."""
        return (found for found in self._mine() if _is_rank(found[1]))

    def _mine(self, known: Container[int] = ()) -> Iterator[tuple[int, int]]:
        """Rank and process of those that were started on this machine, without some."""
        for path in self._logs.glob("rank-*.pid"):
            if _number(path) not in known:
                host, _, pid = path.read_text().partition(" ")
                if host == socket.gethostname() and pid.isdigit():
                    yield _number(path), int(pid)

    def _sweep(self) -> None:
        """End ranks that the launcher left, such as stopped ones."""
        for _, pid in self._here():
            with suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)


def _is_rank(pid: int) -> bool:
    """Whether a process is a rank still, and not another one of its number."""
    try:
        return Path(_rank.__file__).name.encode() in Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:  # it is gone, or the system shows nothing of processes
        return False


def _number(path: Path) -> int:
    return int(path.stem.partition("-")[2])
