"""``phlox launch``: starts ranks by MPI, watches over them, and starts them again."""

from __future__ import annotations

import argparse
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from time import monotonic
from types import FrameType
from typing import Final, final

from . import _rank
from ._errors import DistributedError
from ._job import Job

# A job that lived so many seconds was a good one: its restarts are counted anew.
_GOOD: Final = 600.0
_LONGEST: Final = 1e9  # seconds: timers of the system take little more
_SHORT: Final = 10.0  # seconds in which a job of which no rank began failed to start
_MPI: Final = 'pip install "phlox-distributed[mpi]"'
# What ranks are told, on other hosts too.
_TOLD: Final = ("PHLOX_LAUNCH", "PHLOX_RANKS", "PHLOX_HANG", "PHLOX_FIRST")


def main(words: Sequence[str]) -> int:
    """Run the command and return its exit status."""
    parser = argparse.ArgumentParser(
        prog="phlox launch", description=(__doc__ or "").replace("`", "")
    )
    parser.add_argument(
        "-n", "-np", type=int, required=True, metavar="RANKS", help="how many processes"
    )
    parser.add_argument("--hosts", metavar="FILE", help="machines: host:4 a line")
    parser.add_argument("--min", type=int, metavar="RANKS", help="go on with fewer, down to these")
    parser.add_argument("--restarts", type=int, default=3, help="how often in a row (3)")
    parser.add_argument(
        "--hang", type=float, default=600.0, metavar="SECONDS", help="end a job that stands still"
    )
    parser.add_argument("--logs", metavar="FOLDER", help="where ranks besides 0 write")
    parser.add_argument("--by", metavar="PROGRAM", help="mpiexec or srun, where several are there")
    rest = argparse.REMAINDER
    parser.add_argument("-m", nargs=rest, default=[], metavar="MODULE", help="in place of a script")
    parser.add_argument("script", nargs=rest, help="script.py words…, or -m module words…")
    asked = parser.parse_args(words)
    script = ["-m", *asked.m] if asked.m else asked.script
    least = asked.n if asked.min is None else asked.min
    if not script:
        parser.error("no script is given: phlox launch -n 4 train.py")
    if asked.n < 1:
        parser.error(f"-n is {asked.n}, and one rank is the least: phlox launch -n 4 train.py")
    if not 1 <= least <= asked.n:
        parser.error(f"--min is {least}, not 1 to {asked.n}: phlox launch -n 4 --min 2 train.py")
    if asked.restarts < 0 or not 0 < asked.hang <= _LONGEST:
        parser.error("0 or more restarts, and seconds: phlox launch -n 4 --restarts 0 --hang 600")
    try:
        require_system(sys.platform)
        command = starter(asked.by, asked.hosts)
        if asked.hosts:
            require_hosts(Path(asked.hosts), command)
    except DistributedError as error:
        print(error, file=sys.stderr)
        return 2
    if not asked.m and not Path(script[0]).is_file():
        parser.error(f"no such script: {script[0]}")
    if asked.logs and Path(asked.logs).is_file():
        parser.error(f"--logs takes a folder, and a file is there: {asked.logs}")
    logs = Path(asked.logs or tempfile.mkdtemp(prefix="phlox-launch-")).resolve()
    code = Launch(command, script, logs, asked.hang).run(asked.n, least, asked.restarts)
    if code == 0 and not asked.logs:
        shutil.rmtree(logs, ignore_errors=True)
    return code


