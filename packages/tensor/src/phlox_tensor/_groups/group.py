"""The protocol of processes that work together: four calls that carry bytes."""

from __future__ import annotations

import os
import pickle
from collections.abc import Sequence
from typing import Any, Final, Protocol, final, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from .._elsewhere.named import Named
from .._elsewhere.processes import OF_PROCESSES
from .._errors.classes import ArgumentError, WrongTypeError
from .._errors.foreign import warn_user


@runtime_checkable
class Group(Protocol):
    """Processes with ranks from 0, and what carries bytes between them.

    All ranks make the same calls in the same order. Arrays are contiguous and have one axis, and
    counts are numbers of elements, one for each rank. No call adds anything up.
    """

    @property
    def rank(self) -> int:
        """The number of this process."""
        ...

    @property
    def size(self) -> int:
        """How many processes there are."""
        ...

    @property
    def local_rank(self) -> int:
        """The number of this process among those of its machine."""
        ...

    @property
    def local_size(self) -> int:
        """How many of the processes are on this machine."""
        ...

    def all_to_all(
        self,
        send: NDArray[Any],
        send_counts: Sequence[int],
        receive: NDArray[Any],
        receive_counts: Sequence[int],
    ) -> None:
        """Give each rank its piece of ``send``, and fill ``receive`` with those of all ranks."""
        ...

    def all_gather(self, send: NDArray[Any], receive: NDArray[Any], counts: Sequence[int]) -> None:
        """Fill ``receive`` with what all ranks send, in their order."""
        ...

    def broadcast(self, buffer: NDArray[Any], root: int = 0) -> None:
        """Fill ``buffer`` with that of one rank."""
        ...

    def barrier(self) -> None:
        """Wait until all ranks are here."""
        ...


class NamedGroup(Named):
    """A group whose errors say what names of other libraries are here."""

    _elsewhere = OF_PROCESSES
    _owner = "group"


@final
class Solo(NamedGroup):
    """The group of one process that was started alone.

    >>> Solo().rank, Solo().size
    (0, 1)
    """

    rank = local_rank = 0
    size = local_size = 1

    def all_to_all(
        self,
        send: NDArray[Any],
        send_counts: Sequence[int],
        receive: NDArray[Any],
        receive_counts: Sequence[int],
    ) -> None:
        """Fill ``receive`` with ``send``."""
        del send_counts, receive_counts
        receive[...] = send

    def all_gather(self, send: NDArray[Any], receive: NDArray[Any], counts: Sequence[int]) -> None:
        """Fill ``receive`` with ``send``."""
        del counts
        receive[...] = send

    def broadcast(self, buffer: NDArray[Any], root: int = 0) -> None:
        """Leave the buffer as it is."""

    def barrier(self) -> None:
        """Go on."""

    def __repr__(self) -> str:
        return "Solo()"


def require_group(op: str, given: object) -> None:
    """Refuse what is no group.

    Raises:
        WrongTypeError: for it.
    """
    if not isinstance(given, Group):
        got, expected = type(given).__name__, "processes that work together"
        hint = "group = distributed.init()"
        raise WrongTypeError(op, "no group", got=got, expected=expected, hint=hint)


_JOINED: Final[list[int]] = []  # how many processes there are, until a warning says so


def joined(size: int) -> None:
    """Note that so many processes work together, for a warning where a device knows of none."""
    _JOINED[:] = [size]


def warn_alone(op: str) -> None:
    """Warn once that a device of one process gives back what it is given, where there are more."""
    if _JOINED:
        text = f"the device has no group, so nothing comes of the {_JOINED.pop()} processes"
        hint = "px.asarray(x, device=px.Distributed(px.Cpu(), group))"
        warn_user(f"[{op}] {text}\nhint: {hint}")


def ranks_said(op: str, group: Group | None) -> int:
    """Return how many ranks there are, with a warning where each would do the same by itself."""
    size = max(int(os.environ.get("PHLOX_RANKS", "1")), *_JOINED, 1)
    if group is None and size > 1:
        text = f"no group, so each of the {size} processes makes the whole training by itself"
        warn_user(f"[{op}] {text}\nhint: {op}(..., group=distributed.init())")
    return 1 if group is None else group.size


def first_size(group: Group | None) -> int:
    """Return how many ranks a job had at its first start; ``phlox launch`` may go on with fewer."""
    if group is None or str(group.size) != os.environ.get("PHLOX_RANKS"):  # it is of some of them
        return 1 if group is None else group.size
    return int(os.environ.get("PHLOX_FIRST", group.size))


def all_gather_object(group: Group, value: Any) -> list[Any]:
    """Return what each rank gives, small values of Python in the order of ranks. All call.

    Raises:
        ArgumentError: on all ranks, where the value of one cannot be pickled.

    >>> all_gather_object(Solo(), {"rows": 3})
    [{'rows': 3}]
    """
    if group.size == 1:
        return [value]
    send, error = _pickled(value)
    lengths = np.empty(group.size, np.int64)
    group.all_gather(np.array([-1 if error else send.size]), lengths, [1] * group.size)
    counts = lengths.tolist()
    _require_sent("all_gather_object", [r for r, count in enumerate(counts) if count < 0], error)
    receive = np.empty(sum(counts), np.uint8)
    group.all_gather(send, receive, counts)
    ends = np.cumsum(lengths)
    return [pickle.loads(receive[end - n : end].data) for n, end in zip(counts, ends, strict=True)]


def broadcast_object(group: Group, value: Any, root: int = 0) -> Any:
    """Return the value that one rank gives, on all of them. All call.

    Raises:
        ArgumentError: on all ranks, for a value that cannot be pickled, and a rank that is none.

    >>> broadcast_object(Solo(), "done")
    'done'
    """
    if not 0 <= root < group.size:
        what, expected = "no such process", f"0 <= root < {group.size}"
        raise ArgumentError("broadcast_object", what, got=root, expected=expected)
    if group.size == 1:
        return value
    mine = group.rank == root
    send, error = _pickled(value) if mine else (np.empty(0, np.uint8), None)
    length = np.array([-1 if error else send.size])
    group.broadcast(length, root)
    _require_sent("broadcast_object", [root] * (int(length[0]) < 0), error)
    buffer = send.copy() if mine else np.empty(int(length[0]), np.uint8)
    group.broadcast(buffer, root)
    return value if mine else pickle.loads(buffer.data)


def _pickled(value: Any) -> tuple[NDArray[np.uint8], Exception | None]:
    """A value as bytes, or why it is none: others wait, who are told before it is raised."""
    try:
        return np.frombuffer(pickle.dumps(value, protocol=5), np.uint8), None
    except Exception as error:
        return np.empty(0, np.uint8), error


def _require_sent(op: str, failed: list[int], error: Exception | None) -> None:
    if failed:
        got = f"{error or 'another value'} on rank {', '.join(map(str, failed))}"
        expected, hint = "what pickle takes", f"distributed.{op}(group, {{'rows': 3}})"
        what = "a value cannot be sent"
        raise ArgumentError(op, what, got=got, expected=expected, hint=hint) from error
