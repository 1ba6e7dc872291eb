"""Stochastic gradient descent, with momentum."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import KW_ONLY
from typing import final

from phlox_tensor import Float, Tensor
from phlox_tensor.capture import wrap

from ._config import OptimizerConfig
from ._rule import ConfiguredRule, State, Stepped, SteppedAll, Tensors, primitives


class SgdConfig(OptimizerConfig):
    """Settings of ``Sgd``.

    Attributes:
        weight_decay: factor of an L2 penalty.
        momentum: share of the last step that is kept; 0 for none.
        dampening: share of the gradient that momentum leaves out.
        nesterov: look ahead by the momentum. Sutskever et al., 2013,
            https://proceedings.mlr.press/v28/sutskever13.html
    """

    _: KW_ONLY
    weight_decay: float = 0.0
    momentum: float = 0.0
    dampening: float = 0.0
    nesterov: bool = False

    def validate(self) -> None:
        """Raise ConfigError for a setting that makes no sense."""
        self.require("momentum", self.momentum >= 0, ">= 0")
        self.require("dampening", not self.dampening or self.momentum > 0, "0 without momentum")
        plain = not self.nesterov or not self.dampening
        self.require("nesterov", plain, "no dampening beside it, as in PyTorch")
        self.require("nesterov", not self.nesterov or self.momentum > 0, "momentum > 0")
        self.require("weight_decay", self.weight_decay >= 0, ">= 0")


@final
class Sgd(ConfiguredRule[SgdConfig]):
    """``p - lr·g``, with weight decay and momentum as PyTorch has them.

    Example:
        >>> import phlox_nn as nn, phlox_optim as optim, phlox_tensor as pt
        >>> model = nn.Linear(1, 1, initializer=nn.initializers.Ones())
        >>> grads = {param.id: pt.ones(param.shape) for param in model.param_list()}
        >>> optim.SgdConfig().init().step(0.5, model, grads).weight.value.tolist()
        [[0.5]]
    """

    def step(self, lr: float, tensor: Tensor[Float], grad: Tensor[Float], state: State) -> Stepped:
        """Return the tensor after a step, and its velocity where there is momentum."""
        c = self._config
        if c.weight_decay:
            grad = grad + tensor * c.weight_decay
        if not c.momentum:
            return tensor - grad * lr, None
        if state is None:
            velocity = grad
        else:
            velocity = state["velocity"] * c.momentum + grad * (1.0 - c.dampening)
        move = grad + velocity * c.momentum if c.nesterov else velocity
        return tensor - move * lr, {"velocity": velocity}

    def step_list(
        self, lr: float, tensors: Tensors, grads: Tensors, states: Sequence[State]
    ) -> SteppedAll:
        """Return all tensors after a step, and their velocities: one op for all."""
        c = self._config
        device, dtype, count = tensors[0].device, tensors[0].dtype, len(tensors)
        out = device.ops.sgd_step(
            primitives(tensors, dtype),
            primitives(grads, dtype),
            primitives([s["velocity"] for s in states if s is not None], dtype),
            lr,
            c.momentum,
            c.dampening,
            c.weight_decay,
            c.nesterov,
        )
        new = [wrap(p, device) for p in out]
        if not c.momentum:
            return new, [None] * count
        return new[:count], [{"velocity": velocity} for velocity in new[count:]]
