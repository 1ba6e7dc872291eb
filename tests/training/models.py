"""Small models and data that the tests beside this module train on."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

import phlox as px
from phlox import Backend, Float, Int, Tensor, nn, optim

CLASSES, SIDE = 3, 8


class NetConfig(nn.Config):
    """Every sort of layer that training touches."""

    hidden: int = 6
    dropout: float = 0.3

    def init(self, device: Backend | str | None = None) -> Net:
        return Net(
            conv=nn.Conv2dConfig(1, 4, kernel_size=3, padding="same").init(device),
            norm=nn.BatchNormConfig(4).init(device),
            body=nn.LinearConfig(4 * (SIDE // 2) ** 2, self.hidden).init(device),
            scale=nn.LayerNormConfig(self.hidden).init(device),
            drop=nn.DropoutConfig(self.dropout).init(),
            head=nn.LinearConfig(self.hidden, CLASSES).init(device),
        )


class Net(nn.Module):
    conv: nn.Conv2d
    norm: nn.BatchNorm
    body: nn.Linear
    scale: nn.LayerNorm
    drop: nn.Dropout
    head: nn.Linear

    def forward(self, images: Tensor[Float]) -> Tensor[Float]:
        x = px.max_pool2d(nn.gelu(self.norm(self.conv(images))), 2).flatten(1)
        logits: Tensor[Float] = self.head(self.drop(self.scale(nn.silu(self.body(x)))))
        return logits


def batches(
    count: int, device: Backend, size: int = 8, seed: int = 0
) -> Iterator[tuple[Tensor[Float], Tensor[Int]]]:
    """Images whose brightest third tells the class."""
    rng = np.random.default_rng(seed)
    for _ in range(count):
        labels = rng.integers(0, CLASSES, size)
        images = rng.normal(0, 0.5, (size, 1, SIDE, SIDE)).astype(np.float32)
        for image, label in zip(images, labels, strict=True):
            image[:, :, label * 3 : label * 3 + 2] += 2
        yield px.asarray(images, device=device), px.asarray(labels, device=device)


class Training:
    """A model, its optimizer and its schedule, stepping together."""

    def __init__(self, device: Backend, steps: int = 40) -> None:
        self.device = device
        self.model = NetConfig().init(device)
        self.optimizer = optim.AdamWConfig(grad_clipping=optim.ClipByGlobalNorm(1.0)).init()
        self.schedule = optim.CosineSchedulerConfig(1e-2, steps=steps).init()
        self.loss = nn.CrossEntropyLossConfig(smoothing=0.05).init()

    def step(self, images: Tensor[Float], labels: Tensor[Int]) -> Tensor[Float]:
        """One step; returns the loss, unread."""
        loss: Tensor[Float] = self.loss(self.model(images), labels)
        rate = self.schedule.step()
        self.model = self.optimizer.step(rate, self.model, loss.backward())
        return loss.detach()

    def run(self, count: int, seed: int = 0) -> list[float]:
        """Several steps on batches of a seed; returns the losses."""
        losses = [self.step(*batch) for batch in batches(count, self.device, seed=seed)]
        return [loss.item() for loss in losses]

    def bits(self) -> dict[str, bytes]:
        """All numbers of the model."""
        return {path: p.value.numpy().tobytes() for path, p in self.model.params().items()}

    def into_record(self) -> dict[str, Any]:
        """Everything that a run goes on from, the random numbers too."""
        key, counter = px.random.generator().state()
        return {
            "model": self.model.into_record(),
            "optimizer": self.optimizer.into_record(),
            "schedule": self.schedule.into_record(),
            "random": {"key": key, "counter": counter},
        }

    def load_record(self, record: Any) -> None:
        """Go on from a record."""
        self.model = self.model.load_record(record["model"])
        self.optimizer = self.optimizer.load_record(record["optimizer"])
        self.schedule = self.schedule.load_record(record["schedule"])
        px.random.generator().set_state(record["random"]["key"], record["random"]["counter"])
