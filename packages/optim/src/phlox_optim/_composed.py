"""Schedules made of schedules."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from math import prod
from statistics import fmean
from typing import Final, Literal

from ._schedulers import SchedulerConfig

_REDUCTIONS: Final[dict[str, Callable[[list[float]], float]]] = {
    "mean": fmean,
    "product": prod,
    "sum": sum,
}


class ComposedSchedulerConfig(SchedulerConfig):
    """Several schedules at once.

    Attributes:
        schedules: what runs.
        reduction: what becomes of their rates: ``"product"``, ``"sum"`` or ``"mean"``.
    """

    schedules: tuple[SchedulerConfig, ...]
    reduction: Literal["product", "sum", "mean"] = "product"

    def rate(self, step: int) -> float:
        """Return the learning rate of a step."""
        rates = [each.rate(step) for each in self.schedules]
        return _REDUCTIONS[self.reduction](rates)

    def validate(self) -> None:
        """Raise ConfigError for a setting that makes no sense."""
        self.require("schedules", len(self.schedules) > 0, "at least one")


class SequentialSchedulerConfig(SchedulerConfig):
    """One schedule after the other, each from its own first step.

    Attributes:
        schedules: what runs.
        milestones: the first step of each but the first one.
    """

    schedules: tuple[SchedulerConfig, ...]
    milestones: tuple[int, ...]

    def rate(self, step: int) -> float:
        """Return the learning rate of a step."""
        place = sum(step >= m for m in self.milestones)
        return self.schedules[place].rate(step - (0, *self.milestones)[place])

    def validate(self) -> None:
        """Raise ConfigError for a setting that makes no sense."""
        self.require("schedules", len(self.schedules) > 0, "at least one")
        fits = len(self.milestones) == len(self.schedules) - 1
        rising = all(a < b for a, b in pairwise((0, *self.milestones)))
        self.require("milestones", fits and rising, "a later step for each schedule but the first")


class WarmUpSchedulerConfig(SchedulerConfig):
    """Along a line up to the first rate of another schedule, which follows.

    Attributes:
        schedule: what follows, from its own first step.
        steps: of the line.
        start: share of that rate that the line begins with.
    """

    schedule: SchedulerConfig
    steps: int
    start: float = 0.0

    def rate(self, step: int) -> float:
        """Return the learning rate of a step."""
        if step >= self.steps:
            return self.schedule.rate(step - self.steps)
        return self.schedule.rate(0) * (self.start + (1.0 - self.start) * step / self.steps)

    def validate(self) -> None:
        """Raise ConfigError for a setting that makes no sense."""
        self.require("steps", self.steps >= 0, "at least 0")
        self.require("start", 0 <= self.start <= 1, "0 <= start <= 1")
