"""The source of batches, and the place in its epoch."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sized
from itertools import islice
from typing import Any, final

from phlox_record import Record
from phlox_tensor import WrongTypeError


@final
class Feed:
    """A loader that knows its place, such as ``data.DataLoader``, or anything to go through anew.

    What has no ``position`` and no record gives its batches in one order, so that a run that goes
    on leaves out those of its epoch that it has seen.
    """

    def __init__(self, batches: Any) -> None:
        """Look at the batches."""
        if not isinstance(batches, Iterable) or isinstance(batches, Iterator):
            raise WrongTypeError(
                "run",
                "the batches cannot be gone through once for each epoch",
                got=type(batches).__name__,
                expected="a data.DataLoader, or a list of batches",
                hint="train.Run(folder, learner, data.DataLoader(dataset, 64, shuffle=True))",
            )
        refuse_items(batches, "run")
        self._batches: Any = batches
        self._places = hasattr(batches, "position") and hasattr(batches, "load_record")

    @property
    def epoch(self) -> int:
        """The epoch that the next batch is of; 0 where nobody counts."""
        return int(self._batches.position[0]) if self._places else 0

    @property
    def waited(self) -> float:
        """How long loops waited for batches, in seconds; 0 where nobody counts."""
        return float(getattr(self._batches, "waited", 0.0))

    def __len__(self) -> int:
        """Return how many batches an epoch has; 0 where nobody knows."""
        return len(self._batches) if isinstance(self._batches, Sized) else 0

    def after(self, number: int) -> Iterator[Any]:
        """Yield the batches of the epoch after so many."""
        return iter(self._batches) if self._places else islice(self._batches, number, None)

    def over(self, epoch: int, number: int) -> bool:
        """Whether an epoch has no batch after so many; False where nobody knows."""
        return self.epoch > epoch if self._places else 0 < len(self) <= number

    def begin(self) -> None:
        """Go to the first batch of the first epoch, wherever another training left the loader."""
        if self._places:
            self._batches.position = (0, 0)

    def leave(self, epoch: int) -> None:
        """Go to the next epoch, where a loop left one early."""
        if self._places and self.epoch <= epoch:
            self._batches.position = (epoch + 1, 0)

    def into_record(self) -> Record:
        """Return the place of the loader; an empty one where it has none."""
        record: Record = self._batches.into_record() if self._places else {}
        return record

    def load_record(self, record: Any) -> None:
        """Go to a place."""
        if self._places and record:
            self._batches.load_record(record)

    def close(self) -> None:
        """End the workers."""
        if hasattr(self._batches, "close"):
            self._batches.close()


def refuse_items(batches: Any, op: str) -> None:
    """Refuse a dataset where its batches are wanted."""
    if hasattr(batches, "map") and not hasattr(batches, "position"):
        raise WrongTypeError(
            op,
            "a dataset gives items, not batches",
            got=type(batches).__name__,
            expected="a data.DataLoader, or a list of batches",
            hint="data.DataLoader(dataset, 64, shuffle=True)",
        )
