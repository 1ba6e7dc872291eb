"""A run: the loop of a training whose steps, rows and checkpoints stand in a folder."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from time import monotonic
from types import TracebackType
from typing import Any, Literal, Self, final

from phlox_nn import Config
from phlox_tensor import ArgumentError, WrongTypeError
from phlox_tensor.names import Named

from .._elsewhere import NAMES
from .better import Direction, direction
from .configs import config_of
from .control import Control
from .errors import Ended, RunError, path_of
from .events import (
    EpochEnded,
    Event,
    Failed,
    Measured,
    Saved,
    Started,
    Stepped,
    Stopped,
    Validated,
)
from .feed import Feed
from .folder import Folder
from .keep import Every, KeepLast, KeepRule
from .line import Facts, Line
from .place import Place
from .ranks import Ranks
from .results import Best, Series, best_of, series
from .rows import check_values
from .saver import Moment, Saver
from .signals import Signals
from .stop import NotFinite, Seen, StopRule
from .system import System, interval_of
from .waits import check_waits

Callback = Callable[[Event, "Run"], None]


@final
class Run(Named):
    """A training in a folder, which goes on where it was, to the same bits.

    The folder has a log of one row a line, ``log.jsonl``, and checkpoints. Each is written by a
    thread, and holds all that the next start needs: learners, the place of the loader, the random
    stream in use, rules, and the length of the log, which is cut there. So a run that is killed
    anywhere and started again leaves the same log and checkpoints as one that was not. What the
    machine did is not a part of that: ``system.jsonl`` goes on.

    Ctrl-C and SIGTERM end it after the step that is under way, with a checkpoint; SIGUSR1 saves.

    Where the learner is one of several processes, that of rank 0 has the folder and decides when
    to end, and each gets its share of the batches.

    ``save``, ``stop`` and ``log`` act on the run itself.

    Attributes:
        reason: why it ended; empty before.

    Example:
        >>> model = nn.Linear(1, 1, device="cpu").train(px.Autodiff("cpu"))
        >>> learner = Learner(model, optim.SgdConfig().init(), 0.1)
        >>> def step(model, x):
        ...     return (model(x) - x).square().mean()
        >>> with Run(None, learner, [px.ones((4, 1))] * 5, show=False) as run:
        ...     for epoch in run.epochs(2):
        ...         for batch in run.batches():
        ...             run.log(loss=learner.step(step, batch)["loss"])
        >>> run.steps, run.reason, len(run.history("train/loss"))
        (10, 'done', 10)
    """

    _elsewhere, _owner = NAMES, "run"

    def __init__(  # noqa: PLR0913 - each is a choice of its own, by name
        self,
        folder: str | os.PathLike[str] | None,
        learner: Any,
        batches: Iterable[Any] = (),
        *,
        config: Config | Mapping[str, Any] | None = None,
        keep: Sequence[KeepRule] = (KeepLast(2),),
        stop: Sequence[StopRule] | None = None,
        save: Every = Every(epochs=1, minutes=10),  # noqa: B008 - a frozen value
        callbacks: Sequence[Callback] = (),
        resume: bool | Literal["anyway"] = True,
        show: bool = True,
        system: float | None = 10.0,
    ) -> None:
        """Describe a run; nothing happens before ``with``.

        Args:
            folder: where it is; None keeps all in memory.
            learner: what is trained, or several by name: whatever has ``into_record`` and a
                ``load_record`` that changes the object itself.
            batches: what ``run.batches()`` goes through, once an epoch.
            config: what the training is made from; a run goes on only with an equal one.
            keep: rules for checkpoints. The newest one is always kept.
            stop: rules that end the run; by default ``[NotFinite()]``.
            save: when to write a checkpoint; one is written at the end in any case.
            callbacks: called with each event, and the run.
            resume: whether to go on with a run that is there; ``"anyway"`` with another config.
            show: whether to show a line: a live one in a terminal, else one every 30 seconds.
            system: seconds between two measures of processor and memory, in ``system.jsonl``;
                None for none.

        Raises:
            WrongTypeError: for what cannot be saved, and batches that come once only.
        """
        self._parts: dict[str, Any] = (
            dict(learner) if isinstance(learner, Mapping) else {"learner": learner}
        )
        for name, part in self._parts.items():
            if not hasattr(part, "load_record") or isinstance(part, type):
                got, expected = f"{name}: {part!r}", "a Learner, or a dict of them"
                raise WrongTypeError(
                    "run", "what is trained has no record", got=got, expected=expected
                )
        given: Any = save
        if not isinstance(given, Every) or resume not in (True, False, "anyway"):
            got, expected = f"save={save!r}, resume={resume!r}", 'an Every, and a bool or "anyway"'
            raise WrongTypeError("run", "when to save or go on", got=got, expected=expected)
        self._ranks = Ranks(self._parts)
        if not self._ranks.first:
            folder, show = None, False
        self._feed = Feed(self._ranks.share(batches))
        self._config = config_of(config)
        self._stop = (NotFinite(),) if stop is None else tuple(stop)
        self._callbacks, self._resume = tuple(callbacks), resume
        self._folder = Folder(None if folder is None else path_of(folder, "run"), tuple(keep))
        self._saver = Saver(self._folder, self._parts, self._stop, tuple(keep), save, self._ranks)
        self._line = Line(show)
        self._signals = Signals(show=show)
        self._place, self._every = Place(), interval_of(system)
        self._began = monotonic()
        self._inside = self._open = self._unsaved = False
        self._asked: dict[str, str] = {}
        self._waits, self._logged = (*keep, *self._stop), dict[str, None]()
        self.reason = ""

    # Going through it

    def __enter__(self) -> Self:
        if self._open or self.reason:
            raise RunError("run", "a run begins once", hint="train.Run(...), another one")
        parts = self._parts.values()
        found = self._folder.open(self._config, self._resume, parts)
        try:
            self._ranks.check(self._config)
            found = self._ranks.checkpoint(found)
            self._ranks.find_files(self._folder.checkpoints)
            self._control = Control(self.folder)
            devices = [part.device for part in parts if hasattr(part, "device")]
            self._system = System(self._every if self.folder else None, devices)
            if found is None:
                self._feed.begin()
            else:
                self._folder.take(found)
                self._place = self._saver.load(found, self._feed)
            self._open = True
            self._began = monotonic()
            self._saver.last = (self.steps, self.epoch, self.seconds)
            self._line.begin(self.steps)
            self._waited = self._feed.waited
            self._note()
            self._signals.install()
            self._emit(Started(self.steps, self.epoch))
        except BaseException:
            self._open = False
            self._signals.restore()
            self._folder.close()
            raise
        return self

    def epochs(self, count: int) -> Iterator[int]:
        """Yield the numbers of epochs that are left of so many, one that is under way first."""
        self._require()
        if type(count) is not int or count < 0:
            raise ArgumentError("epochs", "no count", got=count, expected="a whole number from 0")
        self._line.total = count
        while self.epoch < count and not self.reason:
            yield self.epoch
            self._settle(last=True)  # of an epoch that was left early
            self._end_epoch()

    def batches(self) -> Iterator[Any]:
        """Yield the batches of the epoch that are left; what follows one is its step."""
        self._require()
        self._settle()
        place = self._place
        if place.over:
            return
        for batch in self._feed.after(place.number):
            self._inside = True
            self._ranks.note(place)
            yield batch
            self._settle()
        if not place.number:
            hint = "train.Run(folder, learner, data.DataLoader(dataset, 64))"
            raise ArgumentError("batches", "the run was given no batches", hint=hint)
        place.over = True

    def log(
        self, values: Mapping[str, Any] | None = None, *, split: str = "train", **named: Any
    ) -> None:
        """Write a row of values: numbers, and tensors, which are read when they are ready.

        Args:
            values: by name, such as what ``evaluate`` gave.
            split: which data they are of.
            named: more of them.
        """
        self._require()
        given: Any = named if values is None else values
        better = getattr(given, "better", {})
        if not isinstance(given, Mapping):
            got, hint = type(values).__name__, "run.log(loss=loss)"
            what, expected = "values have no names", "a dict"
            raise WrongTypeError("log", what, got=got, expected=expected, hint=hint)
        if named and given is not named:
            if twice := sorted(given.keys() & named):
                what, expected = "a value is given twice", "one of each name"
                raise ArgumentError("log", what, got=", ".join(twice), expected=expected)
            given = {**given, **named}
        check_values(given)
        place, step = self._place, self._place.step + self._inside
        row = {"step": step, "epoch": place.epoch, "time": round(self.seconds, 3)}
        for name, way in better.items():
            self._folder.better[f"{split}/{name}"] = way
        self._folder.rows.add(row, split, given)
        if split != "train":
            self._emit(Validated(step, place.epoch, split, given))

    def save(self, reason: str = "asked") -> None:
        """Write a checkpoint after the step that is under way."""
        self._require()
        self._asked["save"] = reason

    def stop(self, reason: str = "asked") -> None:
        """End the run after the step that is under way, or the epoch whose batches are done."""
        self._require()
        self._asked["stop"] = reason

    # What it is

    @property
    def steps(self) -> int:
        """How many steps are done, those of earlier starts among them."""
        return self._place.step

    @property
    def epoch(self) -> int:
        """The epoch that is under way."""
        return self._place.epoch

    @property
    def seconds(self) -> float:
        """How long it took, all its starts together; another clock than that of the day."""
        return self._place.seconds + (monotonic() - self._began if self._open else 0.0)

    @property
    def folder(self) -> Path | None:
        """Where it is; None for one in memory."""
        return self._folder.path

    def history(self, name: str) -> Series:
        """Return the curve of a value by split and name, ``"valid/loss"``.

        Raises:
            ArgumentError: where nothing of this name was logged.
        """
        if self._open:
            self._folder.rows.flush()
        return series(self._folder.rows.log.rows(), name)

    def last(self, name: str) -> float:
        """Return the last value of a name, which is read from its device now.

        Raises:
            ArgumentError: where nothing of this name was logged.
        """
        self._folder.rows.flush()
        if name not in self._folder.rows.values:
            known = ", ".join(self._folder.rows.values)
            what = "no number of this name was logged"
            raise ArgumentError("last", what, got=name, expected=known or "a number")
        return self._folder.rows.values[name]

    def best(self, name: str, better: Direction | None = None) -> Best:
        """Return the best value of a curve.

        Args:
            name: by split, ``"valid/accuracy"``.
            better: which values are; metrics and losses say so themselves.

        Raises:
            ArgumentError: where nothing of this name was logged, or nothing says what is better.
        """
        curve = self.history(name)
        at = best_of(curve, direction(name, better, self._folder.better, "best"))
        step, there = int(curve.steps[at]), self._folder.checkpoints
        kept = there is not None and step in there.steps
        path = there.path(step) if there is not None and kept else None
        return Best(float(curve.values[at]), step, int(curve.epochs[at]), path)

    # Where steps and epochs end

    def _settle(self, *, last: bool = False) -> None:
        """Count the step that is under way, if its body came to its end."""
        if not self._inside:
            return
        self._inside = False
        place = self._place
        place.step += 1
        place.number += 1
        place.over = self._feed.over(place.epoch, place.number)
        self._folder.rows.end()
        self._note()
        self._emit(Stepped(place.step, place.epoch))
        if measured := self._system.measured():
            row = {"step": place.step, "epoch": place.epoch, "time": round(self.seconds, 3)}
            self._folder.system.write({**row, "split": "system", **measured})
            self._emit(Measured(place.step, place.epoch, measured))
        self._line.step(self._facts)
        if not last and self._boundary():
            raise Ended(self)

    def _end_epoch(self) -> None:
        """Count an epoch, what came after its batches included."""
        place = self._place
        self._feed.leave(place.epoch)
        ended = place.epoch
        place.epoch, place.number, place.over = ended + 1, 0, False
        self._folder.rows.end()
        self._folder.rows.flush()
        self._note()
        self._emit(EpochEnded(place.step, ended))
        self._line.epoch(self._facts, ended)
        values = dict(self._folder.rows.values)
        self._logged.update(dict.fromkeys(values))
        check_waits(self._waits, self._logged, over=False)
        self._folder.rows.values.clear()  # what the next epoch does not log is not its value
        self._boundary(values)

    def _note(self) -> None:
        """Remember where everything is, for a checkpoint after an error."""
        self._at = self._feed.into_record()
        self._moved = self._counts()

    def _counts(self) -> list[Any]:
        return [getattr(part, "steps", None) for part in self._parts.values()]

    def _boundary(self, values: Mapping[str, float] | None = None) -> bool:
        """Ask rules and signals between two steps; whether the run ends here.

        Args:
            values: the values of the epoch, where one ended.
        """
        asked, signals, ended = self._asked, self._signals, values is not None
        seen = Seen(
            self.steps,
            self.epoch - ended,
            ended,
            self.seconds,
            self._folder.rows.values if values is None else values,
            self._folder.better,
        )
        saves = True
        for rule in self._stop:
            reason = rule.reason(seen)
            if reason is not None:
                self.reason, saves = reason, rule.saves and saves
        if wish := self._control.asked():
            asked.setdefault(wish, f"{wish} was asked for")
        self.reason = self.reason or asked.pop("stop", "") or signals.stop or ""
        if ended:
            self.reason = self.reason or asked.pop("end", "")
        why = asked.pop("save", "") or signals.save or self._saver.due(seen, self.epoch)
        signals.save = None
        wanted = saves and bool(self.reason or why) and self._saver.new(self._place)
        agreed = self._ranks.agreed(self._place, wanted, self.reason, signals.stop)
        wanted, self.reason, signals.stop = agreed
        if self._folder.checkpoints is not None:
            self._folder.checkpoints.settle()
            if wanted:
                self._save(self.reason or why, values or {})
        self._unsaved = not saves
        return bool(self.reason)

    def _save(self, reason: str, values: Mapping[str, float]) -> None:
        """Begin to write a checkpoint of the last step or epoch that ended."""
        self._saver.save(
            Moment(self._place, self._at, self.seconds),
            values,
            lambda step, path: self._emit(Saved(step, path, reason)),
        )

    # Ending

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> bool:
        own = isinstance(error, Ended) and error.run is self
        try:
            if error is None or own:
                self._finish()
                self._ranks.group.barrier()  # who ends now must not end others that still write
            else:
                self._fail(error)
        finally:
            self._place.seconds, self._open = self.seconds, False
            self._signals.restore()
            self._ranks.forget()
            self._feed.close()
            self._line.close()
            self._folder.close()
        if self._signals.stop == "SIGTERM":
            raise SystemExit(143)  # 128 + 15, as the shell says it
        return own

    def _finish(self) -> None:
        with suppress(Ended):
            self._settle()
        self.reason = self.reason or "done"
        self._ranks.compare()
        self._folder.rows.flush()
        new = not self._unsaved and self._saver.new(self._place)
        if self._ranks.agreed(self._place, new)[0]:
            self._save(self.reason, {})
        self._ranks.finish()
        if self._folder.checkpoints is not None:
            self._folder.checkpoints.wait()
        self._folder.tell("done" if self.reason == "done" else "stopped", self.reason, self.steps)
        if self._logged and self.reason == "done":
            check_waits(self._waits, self._logged, over=True)
        if self.reason != "done":
            self._line.say(f"stopped at step {self.steps}: {self.reason}")
        self._emit(Stopped(self.steps, self.reason))

    def _fail(self, error: BaseException) -> None:
        """Save what an error leaves whole: the last step that ended, unless a learner moved on."""
        self.reason = f"{type(error).__name__}: {error}"
        whole = self._counts() == self._moved and not self._ranks.sharded
        if isinstance(error, RunError) or (self._inside and not isinstance(error, Exception)):
            whole = False
        try:
            self._emit(Failed(self.steps, self.reason))
            if whole and not self._unsaved:
                self._save(self.reason, {})
            if self._folder.checkpoints is not None:
                self._folder.checkpoints.lost = "a rank failed meanwhile"  # which may have had one
                self._folder.checkpoints.wait()
            self._folder.rows.flush()
            self._folder.tell("failed", self.reason, self.steps)
        except Exception as second:
            error.add_note(f"and then: {second}")

    def _facts(self) -> Facts:
        """What the line says."""
        place, length = self._place, len(self._feed)
        left = None
        if length and self._line.total:
            left = max((self._line.total - place.epoch) * length - place.number, 0)
        waited = self._feed.waited - self._waited
        return Facts(place.step, place.epoch, left, waited, self._folder.rows.values)

    def _emit(self, event: Event) -> None:
        for callback in self._callbacks:
            try:
                callback(event, self)
            except Exception as error:
                name = getattr(callback, "__qualname__", repr(callback))
                error.add_note(f"in the callback {name}, at {event}")
                raise

    def _require(self) -> None:
        if not self._open:
            what = "the run is over" if self.reason else "the run has not begun"
            raise RunError("run", what, hint="with train.Run(...) as run: all of its loop inside")

    def __repr__(self) -> str:
        where = "memory" if self.folder is None else str(self.folder)
        return f"<Run in {where} at step {self.steps}, epoch {self.epoch}>"
