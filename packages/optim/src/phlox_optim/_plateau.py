"""A learning rate that falls when a measure gets no better."""

from __future__ import annotations

from math import inf
from typing import Any, Literal, NamedTuple, final

from phlox_record import Record
from phlox_tensor import Float, Tensor
from phlox_tensor.capture import Cell, register_state

from ._checked import CheckedConfig
from ._reading import refuse_recorded
from ._settled import Settled, no_record, settings_of


class PlateauSchedulerConfig(CheckedConfig):
    """Settings of ``PlateauScheduler``.

    Attributes:
        initial_lr: the first rate.
        best: whether the measure is better ``"low"`` or ``"high"``.
        factor: what the rate is multiplied by.
        patience: measures in a row that may be no better.
        threshold: how much better one has to be.
        relative: whether the threshold is a share of the best measure.
        cooldown: measures after a fall that do not count.
        min_lr: the lowest rate.
        epsilon: a smaller fall is left out.
    """

    _not_inside_hint = (
        "its rate follows a measure: plateau.step(loss) where an epoch ends, and "
        "optimizer.step(schedule.step() * plateau.rate, model, grads), initial_lr=1.0 for it"
    )
    initial_lr: float
    best: Literal["low", "high"] = "low"
    factor: float = 0.1
    patience: int = 10
    threshold: float = 1e-4
    relative: bool = True
    cooldown: int = 0
    min_lr: float = 0.0
    epsilon: float = 1e-8

    def validate(self) -> None:
        """Raise ConfigError for a setting that makes no sense."""
        self.require("factor", 0 < self.factor < 1, "0 < factor < 1")
        for name in ("patience", "threshold", "cooldown", "min_lr", "epsilon"):
            self.require(name, getattr(self, name) >= 0, ">= 0")

    def init(self) -> PlateauScheduler:
        """Return the scheduler before the first measure."""
        return PlateauScheduler(self)


class _PlateauState(NamedTuple):
    rate: float
    best: float
    worse: int
    cooling: int


def _is_state(known: dict[str, Any]) -> bool:
    """Whether a record holds numbers that a scheduler can have come to."""
    if set(known) != set(_PlateauState._fields):
        return False
    rate, best, worse, cooling = (known[name] for name in _PlateauState._fields)
    counts = all(type(n) is int and n >= 0 for n in (worse, cooling))
    return counts and type(best) is float and type(rate) is float and 0 <= rate < inf


@final
class PlateauScheduler(Settled):
    """A rate that follows a measure, such as the loss on data that is not trained on.

    ``step`` and ``load_record`` change the scheduler itself.

    Example:
        >>> import phlox_optim as optim
        >>> schedule = optim.PlateauSchedulerConfig(1.0, patience=0, factor=0.5).init()
        >>> [schedule.step(loss) for loss in (3.0, 2.0, 2.0)]
        [1.0, 1.0, 0.5]
    """

    _hint = "a config with other settings, or scheduler.load_record(record)"

    def __init__(self, config: PlateauSchedulerConfig) -> None:
        """Start at the first rate."""
        self._config = config
        best = inf if config.best == "low" else -inf
        self._state = Cell(_PlateauState(float(config.initial_lr), best, 0, 0))

    @property
    def rate(self) -> float:
        """The learning rate that now holds."""
        return self._state.get().rate

    def step(self, measure: float | Tensor[Float]) -> float:
        """Take a measure, and return the learning rate after it; a NaN is no better than others.

        Raises:
            CompileError: for a tensor inside of a compiled function.
        """
        if isinstance(measure, Tensor):
            refuse_recorded(
                "PlateauScheduler.step", "return the loss; then plateau.step(loss) outside"
            )
        measure = float(measure)  # a tensor would keep the graph behind it
        c, (rate, best, worse, cooling) = self._config, self._state.get()
        if self._is_better(measure, best):
            best, worse = measure, 0
        else:
            worse += 1
        if cooling:
            cooling, worse = cooling - 1, 0
        if worse > c.patience:
            lower = max(rate * c.factor, c.min_lr)
            rate = lower if rate - lower > c.epsilon else rate
            cooling, worse = c.cooldown, 0
        self._state.set(_PlateauState(rate, best, worse, cooling))
        return rate

    def _is_better(self, measure: float, best: float) -> bool:
        c = self._config
        sign = 1 if c.best == "high" else -1
        if not c.relative:
            return sign * measure > sign * best + c.threshold
        return sign * measure > sign * best * (1 + sign * c.threshold)

    def into_record(self) -> dict[str, Record]:
        """Return the place as a tree."""
        return {
            **self._state.get()._asdict(),
            "schedule": self._config.kind,
            "of": self._config.best,
        }

    def load_record(self, record: Record) -> PlateauScheduler:
        """Go to the place of a record, and return the scheduler itself.

        Raises:
            RecordError: when the record is not one of such a scheduler, or of one by a measure that
                is better the other way.
        """
        known: dict[str, Any] = dict(record) if isinstance(record, dict) else {}
        kind, of = known.pop("schedule", None), known.pop("of", None)  # older ones have neither
        if {kind, of} != {None} and (kind, of) != (self._config.kind, self._config.best):
            raise no_record(
                "the record is of another schedule",
                f"{kind} of the {of}",
                f"{self._config.kind} of the {self._config.best}",
            )
        if not _is_state(known):
            raise no_record(
                "not a record of a schedule by a measure",
                repr(record)[:60],
                "what schedule.into_record() gave",
            )
        self._state.set(_PlateauState(**known))
        return self

    def __repr__(self) -> str:
        return f"PlateauScheduler({self._config!r}, rate={self.rate})"


register_state(
    PlateauScheduler,
    lambda schedule: (schedule._state,),
    lambda schedule: settings_of(schedule._config),
)
