"""Adam and AdamW."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import KW_ONLY
from math import sqrt
from typing import Any, ClassVar, Final, TypeVar, final

from phlox_tensor import Float, Tensor, where
from phlox_tensor.capture import call, wrap

from ._config import OptimizerConfig
from ._rule import ConfiguredRule, State, Stepped, SteppedAll, Tensors, primitives

S = TypeVar("S", bound="_Settings")
_LEAST_SHARE: Final = 1e-3  # as the authors' program has it


class _Settings(OptimizerConfig):
    """What ``AdamConfig`` and ``AdamWConfig`` have in common."""

    _: KW_ONLY
    beta_1: float = 0.9
    beta_2: float = 0.999
    epsilon: float = 1e-8
    weight_decay: float = 0.0
    amsgrad: bool = False

    def validate(self) -> None:
        """Raise ConfigError for a setting that makes no sense."""
        self.require("beta_1", 0 <= self.beta_1 < 1, "0 <= beta_1 < 1")
        self.require("beta_2", 0 <= self.beta_2 < 1, "0 <= beta_2 < 1")
        self.require("epsilon", self.epsilon >= 0, ">= 0")
        self.require("weight_decay", self.weight_decay >= 0, ">= 0")


class AdamConfig(_Settings):
    """Settings of ``Adam``.

    Attributes:
        beta_1: decay of the mean of gradients.
        beta_2: decay of the mean of their squares.
        epsilon: added to the root of the second mean.
        weight_decay: factor of an L2 penalty, added to the gradient.
        amsgrad: divide by the largest second mean so far. Reddi et al., 2018.
    """


class AdamWConfig(_Settings):
    """Settings of ``AdamW``; as ``AdamConfig``, but the weight decay acts on the parameter.

    Attributes:
        beta_1: decay of the mean of gradients.
        beta_2: decay of the mean of their squares.
        epsilon: added to the root of the second mean.
        weight_decay: share of the parameter, times the rate, that is taken off.
        amsgrad: divide by the largest second mean so far. Reddi et al., 2018.
        cautious: step only where the direction has the sign of the gradient, and the more there.
            Liang et al., 2024.
        cautious_weight_decay: decay only where the step does not go the other way. Chen et al.,
            2025.
    """

    _: KW_ONLY
    weight_decay: float = 1e-2
    cautious: bool = False
    cautious_weight_decay: bool = False


class _Moments(ConfiguredRule[S]):
    """Both rules; they differ in where the weight decay acts."""

    _decoupled: ClassVar[bool]

    def step(self, lr: float, tensor: Tensor[Float], grad: Tensor[Float], state: State) -> Stepped:
        """Return the tensor after a step, and the two means."""
        c = self._config
        if c.weight_decay and not self._decoupled:
            grad = grad + tensor * c.weight_decay
        move, state = self._direction(grad, state)
        if isinstance(c, AdamWConfig) and c.cautious:
            agreed = move * grad > 0
            share = agreed.astype(move.dtype).mean().clip(min=_LEAST_SHARE)
            move = where(agreed, move / share, 0.0)
        if not self._decoupled or not c.weight_decay:
            return tensor - move * lr, state
        kept = tensor * (1.0 - lr * c.weight_decay)
        if isinstance(c, AdamWConfig) and c.cautious_weight_decay:
            kept = where(move * tensor >= 0, kept, tensor)
        return kept - move * lr, state

    def _direction(self, grad: Tensor[Float], state: State) -> tuple[Tensor[Float], State]:
        """The step for a learning rate of 1, and the new state."""
        config = self._config
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
        root = new.get("largest", second).sqrt() * (1.0 / call(sqrt, 1.0 - config.beta_2**time))
        return first * (1.0 / (1.0 - config.beta_1**time)) / (root + config.epsilon), new

    def step_list(
        self, lr: float, tensors: Tensors, grads: Tensors, states: Sequence[State]
    ) -> SteppedAll:
        """Return all tensors after a step, and their means: one op for all, if it can say it."""
        config = self._config
        if isinstance(config, AdamWConfig) and (config.cautious or config.cautious_weight_decay):
            return super().step_list(lr, tensors, grads, states)
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
            lr,
            time,
            config.beta_1,
            config.beta_2,
            config.epsilon,
            config.weight_decay,
            self._decoupled,
            config.amsgrad,
        )
        new = [wrap(p, device) for p in out]
        after: list[dict[str, Any]] = [
            {"time": time, "first": new[i], "second": new[count + i]}
            for i in range(count, 2 * count)
        ]
        if config.amsgrad:
            for state, most in zip(after, new[3 * count :], strict=True):
                state["largest"] = most
        return new[:count], [*after]


@final
class Adam(_Moments[AdamConfig]):
    """Steps by the mean of gradients over the root of the mean of their squares.

    ``m' = beta_1·m + (1 - beta_1)·g`` and ``v' = beta_2·v + (1 - beta_2)·g²`` from 0; after t steps
    ``p' = p - lr·m̂ / (√v̂ + epsilon)`` with ``m̂ = m' / (1 - beta_1ᵗ)``, ``v̂ = v' / (1 - beta_2ᵗ)``.
    Epsilon stands outside of the root, which is divided first; the paper has a second form, where
    it is added before that. Weight decay is added to the gradient; ``AdamW`` takes it from the
    parameter. Defaults and values are those of PyTorch. Kingma and Ba, "Adam: a method for
    stochastic optimization", 2014, https://arxiv.org/abs/1412.6980
    """

    _decoupled = False


@final
class AdamW(_Moments[AdamWConfig]):
    """Adam with weight decay apart from the gradient: ``p' = p·(1 - lr·weight_decay) - lr·m̂ / …``.

    The rest is as in ``Adam``, defaults and values as in PyTorch. Loshchilov and Hutter, "Decoupled
    weight decay regularization", 2017, https://arxiv.org/abs/1711.05101
    """

    _decoupled = True
