"""Learning rates over time: the config is the curve, the scheduler remembers the step."""

from __future__ import annotations

from abc import abstractmethod
from math import cos, pi
from typing import final

from phlox_nn import Config
from phlox_record import Record
from phlox_tensor import RecordError
from phlox_tensor.capture import Cell, call


class SchedulerConfig(Config):
    """Base of schedules: a learning rate for each step, counted from 0."""

    @abstractmethod
    def rate(self, step: int) -> float:
        """Return the learning rate of a step."""

    def init(self) -> Scheduler:
        """Return the scheduler at its first step."""
        return Scheduler(self)


@final
class Scheduler:
    """A place on a schedule; ``step()`` gives the learning rate and moves on.

    ``step`` and ``load_record`` change the scheduler itself.
    """

    def __init__(self, config: SchedulerConfig, position: int = 0) -> None:
        """Start at a step."""
        self._config = config
        self._position = Cell(position)

    def step(self) -> float:
        """Return the learning rate of this step; the next call returns the next one's."""
        position = self._position.get()
        self._position.set(position + 1)
        return call(self._config.rate, position)

    @property
    def rate(self) -> float:
        """The learning rate that ``step`` would return."""
        return call(self._config.rate, self._position.get())

    def into_record(self) -> dict[str, Record]:
        """Return the place as a tree."""
        return {"position": self._position.get()}

    def load_record(self, record: Record) -> Scheduler:
        """Go to the place of a record, and return the scheduler itself.

        Raises:
            RecordError: when the record is not one of a scheduler.
        """
        position = record.get("position") if isinstance(record, dict) else None
        if type(position) is not int or position < 0:
            raise RecordError(
                "load_record",
                "not a record of a schedule",
                got=repr(record)[:60],
                expected="what schedule.into_record() gave",
            )
        self._position.set(position)
        return self

    def __repr__(self) -> str:
        return f"Scheduler({self._config!r}, position={self._position.get()})"


class ConstantSchedulerConfig(SchedulerConfig):
    """One learning rate throughout."""

    lr: float

    def rate(self, step: int) -> float:
        """Return the learning rate, whatever the step."""
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
        """Raise ConfigError for a setting that makes no sense."""
        self.require("steps", self.steps > 0, "at least 1")
        self.require("min_lr", 0 <= self.min_lr <= self.initial_lr, "0..initial_lr")


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
        """Raise ConfigError for a setting that makes no sense."""
        self.require("steps", self.steps > 0, "at least 1")


class StepSchedulerConfig(SchedulerConfig):
    """``initial_lr``, multiplied by ``gamma`` after every ``step_size`` steps."""

    initial_lr: float
    step_size: int
    gamma: float = 0.1

    def rate(self, step: int) -> float:
        """Return the learning rate of a step."""
        return self.initial_lr * self.gamma ** (step // self.step_size)

    def validate(self) -> None:
        """Raise ConfigError for a setting that makes no sense."""
        self.require("step_size", self.step_size > 0, "at least 1")
