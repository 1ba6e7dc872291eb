"""Rules that say when to save, and which checkpoints to keep."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import final

from phlox_tensor import ArgumentError

from .better import Direction, direction, improves


@dataclass(frozen=True)
class Every:
    """When to save: whatever of these comes first; also where an epoch ends, by default.

    Attributes:
        steps: so many steps after the last one.
        minutes: so many minutes after the last one.
        epochs: so many epochs after the last one.
    """

    steps: int | None = None
    minutes: float | None = None
    epochs: int | None = None

    def __post_init__(self) -> None:
        """Raise ArgumentError where nothing is said, or no such number."""
        said = [value for value in (self.steps, self.minutes, self.epochs) if value is not None]
        if not said or min(said) <= 0:
            raise ArgumentError(
                "Every", "when", got=self, expected="numbers above 0", hint="Every(minutes=10)"
            )

    def due(self, steps: int, seconds: float, epochs: int) -> bool:
        """Whether to save, so long after the last one."""
        return (
            (self.steps is not None and steps >= self.steps)
            or (self.minutes is not None and seconds >= 60.0 * self.minutes)
            or (self.epochs is not None and epochs >= self.epochs)
        )


@dataclass(frozen=True)
class Kept:
    """A checkpoint that there is.

    Attributes:
        values: those of the epoch that it ended; none of one inside of an epoch.
    """

    step: int
    epoch: int
    values: Mapping[str, float]


class KeepRule(ABC):
    """A rule that wants some of the checkpoints; one that no rule wants is removed."""

    @abstractmethod
    def wanted(self, there: Sequence[Kept], better: Mapping[str, str]) -> set[int]:
        """Return the steps of those to keep, of all that there are, the newest last."""


@final
class KeepLast(KeepRule):
    """Keeps the newest checkpoints; a run keeps one whatever its rules say."""

    def __init__(self, count: int = 1) -> None:
        """Say how many.

        Raises:
            ArgumentError: for fewer than one.
        """
        if count < 1:
            raise ArgumentError("KeepLast", "count", got=count, expected="1 or more")
        self._count = count

    def wanted(self, there: Sequence[Kept], better: Mapping[str, str]) -> set[int]:
        """Return the steps of those to keep."""
        del better
        return {kept.step for kept in there[-self._count :]}


@final
class KeepBest(KeepRule):
    """Keeps the checkpoints of the epochs whose value was best, of equal ones the first.

    Such an epoch is saved where it ends.
    """

    def __init__(self, name: str, count: int = 1, *, better: Direction | None = None) -> None:
        """Say by which value.

        Args:
            name: the name of the value, by split: ``"valid/accuracy"``.
            count: how many.
            better: which values are; metrics and losses say so themselves.

        Raises:
            ArgumentError: for fewer than one.
        """
        if count < 1:
            raise ArgumentError("KeepBest", "count", got=count, expected="1 or more")
        self.name, self._count = name, count
        self._better: Direction | None = better

    def wanted(self, there: Sequence[Kept], better: Mapping[str, str]) -> set[int]:
        """Return the steps of those to keep."""
        return {kept.step for kept in self.ranked(there, better)[: self._count]}

    def ranked(self, there: Sequence[Kept], better: Mapping[str, str]) -> list[Kept]:
        """Return those that have the value, the best first."""
        ranked: list[Kept] = []
        for kept in there:
            if self.name in kept.values:
                way = direction(self.name, self._better, better, "KeepBest")
                value = kept.values[self.name]
                worse = [improves(value, other.values[self.name], way) for other in ranked]
                ranked.insert(worse.index(True) if True in worse else len(ranked), kept)
        return ranked
