"""A learning rate by trial: a few steps at rates that grow."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Final, TypeVar

import numpy as np
from numpy.typing import NDArray

from phlox_nn import Module
from phlox_optim import SchedulerConfig
from phlox_tensor import ArgumentError

from .step.learner import Learner
from .step.outputs import Forward

M = TypeVar("M", bound=Module)
_SMOOTH: Final = 0.9  # the share of a running mean that a step leaves of it
_WORSE: Final = 4.0  # a loss so many times the best one ends the trial, as in fastai


class _Rising(SchedulerConfig):
    """From one rate to another, by the same factor at each step."""

    lowest: float
    highest: float
    steps: int

    def rate(self, step: int) -> float:
        """Return the rate of a step."""
        share = step / max(self.steps - 1, 1)
        return float(self.lowest * (self.highest / self.lowest) ** share)


@dataclass(frozen=True)
class RateTrial:
    """What losses did while the rate grew.

    Attributes:
        rates: the rate of each step.
        losses: a running mean of those of steps.
        suggestion: the rate at which the loss fell fastest.
    """

    rates: NDArray[np.float64]
    losses: NDArray[np.float64]
    suggestion: float


def find_lr(
    learner: Learner[M],
    step: Forward,
    batches: Iterable[Any],
    *,
    lowest: float = 1e-7,
    highest: float = 10.0,
    steps: int = 100,
) -> RateTrial:
    """Try rates from the lowest to the highest, and say at which one the loss falls fastest.

    Afterwards the learner and a loader are as before. Smith, 2015.

    Args:
        learner: what is to be trained; its schedule does not count.
        step: the function of a step.
        batches: as many as there are, again and again.
        lowest: the first rate.
        highest: the last rate; a loss that explodes ends the trial before.
        steps: how many there are at most.

    Raises:
        ArgumentError: for rates that do not grow, and fewer than ten steps.

    Example:
        >>> model = nn.Linear(1, 1, device="cpu").train(px.Autodiff("cpu"))
        >>> learner = Learner(model, optim.SgdConfig().init(), 1.0)
        >>> def step(model, x):
        ...     return (model(x) - 3.0).square().mean()
        >>> found = find_lr(learner, step, [px.ones((4, 1))])
        >>> 1e-3 < found.suggestion < 1.0, learner.steps
        (True, 0)
    """
    if not 0.0 < lowest < highest:
        got, expected = f"{lowest} to {highest}", "0 < lowest < highest"
        raise ArgumentError("find_lr", "rates do not grow", got=got, expected=expected)
    if steps < 10:
        raise ArgumentError("find_lr", "steps", got=steps, expected="10 or more")
    before, schedule = learner.into_record(), learner.schedule
    place = getattr(batches, "position", None)
    learner.schedule = _Rising(lowest, highest, steps).init()
    try:
        rates, losses = _trial(learner, step, batches, steps)
    finally:
        learner.schedule = schedule
        learner.load_record(before)
        if place is not None:
            batches.position = place  # type: ignore[attr-defined]  # it has one
    first = len(rates) // 10  # where the running mean is one of a few losses, as in Lightning
    steepest = first + int(np.argmin(np.gradient(losses, np.log(rates))[first:]))
    return RateTrial(rates, losses, float(rates[steepest]))


def _trial(learner: Learner[M], step: Forward, batches: Iterable[Any], steps: int) -> Any:
    rates: list[float] = []
    losses: list[float] = []
    mean = 0.0
    for number, batch in zip(range(1, steps + 1), _again(batches), strict=False):
        rate = learner.rate
        mean = _SMOOTH * mean + (1.0 - _SMOOTH) * float(learner.step(step, batch)["loss"])
        smooth = mean / (1.0 - _SMOOTH**number)  # the mean starts at 0
        if not np.isfinite(smooth) or (losses and smooth > _WORSE * min(losses)):
            break
        rates.append(rate)
        losses.append(smooth)
    if len(rates) < 2:
        raise ArgumentError(
            "find_lr",
            "the loss is not finite, or explodes at once",
            got=f"{len(rates)} steps",
            hint="find_lr(learner, step, batches, lowest=1e-10)",
        )
    return np.array(rates), np.array(losses)


def _again(batches: Iterable[Any]) -> Iterator[Any]:
    while True:
        count = 0
        for batch in batches:
            count += 1
            yield batch
        if not count:
            raise ArgumentError("find_lr", "no batches were given")