@final
class Launch:
    """A script that is started until it ends well, or too often did not."""

    def __init__(self, command: list[str], script: list[str], logs: Path, hang: float) -> None:
        """Keep what is started, and where its ranks write."""
        self._command, self._script, self._logs, self._hang = command, script, logs, hang
        self._asked, self._by = 0, 0
        self._job: Job | None = None

    def run(self, ranks: int, least: int, restarts: int) -> int:
        """Start it, and start it again where it must be; return its exit status."""
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGUSR1):
            signal.signal(number, self._note)
        (self._logs / "saved").unlink(missing_ok=True)
        left, came, before, first = restarts, False, set[str](), ranks
        while not self._told_to_end():  # as of a signal that came between two jobs
            name = Path(self._command[0]).name
            say(f"{ranks} ranks by {name}; others than 0 write to {self._logs}")
            began = monotonic()
            self._job = job = self._start(ranks, first)
            if self._told_to_end():  # while it was started, so that it was not told
                job.kill()
            code = job.wait()
            lived = monotonic() - began
            if code == 0 and ranks > 1 and job.began and not job.joined:
                say(f"each of {ranks} ranks did all by itself: none called distributed.init()")
            if code == 0:
                return 0
            if self._told_to_end():
                break
            for line in job.reasons():
                say(line)
            if job.left:
                say(f"ended with status {code}, as it would again")
                return code
            if job.failed_early and not came:
                say(f"ended with status {code}, before distributed.init(): it cannot start")
                return code
            if not came and not job.began and lived < _SHORT:
                say(f"ended with status {code}: it started no rank; of --hosts, ssh HOST must work")
                return code
            if before & (before := job.errors()):
                say(f"ended with status {code}: the same error again, and no checkpoint in between")
                return code
            came = True
            left = (restarts if lived > _GOOD else left) - 1
            if left < 0:
                say(f"ended with status {code} after {lived:.1f} s")
                return code
            ranks = max(least, ranks - 1)
            starts = f"{left} {'start' if left == 1 else 'starts'} left"
            say(f"ended with status {code} after {lived:.1f} s; starts again, {starts} after that")
        return 128 + self._by

    def _told_to_end(self) -> bool:
        return self._asked > 0

    def _start(self, ranks: int, first: int) -> Job:
        told = dict(zip(_TOLD, (self._logs, ranks, self._hang, first), strict=True))
        environment = {**os.environ, **{name: str(value) for name, value in told.items()}}
        # A program of its own, since numbers of threads must be said before phlox is imported.
        words = [sys.executable, str(_rank.__file__), *self._script]
        return Job([*self._command, "-n", str(ranks), *words], environment, self._logs, ranks)

    def _note(self, number: int, frame: FrameType | None) -> None:
        """Tell rank 0, which ends or saves behind its step; a second time end all."""
        del frame
        if number == signal.SIGUSR1:
            if self._job is not None:
                self._job.tell(signal.SIGUSR1)
            return
        self._asked, self._by = self._asked + 1, number
        if self._job is not None and (self._asked > 1 or not self._job.tell(signal.SIGTERM)):
            self._job.kill()


def require_system(name: str) -> None:
    """Refuse a system without the signals and groups of processes that a job is ended by.

    Raises:
        DistributedError: on Windows.
    """
    if name == "win32":
        hint = "mpiexec -n 4 python train.py  # of an MPI for Windows, beside mpi4py"
        what, expected = "cannot watch over processes here", "Linux, or macOS"
        raise DistributedError("launch", what, got="Windows", expected=expected, hint=hint)


def starter(by: str | None, hosts: str | None) -> list[str]:
    """Return the program that starts ranks, with what it is told of machines.

    Raises:
        DistributedError: where there is none.
    """
    own = str(Path(sys.executable).parent)
    slurm = "SLURM_JOB_ID" in os.environ
    found = shutil.which(by) if by else (shutil.which("srun") if slurm else None)
    if not by and found is None:
        found = shutil.which("mpiexec", path=own) or shutil.which("mpiexec")
    if found is None:
        raise DistributedError(
            "launch",
            "nothing is here that starts processes",
            got=f"no {by or 'mpiexec or srun'}",
            expected="a program of MPI",
            hint="leave out --by, which takes mpiexec" if by else _MPI,
        )
    if Path(found).name == "srun":
        # By default it lets the others wait for a task that died.
        cpus = os.environ.get("SLURM_CPUS_PER_TASK")
        given = {"--cpus-per-task": cpus, "--nodefile": hosts}
        words = [f"{name}={value}" for name, value in given.items() if value]
        return [found, "--kill-on-bad-exit=1", *words]
    said = subprocess.run([found, "--version"], capture_output=True, text=True, check=False)
    if "open" in said.stdout.lower() and "hydra" not in said.stdout.lower():  # Open MPI
        return [
            found,
            "--bind-to",
            "none",
            "--map-by",
            ":OVERSUBSCRIBE",
            *(["--hostfile", hosts] if hosts else []),
            *(word for name in sorted(_TOLD) for word in ("-x", name)),
        ]
    return [found, *(["-f", hosts] if hosts else [])]


def require_hosts(path: Path, command: Sequence[str]) -> None:
    """Refuse a file of machines that the program does not read.

    Raises:
        DistributedError: where it is missing or empty, or of the form of another program.
    """
    slurm = Path(command[0]).name == "srun"
    form = "host" if slurm else "host slots=4" if "--hostfile" in command else "host:4"
    counted = {"host": (":", "slots"), "host:4": ("slots",)}.get(form, ())
    got = ""
    try:
        lines = [line.partition("#")[0].strip() for line in path.read_text().splitlines()]
        wrong = [line for line in lines if any(word in line for word in counted)]
        got = wrong[0] if wrong else ("" if any(lines) else "an empty file")
    except (OSError, UnicodeDecodeError) as error:
        got = getattr(error, "strerror", None) or "no text"
    if got:
        expected, hint = f"{form} a line", f"echo '{form.replace('host', 'localhost')}' > {path}"
        if slurm:  # which has counts of its own
            hint = f"sed -i 's/[: ].*//' {path}; export SLURM_NTASKS_PER_NODE=4"
        what = f"cannot take machines from {path}"
        raise DistributedError("launch", what, got=got, expected=expected, hint=hint)


def say(text: str) -> None:
    """Print a line about the job."""
    print(f"[launch] {text}", file=sys.stderr, flush=True)
