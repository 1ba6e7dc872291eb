"""Whole training steps: a small network, the network of the digits demo."""

from __future__ import annotations

from typing import Any

import numpy as np

import phlox as px
from benchmarks.case import Case, Run
from examples.mnist.model import DigitsConfig
from phlox import nn, optim

BATCH = 64


class Mlp(nn.Module):
    """Two linear layers with relu between."""

    first: nn.Linear
    second: nn.Linear

    def forward(self, x: px.Tensor) -> px.Tensor:
        """Map (N, in) to (N, out)."""
        return self.second(self.first(x).relu())


def cases(*, with_torch: bool) -> list[Case]:
    """Return the benchmarks of the group."""
    train = px.Autodiff(px.Cpu())
    tiny = Mlp(first=nn.Linear(64, 32, device=train), second=nn.Linear(32, 10, device=train))
    mlp = Mlp(first=nn.Linear(784, 256, device=train), second=nn.Linear(256, 10, device=train))
    cnn = DigitsConfig().init(train)
    twins: list[Any] = _torch() if with_torch else [None] * 3
    return [
        Case("MLP 64-32-10, b32, Adam step", _step(tiny, (32, 64)), twins[0]),
        Case("MLP 784-256-10, b64, Adam step", _step(mlp, (BATCH, 784)), twins[1]),
        Case("digits CNN, b64, AdamW step", _step(cnn, (BATCH, 1, 28, 28)), twins[2]),
    ]


def _data(shape: tuple[int, ...]) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    return rng.standard_normal(shape, np.float32), rng.integers(0, 10, shape[0])


def _step(model: Any, shape: tuple[int, ...]) -> Run:
    images, labels = _data(shape)
    device = px.Autodiff(px.Cpu())
    x, target = px.asarray(images, device=device), px.asarray(labels, device=device)
    rule = optim.AdamWConfig().init()
    loss_fn = nn.CrossEntropyLossConfig().init()
    place = [model]

    def run() -> object:
        loss = loss_fn(place[0](x), target)
        place[0] = rule.step(1e-3, place[0], loss.backward())
        return loss

    return run


def _torch() -> list[Run]:
    import torch  # noqa: PLC0415 # pyright: ignore[reportMissingImports] - for comparisons

    n = torch.nn
    cnn = n.Sequential(
        n.Conv2d(1, 16, 3, padding=1), n.BatchNorm2d(16), n.GELU(), n.MaxPool2d(2),
        n.Conv2d(16, 32, 3, padding=1), n.BatchNorm2d(32), n.GELU(), n.MaxPool2d(2),
        n.Flatten(), n.Dropout(0.25), n.Linear(32 * 49, 10),
    )  # fmt: skip
    tiny = n.Sequential(n.Linear(64, 32), n.ReLU(), n.Linear(32, 10))
    mlp = n.Sequential(n.Linear(784, 256), n.ReLU(), n.Linear(256, 10))

    def step(model: Any, shape: tuple[int, ...]) -> Run:
        images, labels = _data(shape)
        x, target = torch.from_numpy(images), torch.from_numpy(labels)
        rule = torch.optim.AdamW(model.parameters(), lr=1e-3)

        def run() -> object:
            loss = n.functional.cross_entropy(model(x), target)
            rule.zero_grad()
            loss.backward()
            rule.step()
            return loss

        return run

    return [
        step(tiny, (32, 64)),
        step(mlp, (BATCH, 784)),
        step(cnn, (BATCH, 1, 28, 28)),
    ]
