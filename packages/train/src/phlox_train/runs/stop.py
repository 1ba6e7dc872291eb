"""Rules that end a run."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import final

from phlox_record import Record
from phlox_tensor import ArgumentError, RecordError

from .better import Direction, direction, improves


@dataclass(frozen=True)
class Seen:
    """Where a run is, for its rules.

    Attributes:
        ended: whether an epoch ended; else it was a step.
        seconds: how long the run took, all its starts together.
        values: the last ones of the epoch, by split and name, ``"valid/loss"``.
        better: which values are better, as far as metrics say.
    """

    step: int
    epoch: int
    ended: bool
    seconds: float
    values: Mapping[str, float]
    better: Mapping[str, str]


class StopRule(ABC):
    """A rule that is called after each step and each epoch, and can have state.

    Attributes:
        saves: whether the state that it stops at is worth a checkpoint.
    """

    saves: bool = True

    @abstractmethod
    def reason(self, seen: Seen) -> str | None:
        """Return why the run ends here; None to go on."""

    def into_record(self) -> Record:
        """Return what it remembers."""
        return {key: value for key, value in vars(self).items() if key in ("best", "since")}

    def load_record(self, record: Record) -> StopRule:
        """Take over what another one remembered, and return the rule itself.

        Raises:
            RecordError: for a record of another rule.
        """
        own = self.into_record()
        if not isinstance(record, dict) or not isinstance(own, dict) or set(record) != set(own):
            got, expected = repr(record)[:60], repr(own)
            raise RecordError("load_record", "of another rule", got=got, expected=expected)
        vars(self).update(record)
        return self


@final
class NoImprovement(StopRule):
    """Ends a run when a value has not been better for some epochs; a NaN is not better.

    Example:
        >>> NoImprovement("valid/loss", epochs=3)
        NoImprovement('valid/loss', epochs=3)
    """

    def __init__(
        self,
        name: str,
        epochs: int = 1,
        *,
        better: Direction | None = None,
        least: float = 0.0,
        warm_up: int = 0,
    ) -> None:
        """Say what is watched.

        Args:
            name: the name of the value, by split: ``"valid/loss"``.
            epochs: that may be no better, one after the other.
            better: which values are; metrics and losses say so themselves.
            least: how much better one has to be.
            warm_up: epochs at the start that count not.

        Raises:
            ArgumentError: for fewer than one epoch.
        """
        if epochs < 1:
            raise ArgumentError("NoImprovement", "epochs", got=epochs, expected="1 or more")
        self.name, self._epochs = name, epochs
        self._better: Direction | None = better
        self._least, self._warm_up = least, warm_up
        self.best: float | None = None
        self.since = 0

    def reason(self, seen: Seen) -> str | None:
        """Return why the run ends here; None to go on."""
        if not seen.ended or self.name not in seen.values or seen.epoch < self._warm_up:
            return None
        value = seen.values[self.name]
        better = direction(self.name, self._better, seen.better, "NoImprovement")
        if improves(value, self.best, better, self._least):
            self.best, self.since = value, 0
            return None
        self.since += 1
        if self.since < self._epochs:
            return None
        return f"{self.name} was no better than {self.best} for {self.since} epochs"

    def __repr__(self) -> str:
        return f"NoImprovement({self.name!r}, epochs={self._epochs})"


@final
class MaxTime(StopRule):
    """Ends a run after some time, that of all its starts together."""

    def __init__(self, *, hours: float = 0.0, minutes: float = 0.0, seconds: float = 0.0) -> None:
        """Say how long it may take.

        Raises:
            ArgumentError: for no time at all.
        """
        self._seconds = 3600.0 * hours + 60.0 * minutes + seconds
        if not self._seconds > 0.0:
            raise ArgumentError("MaxTime", "time", got=self._seconds, expected="above 0")

    def reason(self, seen: Seen) -> str | None:
        """Return why the run ends here; None to go on."""
        return f"{self._seconds:g} s are over" if seen.seconds >= self._seconds else None


@final
class Reached(StopRule):
    """Ends a run when a value is at least as good as wanted where an epoch ends."""

    def __init__(self, name: str, value: float, *, better: Direction | None = None) -> None:
        """Say which value is enough."""
        self.name, self._value = name, value
        self._better: Direction | None = better

    def reason(self, seen: Seen) -> str | None:
        """Return why the run ends here; None to go on."""
        value = seen.values.get(self.name, math.nan)
        if not seen.ended or math.isnan(value):
            return None
        better = direction(self.name, self._better, seen.better, "Reached")
        if improves(self._value, value, better):
            return None
        return f"{self.name} is {value}"


@final
class NotFinite(StopRule):
    """Ends a run whose loss is NaN or infinite; the weights of that moment are not saved."""

    saves = False

    def __init__(self, name: str = "train/loss") -> None:
        """Say which value is watched."""
        self._name = name

    def reason(self, seen: Seen) -> str | None:
        """Return why the run ends here; None to go on."""
        value = seen.values.get(self._name, 0.0)
        if math.isfinite(value):
            return None
        return f"{self._name} is {value}; with px.detect_nan(): names the layer"
