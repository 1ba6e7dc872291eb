"""Trains the classifier and saves config and record."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TextColumn,
    TimeRemainingColumn,
)

import phlox as px
from examples.mnist.batches import in_order, normalized, shuffled
from examples.mnist.data import Mnist
from examples.mnist.model import Digits, DigitsConfig
from phlox import Autodiff, Cpu, nn, optim
from phlox.record import HalfPrecision, NamedMsgpackRecorder

_SHOWN_EVERY = 20


@dataclass(frozen=True)
class Settings:
    """How to train: epochs, batch size, highest learning rate, seed."""

    epochs: int = 3
    batch: int = 64
    lr: float = 2e-3
    weight_decay: float = 1e-2
    seed: int = 7


@dataclass
class History:
    """What happened: loss by step, test accuracy and seconds by epoch."""

    losses: list[float] = field(default_factory=list)
    accuracies: list[float] = field(default_factory=list)
    seconds: list[float] = field(default_factory=list)


# From a model, images and labels to the next model, the loss, and how many were right.
Step = Callable[
    [Digits, px.Tensor[px.Float], px.Tensor[px.Int]],
    tuple[Digits, px.Tensor[px.Float], px.Tensor[px.Int]],
]


def step_of(settings: Settings, steps: int) -> Step:
    """Return a training step with an optimizer and a schedule of its own; ``px.compile`` takes it.

    Args:
        settings: how to train.
        steps: how many there will be.
    """
    rule = optim.AdamWConfig(weight_decay=settings.weight_decay).init()
    schedule = optim.CosineSchedulerConfig(settings.lr, steps=steps).init()
    loss_fn = nn.CrossEntropyLossConfig().init()

    def step(
        model: Digits, x: px.Tensor[px.Float], target: px.Tensor[px.Int]
    ) -> tuple[Digits, px.Tensor[px.Float], px.Tensor[px.Int]]:
        logits = model(x)
        loss = loss_fn(logits, target)
        right = (logits.detach().argmax(axis=1) == target).sum()
        return rule.step(schedule.step(), model, loss.backward()), loss.detach(), right

    return step


def predict(
    model: Callable[[px.Tensor[px.Float]], px.Tensor[px.Float]],
    images: NDArray[np.float32],
    device: px.Backend,
) -> NDArray[np.float32]:
    """Return the logits of all images."""
    parts = [model(batch).numpy() for batch in in_order(images, 500, device)]
    return np.concatenate(parts).astype(np.float32)


def accuracy(logits: NDArray[Any], labels: NDArray[Any]) -> float:
    """Return the share of images whose largest logit is the label's."""
    return float((logits.argmax(axis=1) == labels).mean())


def train(data: Mnist, settings: Settings, config: DigitsConfig) -> tuple[Digits, History]:
    """Train on the CPU and return the model, still in training, and its history."""
    px.seed(settings.seed)
    cpu = Cpu()
    device = Autodiff(cpu)
    images, test_images = normalized(data.train), normalized(data.test)
    steps = len(images) // settings.batch
    model = config.init(device)
    train_step = step_of(settings, steps * settings.epochs)
    history = History()
    print(model)
    with _progress() as bar:
        for epoch in range(settings.epochs):
            task = bar.add_task(f"epoch {epoch + 1}/{settings.epochs}", total=steps, note="")
            start = time.perf_counter()
            recent: list[px.Tensor[px.Float]] = []
            correct = 0
            batches = shuffled(
                images, data.train.labels, settings.batch, settings.seed + epoch, device
            )
            for step, (x, target) in enumerate(batches, 1):
                model, loss, right = train_step(model, x, target)
                recent.append(loss)
                correct += int(right)
                if step % _SHOWN_EVERY == 0 or step == steps:
                    history.losses.extend(float(one) for one in recent)
                    recent.clear()
                    rate = step * settings.batch / (time.perf_counter() - start)
                    share = correct / (step * settings.batch)
                    note = f"loss {history.losses[-1]:.3f}  acc {share:.2%}  {rate:,.0f} images/s"
                    bar.update(task, completed=step, note=note)
            history.seconds.append(time.perf_counter() - start)
            logits_test = predict(model.valid(), test_images, cpu)
            history.accuracies.append(accuracy(logits_test, data.test.labels))
            bar.console.print(
                f"epoch {epoch + 1}: {history.seconds[-1]:.1f} s, "
                f"test accuracy {history.accuracies[-1]:.2%}"
            )
    return model, history


def _progress() -> Progress:
    return Progress(
        TextColumn("{task.description}"),
        BarColumn(bar_width=24),
        MofNCompleteColumn(),
        TextColumn("{task.fields[note]}"),
        TimeRemainingColumn(),
    )


def save(model: Digits, config: DigitsConfig, folder: Path) -> tuple[Path, Path]:
    """Write config (JSON) and record (half precision) and return their paths."""
    folder.mkdir(parents=True, exist_ok=True)
    recorder = NamedMsgpackRecorder(HalfPrecision)
    return config.save(folder / "digits.json"), model.valid().save_file(folder / "digits", recorder)
