"""A run of several ranks: rank 0 has the folder, and says what it found and when to end."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final, final

from phlox_record import NamedMsgpackRecorder
from phlox_tensor.groups import Group, Solo, gathered, told

from .configs import differences
from .errors import RunError

_RECORDER: Final = NamedMsgpackRecorder()


@final
class Ranks:
    """The processes that a run is of, which are those of its learners."""

    def __init__(self, parts: Iterable[Any]) -> None:
        """Ask the learners."""
        self._learners = [p for p in parts if getattr(p, "together", None) is not None]
        self.group: Group = self._learners[0].together.group if self._learners else Solo()
        self.first: Final = self.group.rank == 0
        self._loader: Any = None

    def share(self, batches: Any) -> Any:
        """Return a loader of what this rank has of each batch, where batches come apart."""
        counts = {learner.microbatches for learner in self._learners}
        if len(counts) != 1 or not getattr(batches, "splits", False):
            return batches  # whole ones, of which each learner takes its parts
        mine = self._learners[0].together.mine
        first, last = (mine.start, mine.stop) if mine else (0, 1)
        self._loader = batches.part(first, last, counts.pop())
        return self._loader

    def note(self) -> None:
        """Tell learners how many examples the batch has of which this rank has its share."""
        for learner in self._learners:
            learner.rows = None if self._loader is None else self._loader.rows

    def forget(self) -> None:
        """Tell learners that batches are whole ones again."""
        for learner in self._learners:
            learner.rows = None

    def check(self, config: Any) -> None:
        """Refuse ranks that were given another config.

        Raises:
            RunError: on all of them.
        """
        first, *others = gathered(self.group, config)
        for rank, other in enumerate(others, 1):
            if changed := differences(first, other):
                what, expected = f"rank {rank} has another config", "the config of rank 0"
                raise RunError("run", what, got="; ".join(changed), expected=expected)

    def checkpoint(self, found: Any) -> Any:
        """Return the checkpoint that rank 0 found; None where it found none."""
        if self.group.size == 1:
            return found
        there = self.first and found is not None
        data = told(self.group, _RECORDER.to_bytes(found) if there else None)
        if self.first or data is None:
            return found
        return _RECORDER.from_bytes(data, dtype="stored")

    @property
    def sharded(self) -> bool:
        """Whether a record of what is trained takes all ranks."""
        return any(learner.sharded for learner in self._learners)

    def agreed(self, saves: bool, *wish: Any) -> tuple[Any, ...]:
        """Return what rank 0 says.

        Args:
            saves: whether it begins to write a checkpoint now; others give what that lacks.
            wish: all else.
        """
        agreed: tuple[Any, ...] = told(self.group, (saves, *wish))
        if agreed[0] and not self.first:
            for learner in self._learners:
                if learner.sharded:
                    learner.into_record()
        return agreed
