"""Adan."""

from __future__ import annotations

from dataclasses import KW_ONLY
from math import sqrt
from typing import final

from phlox_tensor import Float, Tensor
from phlox_tensor.capture import call

from ._config import OptimizerConfig
from ._rule import ConfiguredRule, State, Stepped


class AdanConfig(OptimizerConfig):
    """Settings of ``Adan``.

    Attributes:
        beta_1: decay of the mean of gradients.
        beta_2: decay of the mean of their differences.
        beta_3: decay of the mean of squares of the gradient that looks ahead.
        epsilon: added to the root of the squares.
        weight_decay: of the parameter itself.
        proximal: whether the parameter is divided after the step, as the paper has it, instead of
            multiplied before it, as in AdamW.
    """

    _: KW_ONLY
    beta_1: float = 0.98
    beta_2: float = 0.92
    beta_3: float = 0.99
    epsilon: float = 1e-8
    weight_decay: float = 0.0
    proximal: bool = True

    def validate(self) -> None:
        """Raise ConfigError for a setting that makes no sense."""
        for name in ("beta_1", "beta_2", "beta_3"):
            self.require(name, 0 <= getattr(self, name) < 1, f"0 <= {name} < 1")
        self.require("epsilon", self.epsilon >= 0, ">= 0")
        self.require("weight_decay", self.weight_decay >= 0, ">= 0")


@final
class Adan(ConfiguredRule[AdanConfig]):
    """Adam that looks ahead by the mean of the gradient's differences d = g - (the last g).

    ``m' = beta_1·m + (1 - beta_1)·g``, ``v' = beta_2·v + (1 - beta_2)·d``, ``n' = beta_3·n +
    (1 - beta_3)·(g + beta_2·d)²`` from 0; each is divided by 1 - betaᵗ after t steps, as in
    ``Adam``. ``p' = (p - lr·(m' + beta_2·v') / (√n' + epsilon)) / (1 + lr·weight_decay)``. The
    betas are the shares that are kept, one minus those of the paper. PyTorch has no such rule.
    Xie et al., "Adan: adaptive Nesterov momentum algorithm", 2022,
    https://arxiv.org/abs/2208.06677
    """

    def step(self, lr: float, tensor: Tensor[Float], grad: Tensor[Float], state: State) -> Stepped:
        """Return the tensor after a step, the three means, and the gradient."""
        c = self._config
        if state is None:
            change = grad * 0.0
            state = {"time": 0, "first": change, "changes": change, "squares": change}
        else:
            change = grad - state["last"]
        time = state["time"] + 1
        first = state["first"] * c.beta_1 + grad * (1.0 - c.beta_1)
        changes = state["changes"] * c.beta_2 + change * (1.0 - c.beta_2)
        ahead = (grad + change * c.beta_2).square()
        squares = state["squares"] * c.beta_3 + ahead * (1.0 - c.beta_3)
        root = squares.sqrt() * (1.0 / call(sqrt, 1.0 - c.beta_3**time)) + c.epsilon
        mean = first * (1.0 / (1.0 - c.beta_1**time))
        mean = mean + changes * (c.beta_2 / (1.0 - c.beta_2**time))
        move = mean / root * lr
        shrink = lr * c.weight_decay
        new = (tensor - move) / (1.0 + shrink) if c.proximal else tensor * (1.0 - shrink) - move
        names = ("time", "first", "changes", "squares", "last")
        return new, dict(zip(names, (time, first, changes, squares, grad), strict=True))
