"""Rules of optimizers, and parameters for them to step."""

from __future__ import annotations

from typing import Any

import numpy as np

import phlox as px
from phlox import Tensor, nn, optim
from phlox.nn import Param

LARGE = 600, 600  # three of them are 2 MiB even in bfloat16, from which one kernel pays
SHAPES = LARGE, LARGE, (), (0, 3), LARGE


class Sign(optim.SimpleOptimizer):
    """A rule of a user's own with a state of lists and numbers."""

    def step(self, lr: float, tensor: Tensor, grad: Tensor, state: Any) -> tuple[Tensor, Any]:
        count, means = (0, [grad]) if state is None else state
        mean = means[0] * 0.9 + grad * 0.1 if count % 2 else grad
        return tensor - mean.sign() * (lr / (1 + count) ** 0.5), (count + 1, [mean, grad])


RULES: dict[str, Any] = {
    "AdaGrad": optim.AdaGradConfig(lr_decay=0.1, weight_decay=0.1).rule(),
    "AdamW": optim.AdamWConfig(cautious_weight_decay=True, amsgrad=True).rule(),
    "Adan": optim.AdanConfig(weight_decay=0.1, proximal=False).rule(),
    "Lion": optim.LionConfig(weight_decay=0.1).rule(),
    "RmsProp": optim.RmsPropConfig(momentum=0.9, centered=True).rule(),
    "own": Sign(),
}


class Net(nn.Module):
    weights: list[Param]


def drawn(seed: int, dtype: str = "float32") -> list[Tensor]:
    rng = np.random.default_rng(seed)
    return [px.asarray(rng.normal(size=s)).astype(getattr(px, dtype)) for s in SHAPES]


def bits(tensors: list[Tensor]) -> list[bytes]:
    return [tensor.numpy().tobytes() for tensor in tensors]
