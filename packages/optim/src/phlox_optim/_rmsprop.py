"""RMSProp."""

from __future__ import annotations

from dataclasses import KW_ONLY
from typing import Any, final

from phlox_tensor import Float, Tensor

from ._config import OptimizerConfig
from ._rule import ConfiguredRule, State, Stepped


class RmsPropConfig(OptimizerConfig):
    """Settings of ``RmsProp``.

    Attributes:
        alpha: decay of the mean of squares.
        epsilon: added to its root.
        weight_decay: factor of an L2 penalty, added to the gradient.
        momentum: share of the last step that is kept; 0 for none.
        centered: whether the mean of gradients is taken out of the squares. Graves, 2013.
    """

    _: KW_ONLY
    alpha: float = 0.99
    epsilon: float = 1e-8
    weight_decay: float = 0.0
    momentum: float = 0.0
    centered: bool = False

    def validate(self) -> None:
        """Raise ConfigError for a setting that makes no sense."""
        self.require("alpha", 0 <= self.alpha < 1, "0 <= alpha < 1")
        for name in ("epsilon", "weight_decay", "momentum"):
            self.require(name, getattr(self, name) >= 0, ">= 0")


@final
class RmsProp(ConfiguredRule[RmsPropConfig]):
    """Steps by the gradient over the root of the mean of its squares.

    ``v' = alpha·v + (1 - alpha)·g²`` from 0, ``p' = p - lr·g / (√v' + epsilon)``. Centered, the
    square of the mean of gradients is taken from v'. With momentum ``u' = momentum·u + g / (√v' +
    epsilon)`` and ``p' = p - lr·u'``. Weight decay is added to the gradient. Defaults and values
    are those of PyTorch; epsilon stands outside of the root. Hinton, "Neural networks for machine
    learning", lecture 6e, 2012,
    https://www.cs.toronto.edu/~tijmen/csc321/slides/lecture_slides_lec6.pdf
    """

    def step(self, lr: float, tensor: Tensor[Float], grad: Tensor[Float], state: State) -> Stepped:
        """Return the tensor after a step, and the means."""
        c = self._config
        if c.weight_decay:
            grad = grad + tensor * c.weight_decay
        new: dict[str, Any] = {"squares": grad.square() * (1.0 - c.alpha)}
        if state is not None:
            new["squares"] = new["squares"] + state["squares"] * c.alpha
        spread = new["squares"]
        if c.centered:
            new["mean"] = grad * (1.0 - c.alpha)
            if state is not None and "mean" in state:
                new["mean"] = new["mean"] + state["mean"] * c.alpha
            # The mean of squares less the square of the mean, which may be infinite and both be so.
            root = spread.sqrt()
            spread = ((root - new["mean"]) * (root + new["mean"])).clip(min=0.0)  # but for rounding
        move = grad / (spread.sqrt() + c.epsilon)
        if c.momentum:
            if state is not None and "velocity" in state:  # not where momentum is switched on
                move = state["velocity"] * c.momentum + move
            new["velocity"] = move
        return tensor - move * lr, new
