"""A run of several ranks: rank 0 has the folder, and tells others what it read and when to end."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, cast, final

from phlox_record import NamedMsgpackRecorder
from phlox_tensor.groups import Group, Solo, all_gather_object, broadcast_object

from ..step.places import checked_barrier, require_same_batches
from .checkpoints import Checkpoints
from .configs import differences
from .errors import RunError
from .place import Place
from .shards import ShardFiles

_RECORDER: Final = NamedMsgpackRecorder()


@final
class Ranks:
    """The processes that a run is of, which are those of its learners."""

    def __init__(self, parts: Mapping[str, Any]) -> None:
        """Ask the learners."""
        self._parts, self._checkpoints = parts, cast("Checkpoints | None", None)
        self._learners = [p for p in parts.values() if getattr(p, "parallel", None) is not None]
        self.group: Group = self._learners[0].parallel.group if self._learners else Solo()
        self.first: Final = self.group.rank == 0
        self._given: Any = ()
        self._loader: Any = None
        self.files: ShardFiles | None = None

    def share(self, batches: Any) -> Any:
        """Return a loader of what this rank has of each batch, where batches come apart."""
        self._given = batches
        counts = {learner.microbatches for learner in self._learners}
        if len(counts) != 1 or not getattr(batches, "splits", False):
            return batches  # whole ones, of which each learner takes its parts
        mine = self._learners[0].parallel.mine
        first, last = (mine.start, mine.stop) if mine else (0, 1)
        self._loader = batches.part(first, last, counts.pop())
        return self._loader

    def note(self, place: Place) -> None:
        """Tell learners which batch comes, and how many examples it has in all."""
        for learner in self._learners:
            learner.parallel.batch = f", batch {place.number} of epoch {place.epoch}"
            learner.rows = None if self._loader is None else self._loader.rows

    def forget(self) -> None:
        """Tell learners that batches are whole ones again."""
        for learner in self._learners:
            learner.rows, learner.parallel.batch = None, ""

    def check(self, config: Any) -> None:
        """Refuse ranks that were given other batches, or another config."""
        require_same_batches(self.group, self._given, "run")
        first, *others = all_gather_object(self.group, config)
        for rank, other in enumerate(others, 1):
            if changed := differences(first, other):
                what, expected = f"rank {rank} has another config", "the config of rank 0"
                raise RunError("run", what, got="; ".join(changed), expected=expected)

    def checkpoint(self, found: Any) -> Any:
        """Return the checkpoint that rank 0 found; None where it found none."""
        if self.group.size == 1:
            return found
        there = self.first and found is not None
        data = broadcast_object(self.group, _RECORDER.to_bytes(found) if there else None)
        if self.first or data is None:
            return found
        return _RECORDER.from_bytes(data, dtype="stored")

    @property
    def sharded(self) -> bool:
        """Whether a record of what is trained takes all ranks."""
        return any(learner.sharded for learner in self._learners)

    def find_files(self, checkpoints: Checkpoints | None) -> None:
        """See whether all ranks see the folder of checkpoints, where they have shards of one."""
        self._checkpoints = checkpoints
        if self.sharded:
            files = ShardFiles(self.group, None if checkpoints is None else checkpoints.folder)
            self.files = None if files.folder is None else files

    def agreed(
        self, place: Place, saves: bool, reason: str = "", stop: str | None = None
    ) -> tuple[bool, str, str | None]:
        """Return what rank 0 says.

        Args:
            place: how far the run is.
            saves: whether it begins to write a checkpoint now; others give what that lacks.
            reason: why the run ends here; empty where it goes on.
            stop: the signal that asked for that.

        Raises:
            RunError: on all ranks, where one could not write its shard of the checkpoint before.
        """
        step, asks = place.step, bool(saves or reason or stop)
        at = f"epoch {place.epoch} of the run after batch {place.number}, step {step}"
        if not checked_barrier(self.group, at, int(asks))[0]:  # as after most steps
            return False, "", None
        agreed: tuple[bool, str, str | None]
        agreed = broadcast_object(self.group, (saves, reason, stop))
        if agreed[0] and self.files is not None:
            own = {k: p.own_shard() for k, p in self._parts.items() if getattr(p, "sharded", False)}
            self._require(self.files.begin(step, {"parts": own}))
        elif agreed[0] and not self.first:
            for learner in self._learners:
                if learner.sharded:
                    learner.into_record()
        return agreed

    def compare(self) -> None:
        """Compare the parameters of all ranks, at the end of the run."""
        checked_barrier(self.group, "the end of the run")
        for learner in self._learners if self.group.size > 1 else ():
            learner.parallel.check(learner.model)

    def finish(self) -> None:
        """Wait for the own shard.

        Raises:
            RunError: on all ranks, where one could not write its own.
        """
        if self.files is not None:
            self._require(self.files.lost())

    def _require(self, lost: str) -> None:
        if not lost:
            return
        if self._checkpoints is not None:
            self._checkpoints.lost = lost
            self._checkpoints.wait()  # which says what is lost
        hint = "run it again when there is: it goes on from the newest"
        what, expected = "a checkpoint cannot be written", "room on the disk"
        raise RunError("save", what, got=lost, expected=expected, hint=hint)

    def record_of(self, part: Any) -> Any:
        """Return the record of what is trained, without what other ranks write to files."""
        apart = self.files is not None and getattr(part, "sharded", False)
        return part.own_record() if apart else part.into_record()
