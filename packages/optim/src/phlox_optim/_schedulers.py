"""Learning rates over time: the config is the curve, the scheduler remembers the step."""

from __future__ import annotations

from math import cos, pi
from typing import final

from phlox_nn import Config
from phlox_record import Record
from phlox_tensor import ArgumentError, RecordError


class SchedulerConfig(Config):
    """Base of schedules: a learning rate for each step, counted from 0."""

    def rate(self, step: int) -> float:
        """Return the learning rate of a step."""
        raise TypeError(f"{type(self).__name__} does not define rate()")

    def init(self, device: object = None) -> Scheduler:
        """Return the scheduler at its first step.

        Raises:
            ArgumentError: when a setting makes no sense.
        """
        del device
        self.validate()
        return Scheduler(self)

    def validate(self) -> None:
        """Raise ArgumentError for a setting that makes no sense."""


def _require(name: str, holds: bool, got: object, expected: str) -> None:
    if not holds:
        raise ArgumentError("schedule", name, got=got, expected=expected)


@final
class Scheduler:
    """A place on a schedule; ``step()`` gives the learning rate and moves on."""

    def __init__(self, config: SchedulerConfig, position: int = 0) -> None:
        """Start at a step."""
        self._config = config
        self._position = position

    def step(self) -> float:
        """Return the learning rate of this step; the next call returns the next one's."""
        rate = self._config.rate(self._position)
        self._position += 1
        return rate

    @property
    def rate(self) -> float:
        """The learning rate that ``step`` would return."""
        return self._config.rate(self._position)

    def into_record(self) -> dict[str, Record]:
        """Return the place as a tree."""
        return {"position": self._position}

    def load_record(self, record: Record) -> Scheduler:
        """Return the scheduler at the place of a record.

        Raises:
            RecordError: when the record is not one of a scheduler.
        """
        position = record.get("position") if isinstance(record, dict) else None
        if not isinstance(position, int) or position < 0:
            raise RecordError(
                "load_record",
                "not a record of a schedule",
                got=repr(record)[:60],
                expected="what schedule.into_record() gave",
            )
        return Scheduler(self._config, position)


class ConstantSchedulerConfig(SchedulerConfig):
    """One learning rate throughout."""

    lr: float

    def rate(self, step: int) -> float:
        """Return the learning rate of a step."""
        del step
        return self.lr


class CosineSchedulerConfig(SchedulerConfig):
    """From ``initial_lr`` along half a cosine to ``min_lr`` in ``steps`` steps, then flat.

    Loshchilov and Hutter, 2016, without restarts.
    """

    initial_lr: float
    steps: int
    min_lr: float = 0.0

    def rate(self, step: int) -> float:
        """Return the learning rate of a step."""
        share = min(step / self.steps, 1.0)
        return self.min_lr + (self.initial_lr - self.min_lr) * (1 + cos(pi * share)) / 2

    def validate(self) -> None:
        """Raise ArgumentError for a setting that makes no sense."""
        _require("steps", self.steps > 0, self.steps, "at least 1")
        _require("min_lr", 0 <= self.min_lr <= self.initial_lr, self.min_lr, "0..initial_lr")


class LinearSchedulerConfig(SchedulerConfig):
    """From ``initial_lr`` along a line to ``final_lr`` in ``steps`` steps, then flat."""

    initial_lr: float
    final_lr: float
    steps: int

    def rate(self, step: int) -> float:
        """Return the learning rate of a step."""
        share = min(step / self.steps, 1.0)
        return self.initial_lr + (self.final_lr - self.initial_lr) * share

    def validate(self) -> None:
        """Raise ArgumentError for a setting that makes no sense."""
        _require("steps", self.steps > 0, self.steps, "at least 1")


class StepSchedulerConfig(SchedulerConfig):
    """``initial_lr``, multiplied by ``gamma`` after every ``step_size`` steps."""

    initial_lr: float
    step_size: int
    gamma: float = 0.1

    def rate(self, step: int) -> float:
        """Return the learning rate of a step."""
        return self.initial_lr * self.gamma ** (step // self.step_size)

    def validate(self) -> None:
        """Raise ArgumentError for a setting that makes no sense."""
        _require("step_size", self.step_size > 0, self.step_size, "at least 1")
