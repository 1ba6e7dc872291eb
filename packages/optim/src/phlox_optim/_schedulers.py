"""Learning rates over time: the config is the curve, the scheduler remembers the step."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from functools import wraps
from math import cos, inf, log, pi
from typing import Any, Final, Literal, final

from phlox_record import Record
from phlox_tensor import ArgumentError, WrongTypeError
from phlox_tensor.arguments import explained
from phlox_tensor.capture import Cell, call, register_state

from ._checked import CheckedConfig
from ._settled import Settled, no_record, settings_of

# Rates are computed in floats, in which larger counts are no longer exact.
_MOST_STEPS: Final = 2**53


class SchedulerConfig(CheckedConfig):
    """Base of schedules: a learning rate for each step, counted from 0.

    A schedule of one's own is a subclass with one ``rate``; ``init()`` makes its scheduler.

    Example:
        >>> import phlox_optim as optim
        >>> class Halves(optim.SchedulerConfig):
        ...     first: float
        ...
        ...     def rate(self, step: int) -> float:
        ...         return self.first * 0.5**step
        >>> schedule = Halves(0.1).init()
        >>> schedule.step(), schedule.step()
        (0.1, 0.05)
    """

    def __init_subclass__(cls, **options: Any) -> None:
        """Let the rate of a step below 0 be refused."""
        super().__init_subclass__(**options)
        if "rate" in vars(cls):
            cls.rate = _from_zero(cls.rate)  # type: ignore[assignment, method-assign]

    @abstractmethod
    def rate(self, step: int) -> float:
        """Return the learning rate of a step."""

    @explained
    def init(self) -> Scheduler:
        """Return the scheduler at its first step."""
        return Scheduler(self)


def _from_zero(rate: Callable[[Any, int], float]) -> Callable[[Any, int], float]:
    @wraps(rate)
    def checked(config: SchedulerConfig, step: int) -> float:
        if type(step) is int and step < 0:
            raise ArgumentError("rate", "the step", got=step, expected="a count from 0")
        return rate(config, step)

    return checked


@final
class Scheduler(Settled):
    """A place on a schedule; ``step()`` gives the learning rate and moves on.

    ``step`` and ``load_record`` change the scheduler itself.

    Example:
        >>> import phlox_optim as optim
        >>> schedule = optim.LinearSchedulerConfig(1.0, 0.0, steps=4).init()
        >>> [schedule.step() for _ in range(3)]
        [1.0, 0.75, 0.5]
    """

    _hint = "a config with other settings, or scheduler.load_record(record)"

    def __init__(self, config: SchedulerConfig, position: int = 0) -> None:
        """Start at a step.

        Raises:
            WrongTypeError: for what describes no schedule.
            ArgumentError: for a position that is no number of steps.
        """
        if not isinstance(config, SchedulerConfig):
            raise WrongTypeError(
                "scheduler",
                "what is given describes no schedule",
                got=type(config).__name__,
                expected="a config, whose init() makes the scheduler",
                hint="optim.CosineSchedulerConfig(initial_lr=0.1, steps=1000).init()",
            )
        if type(position) is not int or not 0 <= position <= _MOST_STEPS:
            raise ArgumentError("scheduler", "position", got=position, expected="steps that passed")
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
        return {"position": self._position.get(), "schedule": self._config.kind}

    def load_record(self, record: Record) -> Scheduler:
        """Go to the place of a record, and return the scheduler itself.

        Raises:
            RecordError: when the record is not one of a scheduler, or of another schedule.
        """
        schedule = record.get("schedule") if isinstance(record, dict) else None
        if schedule not in (None, self._config.kind):  # None: of an older version
            raise no_record("the record is of another schedule", schedule, self._config.kind)
        position = record.get("position") if isinstance(record, dict) else None
        if type(position) is not int or not 0 <= position <= _MOST_STEPS:
            raise no_record(
                "not a record of a schedule", repr(record)[:60], "what schedule.into_record() gave"
            )
        self._position.set(position)
        return self

    def __repr__(self) -> str:
        return f"Scheduler({self._config!r}, position={self._position.get()})"


register_state(
    Scheduler,
    lambda schedule: (schedule._position,),
    lambda schedule: settings_of(schedule._config),
)


class ConstantSchedulerConfig(SchedulerConfig):
    """One learning rate throughout."""

    lr: float

    def rate(self, step: int) -> float:
        """Return the learning rate, whatever the step."""
        return self.lr


class CosineRestartsSchedulerConfig(SchedulerConfig):
    """Half a cosine from ``initial_lr`` to ``min_lr`` in each period. Loshchilov and Hutter, 2016.

    Attributes:
        initial_lr: the first rate of each period.
        period: steps of the first one.
        growth: how many times as long each next one is.
        min_lr: what a period falls to.
    """

    initial_lr: float
    period: int
    growth: int = 1
    min_lr: float = 0.0

    def rate(self, step: int) -> float:
        """Return the learning rate of a step."""
        period, growth = self.period, self.growth
        if growth == 1:
            return _cosine(self.initial_lr, self.min_lr, step % period / period)
        # The periods before the n-th take period · (growth^n - 1) / (growth - 1) steps.
        count = int(log(step / period * (growth - 1) + 1, growth) + 1e-9)
        start = period * (growth**count - 1) // (growth - 1)
        return _cosine(self.initial_lr, self.min_lr, (step - start) / (period * growth**count))

    def validate(self) -> None:
        """Raise ConfigError for a setting that makes no sense."""
        self.require("period", self.period > 0, "at least 1")
        self.require("growth", self.growth > 0, "at least 1")
        self.require("min_lr", 0 <= self.min_lr <= self.initial_lr, "0..initial_lr")


class CosineSchedulerConfig(SchedulerConfig):
    """From ``initial_lr`` along half a cosine to ``min_lr`` in ``steps`` steps, then flat.

    Loshchilov and Hutter, 2016, without restarts.
    """

    initial_lr: float
    steps: int
    min_lr: float = 0.0

    def rate(self, step: int) -> float:
        """Return the learning rate of a step."""
        return _cosine(self.initial_lr, self.min_lr, min(step / self.steps, 1.0))

    def validate(self) -> None:
        """Raise ConfigError for a setting that makes no sense."""
        self.require("steps", self.steps > 0, "at least 1")
        self.require("min_lr", 0 <= self.min_lr <= self.initial_lr, "0..initial_lr")


class ExponentialSchedulerConfig(SchedulerConfig):
    """``initial_lr``, multiplied by ``gamma`` after every step."""

    initial_lr: float
    gamma: float

    def rate(self, step: int) -> float:
        """Return the learning rate of a step."""
        return _power(self.initial_lr, self.gamma, step)

    def validate(self) -> None:
        """Raise ConfigError for a setting that makes no sense."""
        self.require("gamma", self.gamma > 0, "> 0")


class InverseSquareRootSchedulerConfig(SchedulerConfig):
    """Along a line up to ``peak_lr`` in ``warmup_steps`` steps, then with 1 / √step.

    Raffel et al., 2020, with the line of Vaswani et al., 2017.
    """

    peak_lr: float
    warmup_steps: int = 4000

    def rate(self, step: int) -> float:
        """Return the learning rate of a step."""
        count, warm = step + 1, self.warmup_steps
        return self.peak_lr * min(count / warm, (warm / count) ** 0.5)

    def validate(self) -> None:
        """Raise ConfigError for a setting that makes no sense."""
        self.require("warmup_steps", self.warmup_steps > 0, "at least 1")


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


class MultiStepSchedulerConfig(SchedulerConfig):
    """``initial_lr``, multiplied by ``gamma`` at each of the ``milestones``."""

    initial_lr: float
    milestones: tuple[int, ...]
    gamma: float = 0.1

    def rate(self, step: int) -> float:
        """Return the learning rate of a step."""
        return _power(self.initial_lr, self.gamma, sum(step >= m for m in self.milestones))

    def validate(self) -> None:
        """Raise ConfigError for a setting that makes no sense."""
        rising = [0, *self.milestones] == sorted((0, *self.milestones))
        self.require("milestones", rising, "steps in their order")
        self.require("gamma", self.gamma > 0, "> 0")


class NoamSchedulerConfig(SchedulerConfig):
    """``factor / √model_size``, times ``min(1 / √n, n / warmup_steps^1.5)`` in the n-th step.

    Vaswani et al., 2017.
    """

    factor: float = 1.0
    warmup_steps: int = 4000
    model_size: int = 512

    def rate(self, step: int) -> float:
        """Return the learning rate of a step."""
        count = step + 1
        rise = count * self.warmup_steps**-1.5
        return self.factor * self.model_size**-0.5 * min(count**-0.5, rise)

    def validate(self) -> None:
        """Raise ConfigError for a setting that makes no sense."""
        self.require("warmup_steps", self.warmup_steps > 0, "at least 1")
        self.require("model_size", self.model_size > 0, "at least 1")
        self.require("factor", 0 <= self.factor < inf, "finite, at least 0")


class OneCycleSchedulerConfig(SchedulerConfig):
    """Up to ``max_lr`` and down to almost nothing. Smith and Topin, 2019.

    Attributes:
        max_lr: the highest rate.
        steps: of the whole cycle; later ones stay at the last rate.
        rising: share of the steps that go up.
        start_divisor: the first rate is ``max_lr / start_divisor``.
        end_divisor: the last one is the first divided by it.
        curve: of each part, ``"cosine"`` or ``"linear"``.
        three_phases: whether it first goes down to the first rate, in as many steps as up.
    """

    max_lr: float
    steps: int
    rising: float = 0.3
    start_divisor: float = 25.0
    end_divisor: float = 1e4
    curve: Literal["cosine", "linear"] = "cosine"
    three_phases: bool = False

    def rate(self, step: int) -> float:
        """Return the learning rate of a step."""
        first = self.max_lr / self.start_divisor
        last, top = first / self.end_divisor, self.rising * self.steps - 1
        parts = [(top, first, self.max_lr)]
        if self.three_phases:
            parts.append((2 * top, self.max_lr, first))
        parts.append((self.steps - 1, parts[-1][2], last))
        begin = 0.0
        for end, low, high in parts:
            if step <= end:
                share = (step - begin) / (end - begin) if end > begin else 1.0
                return _CURVES[self.curve](low, high, share)
            begin = end
        return last

    def validate(self) -> None:
        """Raise ConfigError for a setting that makes no sense."""
        self.require("steps", self.steps > 1, "at least 2")
        most = 0.5 if self.three_phases else 1.0
        self.require("rising", 0 < self.rising <= most, f"0 < rising <= {most}")
        self.require("start_divisor", self.start_divisor > 0, "> 0")
        self.require("end_divisor", self.end_divisor > 0, "> 0")


class PolynomialSchedulerConfig(SchedulerConfig):
    """From ``initial_lr`` to ``final_lr`` with the ``power`` of what is left of ``steps``."""

    initial_lr: float
    steps: int
    power: float = 1.0
    final_lr: float = 0.0

    def rate(self, step: int) -> float:
        """Return the learning rate of a step."""
        left = (1.0 - min(step / self.steps, 1.0)) ** self.power
        return self.final_lr + (self.initial_lr - self.final_lr) * left

    def validate(self) -> None:
        """Raise ConfigError for a setting that makes no sense."""
        self.require("steps", self.steps > 0, "at least 1")
        self.require("power", self.power > 0, "> 0")


class StepSchedulerConfig(SchedulerConfig):
    """``initial_lr``, multiplied by ``gamma`` after every ``step_size`` steps."""

    initial_lr: float
    step_size: int
    gamma: float = 0.1

    def rate(self, step: int) -> float:
        """Return the learning rate of a step."""
        return _power(self.initial_lr, self.gamma, step // self.step_size)

    def validate(self) -> None:
        """Raise ConfigError for a setting that makes no sense."""
        self.require("step_size", self.step_size > 0, "at least 1")
        self.require("gamma", self.gamma > 0, "> 0")


def _power(rate: float, gamma: float, count: int) -> float:
    """A rate that was multiplied ``count`` times; infinite, which no step takes, beyond floats."""
    try:
        return rate * gamma**count
    except OverflowError:
        return inf if rate else 0.0


def _cosine(start: float, end: float, share: float) -> float:
    """The part of half a cosine between two rates."""
    return end + (start - end) * (1 + cos(pi * share)) / 2


def _line(start: float, end: float, share: float) -> float:
    """The part of the line between two rates."""
    return start + (end - start) * share


_CURVES: Final = {"cosine": _cosine, "linear": _line}
