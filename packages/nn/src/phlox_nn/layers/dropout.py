"""Layers that act in training alone: values and channels dropped, noise added."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import field
from typing import Any, Final

from phlox_tensor import Backend, Float, Tensor, as_device, where
from phlox_tensor.ops.binary import masked_scale
from phlox_tensor.random import bernoulli, normal

from ..module.layer import Stateless

# Where ``selu`` ends: minus its scale times its alpha.
_SELU_LOW: Final = -1.0507009873554805 * 1.6732632423543772


def drop(x: Tensor[Float], prob: float, shape: tuple[int, ...]) -> Tensor[Float]:
    """Zero elements with probability ``prob``, by a broadcast mask of ``shape``; scale others."""
    keep = bernoulli(shape, 1.0 - prob, device=x.device)
    return masked_scale.or_formula(keep, x, 1.0 if prob == 1.0 else 1.0 / (1.0 - prob))


def drop_alpha(x: Tensor[Float], prob: float, shape: tuple[int, ...]) -> Tensor[Float]:
    """``drop`` to the lower bound of ``selu``, moved to a mean of 0 and a variance of 1."""
    keep = bernoulli(shape, 1.0 - prob, device=x.device)
    if prob == 1.0:
        return where(keep, x, 0.0)
    scale = ((1.0 - prob) * (1.0 + prob * _SELU_LOW**2)) ** -0.5
    return where(keep, x, _SELU_LOW) * scale - scale * _SELU_LOW * prob


class Noisy(Stateless, shared=True):
    """Base of layers that draw numbers in training: ``training`` says whether they do."""

    training: bool | None = field(init=False)

    @classmethod
    def _parts(cls, device: Backend | str | None) -> dict[str, Any]:
        # Without a device the module that the layer becomes part of decides if it trains.
        return {"training": None if device is None else as_device(device).records}


class _Dropping(Noisy, shared=True):
    prob: float = 0.5

    def _check(self) -> None:
        self.require("prob", 0.0 <= self.prob <= 1.0, "a probability: 0 <= prob <= 1")

    def forward(self, x: Tensor[Float]) -> Tensor[Float]:
        """Map a tensor to the same shape."""
        return self._dropped(x) if self.training and self.prob else x

    @abstractmethod
    def _dropped(self, x: Tensor[Float]) -> Tensor[Float]:
        """What training makes of a tensor."""


class Dropout(_Dropping):
    """Sets values to 0 at random in training and scales the rest by 1 / (1 - prob).

    ``training`` is None until the layer is part of a module with parameters; alone it does not
    drop. Srivastava et al., 2014, https://jmlr.org/papers/v15/srivastava14a.html

    Args:
        prob: the probability that a value is set to 0.
    """

    def _dropped(self, x: Tensor[Float]) -> Tensor[Float]:
        return drop(x, self.prob, x.shape)


class ChannelDropout(_Dropping):
    """Sets whole channels of an example (N, C, …) to 0 at random in training.

    Tompson et al., 2015, https://arxiv.org/abs/1411.4280

    Args:
        prob: the probability that a channel is set to 0.
    """

    def _dropped(self, x: Tensor[Float]) -> Tensor[Float]:
        return drop(x, self.prob, (*x.shape[:2], *(1,) * (x.ndim - 2)))


class AlphaDropout(_Dropping):
    """Sets values to the lower bound of ``selu`` at random in training; mean and variance stay.

    Klambauer et al., 2017, https://arxiv.org/abs/1706.02515

    Args:
        prob: the probability that a value is dropped.
    """

    def _dropped(self, x: Tensor[Float]) -> Tensor[Float]:
        return drop_alpha(x, self.prob, x.shape)


class FeatureAlphaDropout(_Dropping):
    """Does to whole channels of an example (N, C, …) what ``AlphaDropout`` does to values.

    Args:
        prob: the probability that a channel is dropped.
    """

    def _dropped(self, x: Tensor[Float]) -> Tensor[Float]:
        return drop_alpha(x, self.prob, (*x.shape[:2], *(1,) * (x.ndim - 2)))


class GaussianNoise(Noisy):
    """Adds normal noise in training.

    Args:
        std: standard deviation of the noise.
    """

    std: float

    def _check(self) -> None:
        self.require("std", self.std >= 0, ">= 0")

    def forward(self, x: Tensor[Float]) -> Tensor[Float]:
        """Map a tensor to the same shape."""
        if not self.training or self.std == 0.0:
            return x
        return x + normal(x.shape, 0.0, self.std, device=x.device).astype(x.dtype)
