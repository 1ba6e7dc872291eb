"""What ``phlox launch`` runs in each process: ``python _rank.py script.py words…``.

It is run as a file, and imports nothing of phlox: numbers of threads are read when that is loaded.
"""

from __future__ import annotations

import atexit
import os
import runpy
import socket
import sys
import traceback
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import NoReturn

# How launchers tell a process its number, and how many are on its machine.
_RANKS = ("PMI_RANK", "PMIX_RANK", "OMPI_COMM_WORLD_RANK", "SLURM_PROCID")
_BY_MPIEXEC = ("MPI_LOCALNRANKS", "OMPI_COMM_WORLD_LOCAL_SIZE")
_LOCAL = (*_BY_MPIEXEC, "SLURM_NTASKS_PER_NODE", "PHLOX_RANKS")
_THREADS = ("PHLOX_NUM_THREADS", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
ASKED = 143  # how a run ends that SIGTERM stopped: all ranks do, each by itself


def main(words: Sequence[str]) -> None:
    """Run a script as Python would, as one rank of a job."""
    rank = int(_first(_RANKS, "0"))
    folder = Path(os.environ["PHLOX_LAUNCH"])
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"rank-{rank}.pid").write_text(f"{socket.gethostname()} {os.getpid()}")
    atexit.register(_ended, folder / f"rank-{rank}.ended", os.getpid())
    if rank:  # the terminal is that of rank 0
        log = os.open(folder / f"rank-{rank}.log", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
        os.dup2(log, 1)
        os.dup2(log, 2)
    sys.stdout.reconfigure(line_buffering=True)  # type: ignore[union-attr]
    for name in _THREADS:
        os.environ.setdefault(name, str(threads(int(_first(_LOCAL, "1")))))
    try:
        _run(words)
    except SystemExit as error:
        if error.code not in (None, 0, ASKED):
            _fail(folder, rank, f"exit status {error.code}")
            _end(error.code if isinstance(error.code, int) else 1)
        raise
    except BaseException as error:
        shown = "".join(traceback.format_exception(error.with_traceback(_own(error.__traceback__))))
        _fail(folder, rank, f"{type(error).__name__}: {error}\f{shown}")
        sys.stderr.write(shown)
        _end(1)


def threads(ranks: int) -> int:
    """Return how many threads each of so many processes of a machine may have."""
    own = os.environ.get("SLURM_CPUS_PER_TASK")  # of a task of srun, which may be an mpiexec
    if own and not any(os.environ.get(name) for name in _BY_MPIEXEC):
        return max(1, int(own))
    cores = len(os.sched_getaffinity(0)) if sys.platform == "linux" else os.cpu_count() or 1
    return max(1, cores // max(1, ranks))


def _run(words: Sequence[str]) -> None:
    if words[0] == "-m":
        sys.argv = list(words[1:])
        sys.path[0] = os.getcwd()
        runpy.run_module(words[1], run_name="__main__", alter_sys=True)
    else:
        sys.argv = list(words)
        sys.path[0] = str(Path(words[0]).resolve().parent)
        runpy.run_path(words[0], run_name="__main__")


def _own(trace: TracebackType | None) -> TracebackType | None:
    """A traceback without the lines that ran the script."""
    while trace is not None and trace.tb_frame.f_code.co_filename in (__file__, "<frozen runpy>"):
        trace = trace.tb_next
    return trace


def _ended(mark: Path, process: int) -> None:
    """Say that the script ended by itself, once no thread of it goes on: not by ``os._exit``."""
    if os.getpid() == process:  # and no child that it forked
        mark.touch()


def _fail(folder: Path, rank: int, text: str) -> None:
    path = folder / f"rank-{rank}.failing"
    path.write_text(text)
    path.replace(folder / f"rank-{rank}.failed")  # whole, as the launcher reads it at once


def _end(code: int) -> NoReturn:
    """End all ranks: they would wait for this one."""
    sys.stdout.flush()
    sys.stderr.flush()
    mpi = sys.modules.get("mpi4py.MPI")
    if mpi is not None and mpi.Is_initialized():
        mpi.COMM_WORLD.Abort(code)
    os._exit(code)


def _first(names: Sequence[str], default: str) -> str:
    return next((os.environ[name] for name in names if os.environ.get(name)), default)


if __name__ == "__main__":
    main(sys.argv[1:])
