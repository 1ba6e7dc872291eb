"""Checkpoints of a training: whole or not there, the last few and the best."""

from __future__ import annotations

import math
import os
import re
import sys
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from phlox_tensor import ArgumentError, RecordError
from phlox_tensor.arguments import is_thrown_away
from phlox_tensor.names import some
from phlox_tensor.random import generator

from ._errors import shown
from ._files import remove_left
from ._recorder import PathLike, Recorder, kinds
from ._recorders import NamedMsgpackRecorder
from ._tensors import materialize

_DIGITS: Final = 9
_OWN: Final = ("metrics", "random", "step")


class Checkpointer:
    """Keeps checkpoints of a training in a folder, one file each.

    A file is written beside the others and takes its name when it is complete, so whenever the
    process ends, even killed while it saves, the newest checkpoint is whole. It holds what is
    given, the state of the random stream and the metrics. One process writes to a folder, with
    steps that grow.

    >>> import tempfile
    >>> from phlox_record import Checkpointer
    >>> checkpoints = Checkpointer(tempfile.mkdtemp(), keep_last=2, best="loss")
    >>> for step in range(4):
    ...     path = checkpoints.save(step, metrics={"loss": [3, 1, 4, 5][step]}, epoch=step)
    >>> checkpoints.steps, checkpoints.best_step
    ([1, 2, 3], 1)
    >>> checkpoints.restore(epoch=0)
    {'epoch': 3, 'step': 3}
    """

    def __init__(
        self,
        folder: PathLike,
        *,
        keep_last: int = 2,
        best: str | None = None,
        largest: bool = False,
        recorder: Recorder | None = None,
    ) -> None:
        """Make the folder, and remove what a killed save left there.

        Args:
            folder: where the files are.
            keep_last: how many of the newest to keep.
            best: the metric by which the best one is kept too.
            largest: whether the best has the largest metric, instead of the smallest.
            recorder: by default ``NamedMsgpackRecorder()``: every bit comes back.

        Raises:
            ArgumentError: fewer than one to keep; a recorder that needs the structure to load.
        """
        if type(keep_last) is not int or keep_last < 1:
            raise ArgumentError("checkpointer", "keep_last", got=keep_last, expected="1 or more")
        if not isinstance(recorder, Recorder | None):
            raise ArgumentError(
                "checkpointer",
                "not a recorder",
                got=recorder,
                expected="a recorder such as NamedMsgpackRecorder()",
            )
        if not isinstance(folder, str | os.PathLike):
            raise ArgumentError("checkpointer", "folder", got=folder, expected="a path")
        self.recorder: Final = NamedMsgpackRecorder() if recorder is None else recorder
        if self.recorder.needs_like or not self.recorder.writes:
            raise ArgumentError(
                "checkpointer",
                "the recorder does not write files with names",
                got=self.recorder,
                expected="a recorder such as NamedMsgpackRecorder()",
            )
        if "\0" in str(folder):
            raise RecordError("checkpointer", "the path has a NUL character", got=repr(str(folder)))
        self.folder: Final = Path(folder)
        self._keep_last: Final = keep_last
        self._best: Final = best
        self._sign: Final = -1.0 if largest else 1.0
        self._scores: dict[int, float] = {}
        self.folder.mkdir(parents=True, exist_ok=True)
        remove_left(self.folder, os.listdir(self.folder))

    def save(self, step: int, *, metrics: Mapping[str, float] | None = None, **parts: Any) -> Path:
        """Write a checkpoint, then remove those that are neither among the last nor the best.

        Args:
            step: where the training is.
            metrics: numbers to keep, among them the one that says which is best.
            parts: by name, what has ``into_record()`` (modules, optimizers, schedulers) or is a
                record: the epoch, the position in the data.

        Raises:
            ArgumentError: metrics that are no numbers; a part under a name of the file's own; no
                metric to choose the best by; a step before the newest that is there.
            RecordError: as ``Recorder.record``.
        """
        taken = sorted(set(parts) & set(_OWN))
        if taken or type(step) is not int or step < 0:
            raise ArgumentError(
                "checkpoint", "names", got=taken or step, expected=f"a step, and not {_OWN}"
            )
        _check_parts("checkpoint", parts)
        self._check_newest(step)
        numbers = _numbers({} if metrics is None else metrics)
        if self._best is not None and self._best not in numbers:
            raise ArgumentError(
                "checkpoint",
                "the metric that says which is best is not there",
                got=sorted(numbers),
                expected=self._best,
                hint=f"save(step, metrics={{{self._best!r}: ...}})",
            )
        tree: dict[str, Any] = {
            "step": step,
            "metrics": numbers,
            "random": list(generator().state()),
            **{name: _record(part) for name, part in parts.items()},
        }
        path = self.recorder.record(tree, self._path(step))
        self._scores[step] = self._score(numbers)
        self._clean()
        return path

    def restore(self, step: int | None = None, **parts: Any) -> dict[str, Any] | None:
        """Return the parts as they were, by name, and ``step``; None when there is no checkpoint.

        The random stream goes on from where it was.

        Args:
            step: which one; None is the newest.
            parts: those that were saved: what has ``load_record`` (a module comes back as another
                one, an optimizer or a scheduler is changed itself), or anything for plain values.

        Raises:
            RecordError: no such checkpoint; names that differ from those saved; damaged; a part of
                another structure. All parts are then as before.
        """
        _check_parts("restore", parts)
        if step is None and not self.steps:
            self._check_others()
            return None
        tree = self.open(step)
        saved = set(tree) - set(_OWN)
        if saved != set(parts):
            raise RecordError(
                "restore",
                "other parts were saved",
                got=", ".join(sorted(parts)),
                expected=", ".join(sorted(saved)),
                hint="open(step) gives the record, to take parts of it",
            )
        found = self._all_loaded(parts, tree)
        generator().set_state(*tree["random"])
        if is_thrown_away(sys._getframe()):
            _tell_lost(parts)
        return {**found, "step": tree["step"]}

    def open(self, step: int | None = None) -> Any:
        """Return the record of a checkpoint, its tensors unread; None is the newest.

        Raises:
            RecordError: no such checkpoint, or no checkpoint at all; damaged.
        """
        steps = self.steps
        chosen = step if step is not None else steps[-1] if steps else None
        if type(chosen) is not int or chosen not in steps:
            raise RecordError(
                "restore", "no such checkpoint", got=chosen, expected=f"one of {steps}"
            )
        tree = self.recorder.open(self._path(chosen))
        if not isinstance(tree, dict) or not set(_OWN) <= set(tree):
            got = shown(self._path(chosen).name)
            raise RecordError("restore", "not a checkpoint", got=got, expected=f"one with {_OWN}")
        return tree

    def remove_after(self, step: int) -> None:
        """Remove the checkpoints of later steps, to go on from an earlier one."""
        for later in self.steps:
            if later > step:
                self._path(later).unlink(missing_ok=True)
                self._scores.pop(later, None)

    @property
    def steps(self) -> list[int]:
        """The steps of the checkpoints that there are, the newest last."""
        return self._steps_of(self.recorder.extension)

    def _steps_of(self, extension: str) -> list[int]:
        name = re.compile(rf"step-(\d+){re.escape(extension)}")
        found = [name.fullmatch(path.name) for path in self.folder.iterdir()]
        return sorted(int(match[1]) for match in found if match)

    def _check_newest(self, step: int) -> None:
        """Refuse a step that would be removed at once, or that ``restore()`` would not take."""
        newest = max(self.steps, default=step)
        if step < newest:
            raise ArgumentError(
                "checkpoint",
                "the step is before the newest checkpoint, from which restore() goes on",
                got=step,
                expected=f"{newest} or more",
                hint=f"restore(...) first, another folder, or remove_after({step})",
            )

    def _check_others(self) -> None:
        """Refuse to begin anew where another recorder wrote the checkpoints."""
        for kind in kinds():
            steps = self._steps_of(kind.extension)
            if steps:
                raise RecordError(
                    "restore",
                    "the checkpoints are of another recorder",
                    got=f"{self.recorder}, steps {steps} of {kind.__name__}",
                    expected=kind.__name__,
                    hint=f"Checkpointer({str(self.folder)!r}, recorder={kind.__name__}())",
                )

    @property
    def best_step(self) -> int | None:
        """The step of the best checkpoint by the metric; the earlier of two that are equal."""
        if self._best is None:
            return None
        steps = self.steps
        for step in steps:
            if step not in self._scores:
                self._scores[step] = self._score(self.open(step)["metrics"])
        return min(steps, key=lambda step: self._scores[step], default=None)

    def _score(self, metrics: Mapping[str, float]) -> float:
        value = metrics.get(self._best or "", math.nan)
        return math.inf if math.isnan(value) else self._sign * value

    def _clean(self) -> None:
        steps = self.steps
        kept = {*steps[-self._keep_last :], self.best_step}
        for step in steps:
            if step not in kept:
                self._path(step).unlink(missing_ok=True)

    def _path(self, step: int) -> Path:
        return self.folder / f"step-{step:0{_DIGITS}d}{self.recorder.extension}"

    def _all_loaded(self, parts: dict[str, Any], tree: Any) -> dict[str, Any]:
        """The parts as they were saved; none is changed unless all fit."""
        found: dict[str, Any] = {}
        before: list[tuple[Any, Any]] = []
        # A module comes back as another one, so that these can fail without harm.
        for name in sorted(parts, key=lambda name: _changes(parts[name])):
            part = parts[name]
            try:
                if _changes(part):
                    before.append((part, part.into_record()))
                found[name] = self._loaded(part, tree[name])
            except BaseException:
                for changed, record in before:
                    changed.load_record(record)
                raise
        return {name: found[name] for name in parts}

    def _loaded(self, part: Any, record: Any) -> Any:
        if not hasattr(part, "load_record"):
            return materialize(record, dtype="stored", op="restore")
        # A module reads tensors straight to its own devices; others take them as they are.
        lazy = hasattr(part, "to_device")
        return part.load_record(
            record if lazy else materialize(record, dtype="stored", op="restore")
        )

    def __repr__(self) -> str:
        return f"Checkpointer({str(self.folder)!r}, steps={self.steps})"


