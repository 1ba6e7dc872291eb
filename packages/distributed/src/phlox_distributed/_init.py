"""Joining the processes that were started together."""

from __future__ import annotations

import hashlib
import os
import platform
import sys
import threading
from concurrent.futures import ThreadPoolExecutor  # noqa: F401 - see _end_all_on_errors
from functools import cache
from importlib.metadata import distributions
from pathlib import Path
from threading import current_thread, main_thread
from types import CodeType, TracebackType
from typing import Any, Final, NoReturn

from phlox_tensor.arguments import usage
from phlox_tensor.groups import Group, Solo, all_gather_object, joined

from . import _memory
from ._errors import DistributedError
from ._mpi import Mpi
from ._rank import ASKED
from ._watchdog import Watchdog

# One of these is set in a process that a launcher of MPI has started. Without one, mpi4py is not
# imported: under some shells of clusters the import alone ends the process.
LAUNCHED: Final = (
    "PHLOX_LAUNCH",
    "PMI_SIZE",
    "PMIX_RANK",
    "OMPI_COMM_WORLD_SIZE",
    "MPI_LOCALNRANKS",
)
HANG: Final = "PHLOX_HANG"
_ALONE: Final = Solo()


@usage("group = distributed.init()  # phlox launch -n 4 script.py says how many there are")
def init(*, check: bool = True) -> Group:
    """Join the processes that ``phlox launch``, ``mpiexec`` or ``srun`` started.

    Every call returns the same group. A process that was started alone gets a group of one,
    ``Solo``, whose calls return at once. An error that nobody catches, and ``SystemExit`` with a
    status, end all processes, not this one.
    Python 3.11 tells of ``sys.exit`` alone, ``phlox launch`` of ``raise SystemExit(3)`` there too.

    Args:
        check: whether to compare versions, kinds of processors and the script with those of the
            others.

    Raises:
        DistributedError: where a rank has another version or script.
        ModuleNotFoundError: where a launcher is there, and mpi4py is not.

    Example:
        >>> group = init()
        >>> group.rank, group.size
        (0, 1)
    """
    if not any(name in os.environ for name in LAUNCHED):
        _require_size(1)
        return _ALONE
    group = _everyone()
    if check and isinstance(group, Mpi):
        _compared(group)
    return group


@cache
def _everyone() -> Mpi | Solo:
    """Join the others, once for a process: a second group would be another one."""
    group = Mpi()
    _require_size(group.size)
    seconds, folder = float(os.environ.get(HANG, "0")), os.environ.get("PHLOX_LAUNCH")
    if folder:
        _memory.note(Path(folder) / f"rank-{group.rank}.shm")
    if group.size == 1:
        return _ALONE
    if seconds > 0 and folder:
        group.watchdog = Watchdog(seconds, Path(folder), group.rank)
    joined(group.size)
    _end_all_on_errors(group)
    return group


@cache
def _compared(group: Mpi) -> None:
    require_alike(group, facts())


def _require_size(found: int) -> None:
    """Refuse processes that were started together, and do not know of each other.

    Raises:
        DistributedError: where a launcher and MPI speak different protocols.
    """
    known = (os.environ.get(name, "") for name in ("PHLOX_RANKS", "SLURM_STEP_NUM_TASKS"))
    asked = max((int(text) for text in known if text.isdigit()), default=found)
    if found == 1 < asked:
        raise DistributedError(
            "distributed",
            "processes that were started together do not find each other",
            got="a group of one",
            expected=f"{asked} processes",
            hint="SLURM_MPI_TYPE=pmi2 phlox launch ...; pmix where MPI is Open MPI; "
            "srun --mpi=list shows what there is",
        )


def facts() -> dict[str, str]:
    """What has to be the same on all ranks, so that their bits are."""
    found = {"Python": platform.python_version(), "machine": platform.machine()}
    for each in distributions():
        name = str(each.metadata["Name"]).lower()
        if name == "numpy" or name.startswith("phlox"):
            found[name] = each.version
    found["PHLOX_SIMD"] = os.environ.get("PHLOX_SIMD", "")
    script = getattr(sys.modules.get("__main__"), "__file__", None)
    if script and Path(script).is_file():
        found["script"] = hashlib.sha256(Path(script).read_bytes()).hexdigest()[:16]
    return found


def require_alike(group: Group, mine: dict[str, Any]) -> None:
    """Compare facts of all ranks with those of rank 0.

    Raises:
        DistributedError: on all ranks, naming the first that differs.
    """
    first, *others = all_gather_object(group, mine)
    for rank, other in enumerate(others, 1):
        for name in sorted({*first, *other}):
            if first.get(name) != other.get(name):
                raise DistributedError(
                    "distributed",
                    f"rank {rank} has another {name}",
                    got=other.get(name) or "none",
                    expected=f"{first.get(name) or 'none'}, as rank 0 has",
                    hint="the same environment on all machines; init(check=False) to go on anyway",
                )


def _end_all_on_errors(group: Mpi) -> None:
    """Make an error that nobody catches end the others too, which would wait for ever.

    So does ``SystemExit`` with a status, as of a command line that argparse refuses.
    """
    before = sys.excepthook
    _note_exits(group)
    # It comes before the waiting for threads, of which one may be waiting for the others: what is
    # registered last is called first, and what the import of ThreadPoolExecutor registers waits.
    threading._register_atexit(group.leave)  # type: ignore[attr-defined]

    def hook(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
        before(kind, error, trace)
        group.abort(1)

    sys.excepthook = hook


def _note_exits(group: Mpi) -> None:
    """Note the status of a ``SystemExit`` that ends this process, of which no hook is told."""

    def note(status: Any) -> None:
        if status not in (None, 0, ASKED):
            group.status = status if isinstance(status, int) else 1

    if sys.version_info >= (3, 12):
        watch = sys.monitoring
        free = next((each for each in (4, 3) if watch.get_tool(each) is None), None)
        if free is None:
            return

        def unwound(code: CodeType, place: int, error: BaseException) -> None:
            del code, place
            last = sys._getframe(1).f_back is None
            if isinstance(error, SystemExit) and last and current_thread() is main_thread():
                note(error.code)

        watch.use_tool_id(free, "phlox_distributed")
        watch.register_callback(free, watch.events.PY_UNWIND, unwound)
        watch.set_events(free, watch.events.PY_UNWIND)  # 0.3 µs for each frame that an error leaves
    else:
        leave = sys.exit

        def leaving(status: Any = None) -> NoReturn:
            note(status)
            leave(status)

        sys.exit = leaving
