"""Lion."""

from __future__ import annotations

from dataclasses import KW_ONLY
from typing import final

from phlox_tensor import Float, Tensor

from ._config import OptimizerConfig
from ._rule import ConfiguredRule, State, Stepped


class LionConfig(OptimizerConfig):
    """Settings of ``Lion``.

    Attributes:
        beta_1: share of the mean in the direction of a step.
        beta_2: decay of the mean of gradients.
        weight_decay: of the parameter itself, apart from the gradient.
    """

    _: KW_ONLY
    beta_1: float = 0.9
    beta_2: float = 0.99
    weight_decay: float = 0.0

    def validate(self) -> None:
        """Raise ConfigError for a setting that makes no sense."""
        self.require("beta_1", 0 <= self.beta_1 < 1, "0 <= beta_1 < 1")
        self.require("beta_2", 0 <= self.beta_2 < 1, "0 <= beta_2 < 1")
        self.require("weight_decay", self.weight_decay >= 0, ">= 0")


@final
class Lion(ConfiguredRule[LionConfig]):
    """Steps by the sign of a mean of gradients: all elements of a step are ``lr``, or 0.

    ``p' = p·(1 - lr·weight_decay) - lr·sign(beta_1·m + (1 - beta_1)·g)``, and after it
    ``m' = beta_2·m + (1 - beta_2)·g`` from 0. Rates are three to ten times smaller than those
    of ``AdamW``, and weight decays as much larger. PyTorch has no such rule. Chen et al., "Symbolic
    discovery of optimization algorithms", 2023, https://arxiv.org/abs/2302.06675
    """

    def step(self, lr: float, tensor: Tensor[Float], grad: Tensor[Float], state: State) -> Stepped:
        """Return the tensor after a step, and the mean."""
        c = self._config
        direction, mean = grad * (1.0 - c.beta_1), grad * (1.0 - c.beta_2)
        if state is not None:
            direction = direction + state["mean"] * c.beta_1
            mean = mean + state["mean"] * c.beta_2
        kept = tensor * (1.0 - lr * c.weight_decay) if c.weight_decay else tensor
        return kept - direction.sign() * lr, {"mean": mean}
