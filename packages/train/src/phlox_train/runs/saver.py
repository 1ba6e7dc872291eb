"""When a run saves a checkpoint, what goes into it, and what is read from it."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, final

from phlox_record import Record
from phlox_tensor.random import generator

from .errors import RunError
from .feed import Feed
from .folder import Folder
from .keep import Every, KeepBest, KeepRule, Kept
from .place import Place
from .ranks import Ranks
from .shards import SHARDS
from .stop import Seen, StopRule


class Moment(NamedTuple):
    """Where a run is between two steps.

    Attributes:
        batches: the record of the loader.
    """

    place: Place
    batches: Record
    seconds: float


@final
class Saver:
    """Saves and loads the parts of a run.

    Attributes:
        last: step, epoch and seconds of the last save, or of the start.
    """

    def __init__(
        self,
        folder: Folder,
        parts: Mapping[str, Any],
        stop: Sequence[StopRule],
        keep: Sequence[KeepRule],
        every: Every,
        ranks: Ranks,
    ) -> None:
        """Hold what is saved, where, and when."""
        self._folder, self._parts, self._every = folder, parts, every
        self._ranks = ranks
        self._best = [rule for rule in keep if isinstance(rule, KeepBest)]
        self._rules: dict[str, StopRule] = {}  # by what the next start calls them: kind and number
        for rule in stop:
            kind = type(rule).__qualname__
            count = sum(name.rpartition(" ")[0] == kind for name in self._rules)
            self._rules[f"{kind} {count}"] = rule
        self.last = (0, 0, 0.0)

    def due(self, seen: Seen, epoch: int) -> str:
        """Return why a checkpoint is due in an epoch, or nothing."""
        there = self._folder.checkpoints
        if there is None or (there.busy and not seen.ended):
            return ""
        step, before, seconds = self.last
        epochs = epoch - before if seen.ended else 0
        if self._every.due(seen.step - step, seen.seconds - seconds, epochs):
            return "due"
        if not seen.ended:
            return ""
        all_ = [*there.kept, Kept(seen.step, epoch, seen.values)]
        chosen = [rule.wanted(all_, seen.better) for rule in self._best]
        return "best" if any(seen.step in steps for steps in chosen) else ""

    def new(self, place: Place) -> bool:
        """Whether there are checkpoints, and none of this moment."""
        there = self._folder.checkpoints is not None
        return there and self.last[:2] != (place.step, place.epoch)

    def save(
        self, moment: Moment, values: Mapping[str, float], saved: Callable[[int, Path], None]
    ) -> None:
        """Begin to write a checkpoint, unless that moment was saved.

        Args:
            moment: where the run is.
            values: the values of the epoch that ended with it.
            saved: called when the file is there.
        """
        place = moment.place
        if not self.new(place):
            return
        files = self._ranks.files
        record = {
            "parts": {name: self._ranks.record_of(part) for name, part in self._parts.items()},
            SHARDS: [] if files is None else files.names(place.step),
            "data": moment.batches,
            "place": {**place.into_record(), "seconds": moment.seconds},
            "rules": {name: rule.into_record() for name, rule in self._rules.items()},
            "random": list(generator().state()),
        }
        step, epoch = place.step, place.epoch
        self.last = (step, epoch, moment.seconds)

        def done(path: Path) -> None:
            self._folder.point(path, step, self._best_kept())
            if launch := os.environ.get("PHLOX_LAUNCH"):  # which starts again where this goes on
                (Path(launch) / "saved").write_text(str(step))
            saved(step, path)

        self._folder.save(record, step, epoch, dict(values), done)

    def load(self, found: Any, feed: Feed) -> Place:
        """Take over a checkpoint, and return where the run was."""
        if set(found["parts"]) != set(self._parts):
            got, expected = ", ".join(self._parts), ", ".join(found["parts"])
            raise RunError("run", "other parts are in the checkpoint", got=got, expected=expected)
        for name, part in self._parts.items():
            part.load_record(found["parts"][name])
        feed.load_record(found["data"])
        for name, rule in self._rules.items():
            if name in found["rules"]:  # another one begins to count here
                rule.load_record(found["rules"][name])
        generator().set_state(*found["random"])
        return Place(**found["place"])

    def _best_kept(self) -> dict[str, Any]:
        """The best checkpoint by each rule."""
        there, best = self._folder.checkpoints, {}
        assert there is not None
        for rule in self._best:
            for kept in rule.ranked(there.kept, self._folder.better)[:1]:
                path = os.path.relpath(there.path(kept.step), self._folder.path)
                value = kept.values[rule.name]
                best[rule.name] = {"value": value, "step": kept.step, "path": path}
        return best
