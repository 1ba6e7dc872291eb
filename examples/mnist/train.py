"""Trains the classifier."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import phlox as px
from examples.mnist.batches import rows
from examples.mnist.data import Mnist
from examples.mnist.model import Digits, DigitsConfig
from phlox import Autodiff, Cpu, nn, optim
from phlox.data import DataLoader
from phlox.train import Accuracy, Fitted, fit

_LOSS = nn.CrossEntropyLossConfig().init()


@dataclass(frozen=True)
class Settings:
    """How to train: epochs, batch size, highest learning rate, seed."""

    epochs: int = 3
    batch: int = 64
    lr: float = 2e-3
    weight_decay: float = 1e-2
    seed: int = 7


def step(model: Digits, batch: Any) -> dict[str, Any]:
    """Return the loss of a batch, and what the accuracy takes."""
    logits = model(batch["image"])
    loss = _LOSS(logits, batch["label"])
    return {"loss": loss, "logits": logits, "targets": batch["label"]}


def train(
    data: Mnist, settings: Settings, config: DigitsConfig, run: Path | None = None
) -> Fitted[Digits]:
    """Train on the CPU; a second call with the same folder goes on with the run."""
    px.seed(settings.seed)
    batches = DataLoader(rows(data.train), settings.batch, shuffle=True, drop_last=True)
    return fit(
        config.init(Autodiff(Cpu())),
        step,
        batches,
        optimizer=optim.AdamWConfig(weight_decay=settings.weight_decay).init(),
        lr=optim.CosineSchedulerConfig(settings.lr, len(batches) * settings.epochs).init(),
        epochs=settings.epochs,
        valid=DataLoader(rows(data.test), 500),
        metrics=[Accuracy()],
        run=run,
        config=asdict(settings),
    )
