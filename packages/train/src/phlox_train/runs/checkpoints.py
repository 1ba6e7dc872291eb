"""Checkpoints: a thread writes them from a snapshot, each whole or not at all; rules keep some."""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from threading import get_native_id
from typing import Any, Final, final

from phlox_record import NamedMsgpackRecorder, Record
from phlox_tensor import ArgumentError, WrongTypeError

from . import shards
from .errors import RunError, path_of
from .keep import KeepLast, KeepRule, Kept

_RECORDER: Final = NamedMsgpackRecorder()
_LOWER: Final = 10  # of the levels that nice has; the last one is 19
_NAME: Final = re.compile(r"step-(\d+)" + re.escape(_RECORDER.extension))


@final
class Checkpoints:
    """Files of records in a folder, one for a step.

    ``save`` takes a snapshot, which costs nothing since tensors never change, and a thread writes
    it. A file takes its name when it is complete, so a process that is killed at any moment
    leaves whole ones. Files that no rule wants are removed after the one that takes their place.

    Example:
        >>> import tempfile
        >>> saves = Checkpoints(tempfile.mkdtemp(), keep=[KeepLast(2)])
        >>> for step in (1, 2, 3):
        ...     saves.save(step, {"weight": px.ones(2) * step})
        >>> saves.wait()
        >>> saves.steps, saves.load()["weight"].tolist()
        ([2, 3], [3.0, 3.0])
    """

    def __init__(
        self,
        folder: str | os.PathLike[str],
        keep: Sequence[KeepRule] = (),
        *,
        better: Mapping[str, str] | None = None,
    ) -> None:
        """Look at a folder, or make it.

        Args:
            folder: where the files are.
            keep: which of them stay; the newest one in any case.
            better: for rules, which values are better, as far as is known.

        Raises:
            OSError: for a folder that cannot be made.
        """
        self.folder: Final = path_of(folder, "Checkpoints")
        self._keep = (*keep, KeepLast(1))
        self._better = {} if better is None else better
        self.folder.mkdir(parents=True, exist_ok=True)
        self.kept: list[Kept] = [Kept(step, 0, {}) for step in self.steps]
        self._thread = ThreadPoolExecutor(1, "phlox-checkpoint", initializer=_let_others_go_first)
        self._before = self.kept
        self.lost = ""  # why a shard of another rank will not come
        self._saving: Future[Path] | None = None
        self._done: Callable[[Path], None] | None = None

    @property
    def steps(self) -> list[int]:
        """The steps of the files that are there, the newest last."""
        found = [_NAME.fullmatch(path.name) for path in self.folder.iterdir()]
        return sorted(int(match[1]) for match in found if match)

    def path(self, step: int) -> Path:
        """Return where the file of a step is."""
        return self.folder / f"step-{step:09d}{_RECORDER.extension}"

    def save(
        self,
        step: int,
        record: Mapping[str, Record],
        values: Mapping[str, float] | None = None,
        *,
        epoch: int = 0,
        before: Callable[[], None] | None = None,
        done: Callable[[Path], None] | None = None,
    ) -> None:
        """Begin to write a checkpoint, when the one before it is written.

        Args:
            step: where the training is; steps grow, and an equal one replaces its file.
            record: whatever is needed to go on.
            values: by which rules choose.
            epoch: the one that the step belongs to.
            before: called by the thread before it writes.
            done: called by ``wait`` or the next ``save``, when the file is there.

        Raises:
            ArgumentError: for a step before the newest.
            RunError: where the one before could not be written.
            WrongTypeError: for what is no dict.
        """
        given: Any = record
        if not isinstance(given, Mapping):
            hint = 'saves.save(step, {"model": model.into_record()})'
            kind = type(given).__name__
            raise WrongTypeError("save", "not a record", got=kind, expected="a dict", hint=hint)
        self.wait()
        if self.kept and step < self.kept[-1].step:
            got, expected = step, f"{self.kept[-1].step} or more"
            raise ArgumentError("save", "a later step is there", got=got, expected=expected)
        tree, path = dict(record), self.path(step)

        def write() -> Path:
            if before is not None:
                before()
            shards.wait_for(self.folder, tree, lambda: self.lost)
            return _RECORDER.record(tree, path)

        # Its thread ends with the object, and the program only when the file is complete.
        self._saving, self._done = self._thread.submit(write), done
        self._before = self.kept
        others = [kept for kept in self.kept if kept.step != step]
        self.kept = [*others, Kept(step, epoch, dict(values or {}))]

    @property
    def busy(self) -> bool:
        """Whether a file is being written."""
        return self._saving is not None and not self._saving.done()

    def settle(self) -> None:
        """Take note of a file that was written meanwhile, without waiting for it.

        Raises:
            RunError: where it could not be written.
        """
        if self._saving is not None and self._saving.done():
            self.wait()

    def wait(self) -> None:
        """Wait until all files are written, and remove those that no rule wants.

        Raises:
            RunError: where one could not be written; the others are there.
        """
        if self._saving is None:
            return
        saving, self._saving = self._saving, None
        try:
            path = saving.result()
        except OSError as error:
            lost, self.kept = self.kept[-1], self._before
            there = f"the newest is that of step {self.kept[-1].step}" if self.kept else "none is"
            raise RunError(
                "save",
                f"the checkpoint of step {lost.step} cannot be written, {there}",
                got=str(error),
                expected="room on the disk, and a folder that may be written to",
                hint="run it again when there is: it goes on from the newest",
            ) from error
        self._clean()
        if self._done is not None:
            self._done(path)

    def _clean(self) -> None:
        wanted = set().union(*(rule.wanted(self.kept, self._better) for rule in self._keep))
        for kept in self.kept:
            if kept.step not in wanted:
                self.path(kept.step).unlink(missing_ok=True)
        shards.remove(self.folder, wanted)
        self.kept = [kept for kept in self.kept if kept.step in wanted]

    def load(self, step: int | None = None) -> Any:
        """Return the record of a step, with tensors as they were; None is the newest.

        Raises:
            RunError: where there is none.
            RecordError: for a file that is damaged.
        """
        steps = self.steps
        chosen = step if step is not None else steps[-1] if steps else None
        if chosen not in steps:
            raise RunError("load", "no such checkpoint", got=chosen, expected=f"one of {steps}")
        found: Any = _RECORDER.load(self.path(chosen), dtype="stored")
        return shards.with_shards(self.folder, found)

    def close(self) -> None:
        """End the thread, when what it writes is written; the object can be used no more."""
        self.lost = self.lost or "the run is over"
        self._thread.shutdown()

    def __repr__(self) -> str:
        return f"Checkpoints({str(self.folder)!r}, steps={self.steps})"


def _let_others_go_first() -> None:
    """Lower the priority of this thread, which writes while all cores may be at training."""
    if sys.platform == "linux":  # elsewhere it would be that of the process
        with suppress(OSError):
            os.setpriority(os.PRIO_PROCESS, get_native_id(), os.nice(0) + _LOWER)


def write_json(path: Path, value: object) -> None:
    """Write a small file that readers see as it was or as it is."""
    temporary = path.with_name(f".{path.name}.tmp")
    try:
        temporary.write_text(json.dumps(value, indent=1) + "\n", encoding="utf-8")
        os.replace(temporary, path)
    except OSError as error:
        with suppress(OSError):
            temporary.unlink()  # a full disk has better uses
        what, hint = f"{path} cannot be written", "run it again when it can be: it goes on"
        raise RunError("run", what, got=str(error), hint=hint) from error
