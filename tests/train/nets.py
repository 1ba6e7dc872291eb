"""A small network with dropout and running statistics, its batches, and what is left of a run."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np

import phlox as px
from phlox import Autodiff, Cpu, nn

LOSS = nn.CrossEntropyLossConfig().init()


class Net(nn.Module):
    """Eight features to three classes."""

    first: nn.Linear
    norm: nn.BatchNorm
    dropout: nn.Dropout
    last: nn.Linear

    def forward(self, x: px.Tensor[px.Float]) -> px.Tensor[px.Float]:
        hidden: Any = self.dropout(self.norm(self.first(x)).relu())
        return self.last(hidden)


def net(device: px.Backend | None = None) -> Net:
    """The network with the weights of one seed, under ids of its own."""
    device = Autodiff(Cpu()) if device is None else device
    px.seed(3)
    return Net(
        nn.Linear(8, 16, device=device),
        nn.BatchNorm(16, device=device),
        nn.Dropout(0.5, device=device),
        nn.Linear(16, 3, device=device),
    )


def forward(model: nn.Module, batch: Any) -> dict[str, Any]:
    logits = model(batch["x"])
    return {"loss": LOSS(logits, batch["y"]), "logits": logits, "targets": batch["y"]}


def rows(count: int = 48) -> dict[str, Any]:
    rng = np.random.default_rng(0)
    x = rng.normal(size=(count, 8)).astype(np.float32)
    return {"x": x, "y": np.abs(x[:, :3]).argmax(axis=1)}


def batches(sizes: tuple[int, ...] = (12, 12, 12, 9, 12)) -> list[dict[str, Any]]:
    whole = rows(sum(sizes))
    ends = np.cumsum((0, *sizes))
    return [
        {name: array[low:high] for name, array in whole.items()} for low, high in pairwise(ends)
    ]


def bits(model: nn.Module) -> list[bytes]:
    return [param.value.numpy().tobytes() for param in model.param_list()]