def _check_parts(op: str, parts: Mapping[str, Any]) -> None:
    """Refuse a class where an object of it is meant."""
    for name, part in parts.items():
        if isinstance(part, type):
            raise ArgumentError(
                op,
                "a part is a class",
                got=f"{name}={part.__name__}",
                expected=f"a {part.__name__}",
                hint=f"{name}={part.__name__}(...)",
            )


def _tell_lost(parts: Mapping[str, Any]) -> None:
    """Warn of parts that came back as other objects, which nobody keeps."""
    lost = [name for name, part in parts.items() if hasattr(part, "to_device")]
    if lost:
        warnings.warn(
            f"[restore] what it gives is thrown away, and {some(lost)} is as it was\n"
            f'hint: {lost[0]} = checkpoints.restore(...)["{lost[0]}"]',
            stacklevel=4,
        )


def _changes(part: Any) -> bool:
    """Whether loading changes the part itself, as of optimizers and schedules."""
    return hasattr(part, "load_record") and not hasattr(part, "to_device")


def _numbers(metrics: Mapping[str, float]) -> dict[str, float]:
    try:
        return {name: float(value) for name, value in metrics.items()}
    except (AttributeError, TypeError, ValueError):
        raise ArgumentError(
            "checkpoint",
            "metrics are no numbers by name",
            got=metrics,
            expected="a number each",
            hint='save(step, metrics={"loss": loss.item()})',
        ) from None


def _record(part: Any) -> Any:
    return part.into_record() if hasattr(part, "into_record") else part
