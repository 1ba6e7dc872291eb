"""Adam and AdamW."""

from __future__ import annotations

from collections.abc import Sequence
from math import sqrt
from typing import Any, final

from phlox_nn import Config
from phlox_tensor import Float, Tensor

from ._clipping import AnyClipping
from ._optimizer import OptimizerAdaptor, SimpleOptimizer, State, primitives, require


class AdamConfig(Config):
    """Settings of ``Adam``.

    Attributes:
        beta_1: decay of the mean of gradients.
        beta_2: decay of the mean of their squares.
        epsilon: added to the root of the second mean.
        weight_decay: factor of an L2 penalty, added to the gradient.
        amsgrad: divide by the largest second mean so far. Reddi et al., 2018.
        grad_clipping: applied to the gradients of each step.
    """

    beta_1: float = 0.9
    beta_2: float = 0.999
    epsilon: float = 1e-5
    weight_decay: float = 0.0
    amsgrad: bool = False
    grad_clipping: AnyClipping | None = None

    def init(self, device: object = None) -> OptimizerAdaptor:
        """Return the optimizer for modules; its state follows the parameters' devices.

        Raises:
            ArgumentError: when a setting makes no sense.
        """
        del device
        _validate(self)
        return OptimizerAdaptor(Adam(self), self.grad_clipping)


class AdamWConfig(Config):
    """Settings of ``AdamW``; as ``AdamConfig``, but the weight decay acts on the parameter."""

    beta_1: float = 0.9
    beta_2: float = 0.999
    epsilon: float = 1e-5
    weight_decay: float = 1e-4
    amsgrad: bool = False
    grad_clipping: AnyClipping | None = None

    def init(self, device: object = None) -> OptimizerAdaptor:
        """Return the optimizer for modules; its state follows the parameters' devices.

        Raises:
            ArgumentError: when a setting makes no sense.
        """
        del device
        _validate(self)
        return OptimizerAdaptor(AdamW(self), self.grad_clipping)


def _validate(config: AdamConfig | AdamWConfig) -> None:
    for name in ("beta_1", "beta_2"):
        beta = getattr(config, name)
        require(name, 0 <= beta < 1, beta, f"0 <= {name} < 1")
    require("epsilon", config.epsilon >= 0, config.epsilon, ">= 0")
    require("weight_decay", config.weight_decay >= 0, config.weight_decay, ">= 0")


@final
class Adam(SimpleOptimizer):
    """Steps by the mean of gradients over the root of the mean of squares. Kingma and Ba, 2014."""

    def __init__(self, config: AdamConfig | None = None) -> None:
        """Take the settings."""
        self._config = config or AdamConfig()

    def step(
        self, lr: float, tensor: Tensor[Float], grad: Tensor[Float], state: State
    ) -> tuple[Tensor[Float], State]:
        """Return the tensor after a step, and the two means."""
        if self._config.weight_decay:
            grad = grad + tensor * self._config.weight_decay
        move, state = _direction(self._config, grad, state)
        return tensor - move * lr, state

    def step_list(
        self,
        lr: float,
        tensors: Sequence[Tensor[Float]],
        grads: Sequence[Tensor[Float]],
        states: Sequence[State],
    ) -> tuple[list[Tensor[Float]], list[State]]:
        """Return all tensors after a step, and their means: one op for all."""
        return _step_list(self._config, lr, tensors, grads, states, decoupled=False)


@final
class AdamW(SimpleOptimizer):
    """Adam with weight decay apart from the gradient. Loshchilov and Hutter, 2017."""

    def __init__(self, config: AdamWConfig | None = None) -> None:
        """Take the settings."""
        self._config = config or AdamWConfig()

    def step(
        self, lr: float, tensor: Tensor[Float], grad: Tensor[Float], state: State
    ) -> tuple[Tensor[Float], State]:
        """Return the tensor after a step, and the two means."""
        move, state = _direction(self._config, grad, state)
        kept = tensor * (1.0 - lr * self._config.weight_decay)
        return kept - move * lr, state

    def step_list(
        self,
        lr: float,
        tensors: Sequence[Tensor[Float]],
        grads: Sequence[Tensor[Float]],
        states: Sequence[State],
    ) -> tuple[list[Tensor[Float]], list[State]]:
        """Return all tensors after a step, and their means: one op for all."""
        return _step_list(self._config, lr, tensors, grads, states, decoupled=True)


def _direction(
    config: AdamConfig | AdamWConfig, grad: Tensor[Float], state: State
) -> tuple[Tensor[Float], State]:
    """The step of Adam for a learning rate of 1, and the new state."""
    first = grad * (1.0 - config.beta_1)
    second = grad.square() * (1.0 - config.beta_2)
    time = 1
    if state is not None:
        first = first + state["first"] * config.beta_1
        second = second + state["second"] * config.beta_2
        time = state["time"] + 1
    new: dict[str, Any] = {"time": time, "first": first, "second": second}
    if config.amsgrad:
        before = None if state is None else state.get("largest")
        new["largest"] = second if before is None else second.maximum(before)
    root = new.get("largest", second).sqrt() * (1.0 / sqrt(1.0 - config.beta_2**time))
    return first * (1.0 / (1.0 - config.beta_1**time)) / (root + config.epsilon), new


def _step_list(
    config: AdamConfig | AdamWConfig,
    lr: float,
    tensors: Sequence[Tensor[Float]],
    grads: Sequence[Tensor[Float]],
    states: Sequence[State],
    *,
    decoupled: bool,
) -> tuple[list[Tensor[Float]], list[State]]:
    device, dtype, count = tensors[0].device, tensors[0].dtype, len(tensors)
    before = [s for s in states if s is not None]
    time = before[0]["time"] + 1 if before else 1
    largest = [s["largest"] for s in before if "largest" in s] if config.amsgrad else []
    out = device.ops.adam_step(
        primitives(tensors, dtype),
        primitives(grads, dtype),
        primitives([s["first"] for s in before], dtype),
        primitives([s["second"] for s in before], dtype),
        primitives(largest, dtype),
        float(lr),
        time,
        config.beta_1,
        config.beta_2,
        config.epsilon,
        config.weight_decay,
        decoupled,
        config.amsgrad,
    )
    new = [Tensor(p, device) for p in out]
    pairs = zip(new[count : 2 * count], new[2 * count : 3 * count], strict=True)
    after: list[dict[str, Any]] = [{"time": time, "first": f, "second": s} for f, s in pairs]
    if config.amsgrad:
        for state, most in zip(after, new[3 * count :], strict=True):
            state["largest"] = most
    return new[:count], [*after]
