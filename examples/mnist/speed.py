"""Training steps as they are written beside compiled ones: images a second, and equal losses."""

from __future__ import annotations

import time
from itertools import islice
from statistics import median
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

import phlox as px
from examples.mnist.batches import shuffled
from examples.mnist.data import Mnist
from examples.mnist.model import DigitsConfig
from examples.mnist.train import Settings, Step, step_of
from phlox import Autodiff, Cpu

_WARM = 2  # steps: a compiled one is recorded twice
_TURNS = 3


class Speed(NamedTuple):
    """Images a second."""

    written: float
    compiled: float


def compare(
    images: NDArray[np.float32], data: Mnist, settings: Settings, config: DigitsConfig, steps: int
) -> Speed:
    """Train from one start as written and compiled, by turns, for some steps each.

    Raises:
        AssertionError: where the losses are not the same.
    """

    def losses_of(step: Step, seconds: list[float]) -> list[float]:
        px.seed(settings.seed)
        device = Autodiff(Cpu())
        model, losses = config.init(device), []
        batches = shuffled(images, data.train.labels, settings.batch, settings.seed, device)
        for at, (x, target) in enumerate(islice(batches, steps + _WARM)):
            start = time.perf_counter()
            model, loss, _ = step(model, x, target)
            losses.append(float(loss))
            if at >= _WARM:
                seconds.append(time.perf_counter() - start)
        return losses

    written: list[float] = []
    compiled: list[float] = []
    for _ in range(_TURNS):
        own = losses_of(step_of(settings, steps + _WARM), written)
        replayed = losses_of(px.compile(step_of(settings, steps + _WARM)), compiled)
        assert own == replayed, "the compiled steps gave other losses"
    return Speed(settings.batch / median(written), settings.batch / median(compiled))
