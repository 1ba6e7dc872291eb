"""Training steps as they are written beside compiled ones: images a second, and equal losses."""

from __future__ import annotations

import time
from statistics import median
from typing import NamedTuple

import phlox as px
from examples.mnist.batches import rows
from examples.mnist.data import Split
from examples.mnist.model import DigitsConfig
from examples.mnist.train import Settings, step
from phlox import Autodiff, Cpu, optim
from phlox.data import DataLoader
from phlox.train import Learner

_WARM = 2  # steps: a compiled one is recorded twice
_TURNS = 3


class Speed(NamedTuple):
    """Images a second."""

    written: float
    compiled: float


def compare(split: Split, settings: Settings, config: DigitsConfig, steps: int) -> Speed:
    """Train from one start as written and compiled, by turns, for some steps each.

    Raises:
        AssertionError: where the losses are not the same.
    """
    loader = DataLoader(rows(split), settings.batch, shuffle=True, device=Autodiff(Cpu()))
    batches = [loader.at(0, number) for number in range(steps + _WARM)]

    def losses_of(seconds: list[float], *, compiled: bool) -> list[float]:
        px.seed(settings.seed)
        learner = Learner(
            config.init(Autodiff(Cpu())),
            optim.AdamWConfig(weight_decay=settings.weight_decay).init(),
            settings.lr,
            compile=compiled,
        )
        losses = []
        for at, batch in enumerate(batches):
            start = time.perf_counter()
            losses.append(float(learner.step(step, batch)["loss"]))
            if at >= _WARM:
                seconds.append(time.perf_counter() - start)
        return losses

    written: list[float] = []
    compiled: list[float] = []
    for _ in range(_TURNS):
        own = losses_of(written, compiled=False)
        replayed = losses_of(compiled, compiled=True)
        assert own == replayed, "the compiled steps gave other losses"
    return Speed(settings.batch / median(written), settings.batch / median(compiled))
