"""One start of all ranks: waiting for its end, and ending it where it cannot."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from time import monotonic, sleep
from typing import Final, final

from . import _memory, _rank

_TURN: Final = 0.05  # seconds between two looks
_GRACE: Final = 1.0  # seconds in which a job ends by itself, once a rank has failed
_STACKS: Final = 2.0  # seconds in which all ranks print their stacks, once one has
_LINES: Final = 30  # of the log of a rank that failed


@final
class Job:
    """The processes of one start."""

    def __init__(self, command: Sequence[str], env: Mapping[str, str], logs: Path) -> None:
        """Start them."""
        self._logs = logs
        logs.mkdir(parents=True, exist_ok=True)
        _memory.remove(logs)  # of a job that was killed with its launcher
        for kind in ("pid", "failed", "stacks", "shm"):
            for old in logs.glob(f"rank-*.{kind}"):
                old.unlink()
        self._process = subprocess.Popen(command, env=dict(env), start_new_session=True)

    def wait(self) -> int:
        """Wait for the end, and return the exit status: that of the launcher, 1 after a hang."""
        failed: float | None = None
        while self._process.poll() is None:
            sleep(_TURN)
            stacks = any(path.stat().st_size for path in self._logs.glob("rank-*.stacks"))
            if failed is None and (stacks or any(self._logs.glob("rank-*.failed"))):
                failed = monotonic() + (_STACKS if stacks else _GRACE)
            if failed is not None and monotonic() > failed:
                self.kill()
        self._sweep()
        _memory.remove(self._logs)
        return self._process.returncode if self._process.returncode >= 0 else 1

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

    @property
    def failed_early(self) -> bool:
        """Whether a rank failed by an error, and none had come to ``init()``."""
        return any(self._logs.glob("rank-*.failed")) and not any(self._logs.glob("rank-*.shm"))

    def reasons(self) -> Iterator[str]:
        """Yield what ranks left behind: why they failed, their stacks, the ends of their logs."""
        stacks = sorted(self._logs.glob("rank-*.stacks"), key=_number)
        if any(path.stat().st_size for path in stacks):
            yield "it stood still; the stacks of its ranks:"
            for path in stacks:
                text = path.read_text() or "  none: stopped, or at work in one long call"
                yield f"rank {_number(path)}:\n{text.rstrip()}"
        failed: dict[str, list[int]] = {}
        for path in sorted(self._logs.glob("rank-*.failed"), key=_number):
            failed.setdefault(path.read_text(), []).append(_number(path))
        for text, ranks in failed.items():
            yield f"rank {', '.join(map(str, ranks))} failed: {text}"
            log = self._logs / f"rank-{ranks[0]}.log"
            if ranks[0] and log.is_file():  # rank 0 wrote to the terminal
                lines = log.read_text(errors="replace").splitlines()[-_LINES:]
                yield "\n".join([f"the end of {log}:", *lines])

    def _here(self) -> Iterator[tuple[int, int]]:
        """Rank and process of those on this machine that are alive."""
        for path in self._logs.glob("rank-*.pid"):
            host, _, pid = path.read_text().partition(" ")
            if host == socket.gethostname() and pid.isdigit() and _is_rank(pid):
                yield _number(path), int(pid)

    def _sweep(self) -> None:
        """End ranks that the launcher left, such as stopped ones."""
        for _, pid in self._here():
            with suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)


def _is_rank(pid: str) -> bool:
    """Whether a process is a rank still, and not another one of its number."""
    try:
        return Path(_rank.__file__).name.encode() in Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:  # it is gone, or the system shows nothing of processes
        return False


def _number(path: Path) -> int:
    return int(path.stem.partition("-")[2])
