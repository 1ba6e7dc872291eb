"""AdaGrad."""

from __future__ import annotations

from dataclasses import KW_ONLY
from typing import final

from phlox_tensor import Float, Tensor, full_like

from ._config import OptimizerConfig
from ._rule import ConfiguredRule, State, Stepped


class AdaGradConfig(OptimizerConfig):
    """Settings of ``AdaGrad``.

    Attributes:
        lr_decay: the learning rate is divided by ``1 + lr_decay · (steps so far)``.
        epsilon: added to the root of the sum.
        weight_decay: factor of an L2 penalty, added to the gradient.
        initial_sum: what the sum of squares starts from.
    """

    _: KW_ONLY
    lr_decay: float = 0.0
    epsilon: float = 1e-10
    weight_decay: float = 0.0
    initial_sum: float = 0.0

    def validate(self) -> None:
        """Raise ConfigError for a setting that makes no sense."""
        for name in ("lr_decay", "epsilon", "weight_decay", "initial_sum"):
            self.require(name, getattr(self, name) >= 0, ">= 0")


@final
class AdaGrad(ConfiguredRule[AdaGradConfig]):
    """``p' = p - lr·g / (√s' + epsilon)`` by the sum of squares so far, ``s' = s + g²``.

    Duchi et al., 2011, https://jmlr.org/papers/v12/duchi11a.html
    """

    def step(self, lr: float, tensor: Tensor[Float], grad: Tensor[Float], state: State) -> Stepped:
        """Return the tensor after a step, and the sum of squares."""
        c = self._config
        before = full_like(tensor, c.initial_sum) if state is None else state["sum"]
        time = 0 if state is None else state["time"]
        if c.weight_decay:
            grad = grad + tensor * c.weight_decay
        total = before + grad.square()
        move = grad / (total.sqrt() + c.epsilon)
        return tensor - move * (lr / (1.0 + time * c.lr_decay)), {"time": time + 1, "sum": total}
