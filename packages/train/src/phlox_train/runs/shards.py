"""Shards of a checkpoint: each rank writes what only it has, in a file next to that of rank 0.

The file of rank 0 names the others and is written last, so a checkpoint is there whole or not at
all. Whoever loads it puts the shards together: the next start may have another number of ranks.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from time import sleep
from typing import Any, Final, final

from phlox_record import NamedMsgpackRecorder
from phlox_tensor import RecordError
from phlox_tensor.groups import Group, all_gather_object, broadcast_object

_RECORDER: Final = NamedMsgpackRecorder()
_TURN: Final = 0.02  # seconds between two looks
SHARDS: Final = "shards"


def name_of(step: int, mark: str, rank: int, size: int) -> str:
    """Return the name of a shard."""
    return f"step-{step:09d}.{mark}-{rank}-of-{size}{_RECORDER.extension}"


def wait_for(folder: Path, record: Mapping[str, Any], lost: Callable[[], str]) -> None:
    """Wait until the shards that a record names are there."""
    for name in record.get(SHARDS, ()):
        while not (folder / name).exists():
            if why := lost():
                raise OSError(why)
            sleep(_TURN)


def with_shards(folder: Path, record: Any) -> Any:
    """Return a record with what is in its shards."""
    for name in record.pop(SHARDS, ()) if isinstance(record, dict) else ():
        if not (folder / name).exists():
            raise RecordError("load", "a shard is not there", got="no file", expected=name)
        _merge(record, _RECORDER.load(folder / name, dtype="stored"))
    return record


def _merge(whole: dict[str, Any], part: Mapping[str, Any]) -> None:
    for key, value in part.items():
        if isinstance(value, Mapping) and isinstance(whole.get(key), dict):
            _merge(whole[key], value)
        else:
            whole.setdefault(key, value)


def remove(folder: Path, kept: set[int]) -> None:
    """Remove shards of earlier steps, those that killed saves left among them.

    Those of later ones are being written.
    """
    for path in folder.glob("step-*.*-of-*"):
        number = path.name.partition(".")[0].removeprefix("step-")
        if number.isdigit() and int(number) not in kept and int(number) < max(kept):
            path.unlink(missing_ok=True)


@final
class ShardFiles:
    """What a rank writes for checkpoints of a run, where all ranks see its folder."""

    def __init__(self, group: Group, folder: Path | None) -> None:
        """Find out whether they do; all ranks call.

        Args:
            group: the ranks.
            folder: the folder of checkpoints, on rank 0.
        """
        self._group = group
        self._thread: ThreadPoolExecutor | None = None
        self._writing: Future[Path] | None = None
        self._mark = ""
        probe = None if folder is None else folder / f".ranks-{os.urandom(4).hex()}"
        if probe is not None:
            probe.touch()
        probe = broadcast_object(group, probe)
        seen = probe is not None and all(all_gather_object(group, probe.exists()))
        if folder is not None and probe is not None:
            probe.unlink()
        self.folder: Final[Path | None] = probe.parent if seen and probe is not None else None

    def begin(self, step: int, record: Mapping[str, Any]) -> str:
        """Begin to write a shard, and return, the same on all ranks, why an earlier one failed."""
        lost = self.lost()
        assert self.folder is not None
        self._mark = broadcast_object(self._group, os.urandom(4).hex())
        if not lost and self._group.rank:
            path = self.folder / name_of(step, self._mark, self._group.rank, self._group.size)
            if self._thread is None:
                self._thread = ThreadPoolExecutor(1, "phlox-shard")
            self._writing = self._thread.submit(_RECORDER.record, dict(record), path)
        return lost

    def lost(self) -> str:
        """Wait for this rank's shard, and return why one of any rank failed; all ranks call."""
        why = ""
        if self._writing is not None:
            try:
                self._writing.result()
            except OSError as error:
                why = f"rank {self._group.rank}: {error}"
            self._writing = None
        return "; ".join(filter(None, all_gather_object(self._group, why)))

    def names(self, step: int) -> list[str]:
        """Return the names of the shards that others write now."""
        size = self._group.size
        return [name_of(step, self._mark, rank, size) for rank in range(1, size)]
