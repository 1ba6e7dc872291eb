"""What a compiled function does again at calls 4, 16 and 64 is no false alarm."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import phlox as px
from phlox import Autodiff, Cpu, data, nn, optim

TRAIN = Autodiff(Cpu())
CALLS = 70


def net() -> Any:
    return nn.Sequential(
        nn.Linear(6, 8, device=TRAIN),
        nn.BatchNorm(8, device=TRAIN),
        nn.Activation("relu"),
        nn.Dropout(0.3),
        nn.Linear(8, 3, device=TRAIN),
    )


def batches() -> Iterator[tuple[Any, Any]]:
    """Batches of ten and, at the end of each epoch, of three."""
    rng = np.random.default_rng(0)
    rows = [(rng.normal(size=6).astype(np.float32), i % 3) for i in range(23)]
    loader = data.DataLoader(rows, 10, shuffle=True)
    while True:
        for x, y in loader:
            yield px.asarray(np.asarray(x), device=TRAIN), px.asarray(np.asarray(y), device=Cpu())


def trained(wrap: Any, schedule: Any, config: Any) -> list[float]:
    """The losses of a training with all that moves from call to call."""
    px.seed(3)
    loss_fn, optimizer, position = nn.CrossEntropyLoss(), config.init(), schedule.init()
    noise, count = px.random.Generator(5), px.Cell(0)
    model = average = net()
    history: list[float] = []

    def step(model: Any, average: Any, x: Any, y: Any, decay: float) -> Any:
        count.set(count.get() + 1)
        with px.random.use_generator(noise):
            noisy = x + 0.01 * px.random.normal(x.shape, device=x.device)
        loss = loss_fn(model(noisy), y)
        model = optimizer.step(position.step(), model, loss.backward())
        return model, nn.moving_average(average, model, decay), loss.detach()

    run, feed = wrap(step), batches()
    for i in range(CALLS):
        x, y = next(feed)
        model, average, loss = run(model, average, x, y, min(0.9, i / (i + 1)))
        history.append(float(loss))
    assert count.get() == optimizer.steps == CALLS
    weights = average.param_list()[0].value
    return [*history, float(weights.detach().square().sum())]


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize(
    ("schedule", "config"),
    [
        (optim.CosineSchedulerConfig(1e-2, steps=50), optim.AdamWConfig()),
        (
            optim.WarmUpSchedulerConfig(optim.ConstantSchedulerConfig(1e-2), 5),
            optim.SgdConfig(momentum=0.9),
        ),
        (
            optim.OneCycleSchedulerConfig(1e-2, steps=60),
            optim.AdamConfig(grad_clipping=optim.ClipByGlobalNorm(1.0)),
        ),
    ],
)
def test_training_is_what_it_was_at_every_call(schedule: Any, config: Any) -> None:
    assert trained(px.compile, schedule, config) == trained(lambda step: step, schedule, config)
