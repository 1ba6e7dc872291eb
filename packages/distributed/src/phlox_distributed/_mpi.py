"""The group over MPI: bytes that travel, and no sum that MPI would order."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from itertools import accumulate
from time import monotonic, sleep
from typing import Any, Final, final

import numpy as np
from numpy.typing import NDArray

from phlox_tensor import WrongTypeError
from phlox_tensor.groups import NamedGroup, all_gather_object
from phlox_tensor.needed import needed

from ._errors import DistributedError
from ._watchdog import Watchdog

_UNWATCHED: Final = nullcontext()
_GRACE: Final = 1.0  # seconds in which a job ends by itself, once a rank ends by a status


@final
class Mpi(NamedGroup):
    """The processes of an MPI communicator, by default all that were started together.

    It is a ``Group``: its calls are those of one communicator of its own, which nobody else uses.

    Attributes:
        watchdog: told of each call, so that it knows that this process goes on; or None.
        status: by which this process ends, if it makes no more calls; 0 where it ends well.
    """

    def __init__(self, communicator: Any = None) -> None:
        """Join the others; all of them do.

        Args:
            communicator: one of mpi4py, such as ``MPI.COMM_WORLD.Split(color)``.

        Raises:
            ModuleNotFoundError: without mpi4py; where a cluster has its own MPI, it goes beside it.
            RuntimeError: of mpi4py, without a library of MPI.
            DistributedError: where that library does not let several threads call it.
            WrongTypeError: for what is no communicator.
        """
        if communicator is not None and not hasattr(communicator, "Split_type"):
            raise WrongTypeError(
                "Mpi",
                "not a communicator",
                got=type(communicator).__name__,
                expected="one of mpi4py",
                hint="distributed.Mpi(MPI.COMM_WORLD)",
            )
        # Importing it joins the job, and some clusters end processes that do.
        self._mpi = mpi = needed("distributed", "phlox-distributed[mpi]", "mpi4py.MPI")
        _require_threads(mpi)
        self._world = (mpi.COMM_WORLD if communicator is None else communicator).Dup()
        machine = self._world.Split_type(mpi.COMM_TYPE_SHARED)
        self.rank: Final[int] = self._world.rank
        self.size: Final[int] = self._world.size
        self.local_rank: Final[int] = machine.rank
        self.local_size: Final[int] = machine.size
        machine.Free()
        self._windows: Any = None
        self._views: list[NDArray[Any]] = []
        self._kept: list[Any] = []
        self._too_large = 1 << 62  # bytes for which there was no room
        self.watchdog: Watchdog | None = None
        self.status = 0

    def all_to_all(
        self,
        send: NDArray[Any],
        send_counts: Sequence[int],
        receive: NDArray[Any],
        receive_counts: Sequence[int],
    ) -> None:
        """Give each rank its piece of ``send``, and fill ``receive`` with those of all ranks."""
        with self._noted():
            spec = self._spec(receive, receive_counts)
            self._world.Alltoallv(self._spec(send, send_counts), spec)

    def all_gather(self, send: NDArray[Any], receive: NDArray[Any], counts: Sequence[int]) -> None:
        """Fill ``receive`` with what all ranks send, in their order."""
        if len(set(counts)) == 1:
            own = [_bytes(send), self._mpi.BYTE]
            with self._noted():
                self._world.Allgather(own, [_bytes(receive), self._mpi.BYTE])
            return
        # MPICH's Allgatherv goes round in pieces of 32 KB: up to 80 times as slow where cores are
        # shared. So each rank sends its piece to all.
        sizes, places = [send.nbytes] * self.size, [0] * self.size
        spec = [_bytes(send), sizes, places, self._mpi.BYTE]
        with self._noted():
            self._world.Alltoallv(spec, self._spec(receive, counts))

    def broadcast(self, buffer: NDArray[Any], root: int = 0) -> None:
        """Fill ``buffer`` with that of one rank."""
        with self._noted():
            self._world.Bcast([_bytes(buffer), self._mpi.BYTE], root)

    def barrier(self) -> None:
        """Wait until all ranks are here."""
        with self._noted():
            self._world.Barrier()

    def window(self, nbytes: int) -> tuple[list[NDArray[Any]], Callable[[], None]] | None:
        """Return memory of each rank that all see, and what waits until all are there.

        All ranks call, and with the same number. None where they are on several machines, and where
        the system has little such memory.
        """
        if self.local_size < self.size:
            return None
        if nbytes >= self._too_large:
            return None
        if self._windows is None or self._views[0].nbytes < nbytes:
            if not self._has_room(nbytes):
                self._too_large = nbytes
                return None
            if self._windows is not None:  # whose sums are done on all ranks
                self._views = []
                self._windows.Unlock_all()
                self._windows.Free()
            self._windows, self._views = self._allocated(nbytes)
        return self._views, self._meet

    def memory(self, nbytes: int) -> list[NDArray[Any]] | None:
        """Return memory as ``window`` does, of this call alone and until the process ends."""
        if self.local_size < self.size or not self._has_room(nbytes):
            return None
        window, views = self._allocated(nbytes)
        self._kept.append(window)
        return views

    def _allocated(self, nbytes: int) -> tuple[Any, list[NDArray[Any]]]:
        window = self._mpi.Win.Allocate_shared(nbytes, 1, comm=self._world)
        window.Lock_all()
        buffers = [window.Shared_query(rank)[0] for rank in range(self.size)]
        return window, [np.frombuffer(buffer, np.uint8) for buffer in buffers]

    def _has_room(self, nbytes: int) -> bool:
        return all(all_gather_object(self, _is_free(2 * nbytes * self.size)))

    def _meet(self) -> None:
        self._windows.Sync()
        self.barrier()
        self._windows.Sync()

    def leave(self) -> None:
        """End all processes, where this one ends by a status and others go on: they would wait."""
        if not self.status:
            return
        all_leave, until = self._mpi.COMM_WORLD.Ibarrier(), monotonic() + _GRACE
        while not all_leave.Test():
            if monotonic() > until:
                self.abort(self.status)
            sleep(0.01)

    def abort(self, code: int = 1) -> None:
        """End all processes of the job at once."""
        sys.stdout.flush()
        sys.stderr.flush()
        self._mpi.COMM_WORLD.Abort(code)

    def _spec(self, buffer: NDArray[Any], counts: Sequence[int]) -> list[Any]:
        """A buffer as bytes, which pieces of it belong to which rank."""
        sizes = [count * buffer.itemsize for count in counts]
        places = [0, *accumulate(sizes)][: len(sizes)]
        return [_bytes(buffer), sizes, places, self._mpi.BYTE]

    def _noted(self) -> AbstractContextManager[None]:
        self.status = 0  # whoever raised SystemExit was caught
        return _UNWATCHED if self.watchdog is None else self.watchdog

    def __repr__(self) -> str:
        return f"<Mpi, rank {self.rank} of {self.size}>"


def _require_threads(mpi: Any) -> None:
    """Refuse a library that one thread alone may call: those of a step would call it too."""
    level = mpi.Query_thread()
    if level < mpi.THREAD_MULTIPLE:
        raise DistributedError(
            "distributed",
            "several threads may not call MPI",
            got=f"thread level {level}",
            expected=f"{mpi.THREAD_MULTIPLE}, MPI_THREAD_MULTIPLE",
            hint='import mpi4py; mpi4py.rc.thread_level = "multiple"  # before init()',
        )


def _is_free(nbytes: int) -> bool:
    """Whether the system has so many bytes of memory that processes share."""
    try:
        found = os.statvfs("/dev/shm")
    except (AttributeError, OSError):  # it is elsewhere: macOS, Windows
        return True
    return found.f_bavail * found.f_frsize > nbytes


def _bytes(buffer: NDArray[Any]) -> NDArray[Any]:
    return buffer.reshape(-1).view(np.uint8)
