"""Adafactor."""

from __future__ import annotations

from dataclasses import KW_ONLY
from math import sqrt
from typing import Any, final

from phlox_tensor import Float, Tensor, finfo
from phlox_tensor.capture import call

from ._config import OptimizerConfig
from ._rule import ConfiguredRule, State, Stepped


class AdafactorConfig(OptimizerConfig):
    """Settings of ``Adafactor``.

    Attributes:
        decay: the share of a new gradient in the means of squares is ``time ^ decay``.
        epsilon: least root of a mean; None for the precision of the step's type, which
            is float32 for narrower parameters.
        least_scale: least scale of a parameter, by which its steps are multiplied.
        clipping: largest root mean square of a step before scaling.
        weight_decay: of the parameter itself, apart from the gradient.
    """

    _: KW_ONLY
    decay: float = -0.8
    epsilon: float | None = None
    least_scale: float = 1e-3
    clipping: float = 1.0
    weight_decay: float = 0.0

    def validate(self) -> None:
        """Raise ConfigError for a setting that makes no sense."""
        self.require("decay", self.decay <= 0, "<= 0")
        self.require("epsilon", self.epsilon is None or self.epsilon >= 0, ">= 0, or None")
        self.require("least_scale", self.least_scale >= 0, ">= 0")
        self.require("clipping", self.clipping >= 1, ">= 1")
        self.require("weight_decay", self.weight_decay >= 0, ">= 0")


@final
class Adafactor(ConfiguredRule[AdafactorConfig]):
    """Adam without its memory: squares are kept as one row and one column of a matrix.

    ``v̂[i, j] = rows[i] · columns[j] / Σ rows`` stands for the mean of squares. A tensor of more
    axes is taken as many matrices. The learning rate is the most that a step is
    relative to the parameter's scale; it falls with 1 / √time. Shazeer and Stern, 2018,
    https://arxiv.org/abs/1804.04235
    """

    def step(self, lr: float, tensor: Tensor[Float], grad: Tensor[Float], state: State) -> Stepped:
        """Return the tensor after a step, and the means of squares."""
        c = self._config
        epsilon = float(finfo(tensor.dtype).eps) if c.epsilon is None else c.epsilon
        time = 1 if state is None else state["time"] + 1
        share = time**c.decay
        new: dict[str, Any] = {"time": time}

        def mean(name: str, squares: Tensor[Float]) -> Tensor[Float]:
            kept = squares * share
            new[name] = kept if state is None else kept + state[name] * (1.0 - share)
            return new[name]

        squares = grad.square()
        if grad.ndim > 1:
            rows = mean("rows", squares.mean(axis=-1, keepdims=True))
            columns = mean("columns", squares.mean(axis=-2, keepdims=True))
            squares = rows @ columns / rows.mean(axis=-2, keepdims=True).clip(min=epsilon)
        else:
            squares = mean("squares", squares)
        move = squares.clip(min=epsilon * epsilon).rsqrt() * grad
        scale = _root_mean_square(tensor).clip(min=c.least_scale) * call(_falling, lr, time)
        move = move * (scale / (_root_mean_square(move) / c.clipping).clip(min=1.0))
        kept = tensor * (1.0 - lr * c.weight_decay) if c.weight_decay else tensor
        return kept - move, new


def _falling(lr: float, time: int) -> float:
    return min(lr, 1.0 / sqrt(time))


def _root_mean_square(x: Tensor[Float]) -> Tensor[Float]:
    return x.square().mean().sqrt()
