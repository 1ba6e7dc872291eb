"""Normalization and dropout: layers that behave differently in training."""

from __future__ import annotations

from phlox_tensor import (
    ArgumentError,
    Backend,
    Float,
    Tensor,
    as_device,
    batch_norm,
    batch_norm_train,
    layer_norm,
    where,
)
from phlox_tensor.random import bernoulli

from . import initializers as init
from ._config import Config
from ._module import Module
from ._param import Param


class BatchNormConfig(Config):
    """Settings of ``BatchNorm``.

    Attributes:
        num_features: number of channels.
        epsilon: added to the variance.
        momentum: share of the batch in the running statistics.
    """

    num_features: int
    epsilon: float = 1e-5
    momentum: float = 0.1

    def init(self, device: Backend | str | None = None) -> BatchNorm:
        """Return the layer; it trains when the device records."""
        shape = (self.num_features,)
        return BatchNorm.from_fields(
            weight=init.Ones().param(shape, device),
            bias=init.Zeros().param(shape, device),
            running_mean=init.Zeros().param(shape, device, trainable=False),
            running_var=init.Ones().param(shape, device, trainable=False),
            epsilon=self.epsilon,
            momentum=self.momentum,
            training=as_device(device).records,
        )


class BatchNorm(Module):
    """Normalization of each channel (axis 1) over the batch. Ioffe and Szegedy, 2015.

    In training by the batch's own statistics, which also move the running ones; in inference by
    the running ones. weight, bias, running_mean, running_var: (num_features,). As in the variance
    that normalizes, the running variance is the biased one.
    """

    config = BatchNormConfig
    weight: Param
    bias: Param
    running_mean: Param
    running_var: Param
    epsilon: float
    momentum: float
    training: bool

    def forward(self, x: Tensor[Float]) -> Tensor[Float]:
        """Map (N, num_features, …) to the same shape."""
        weight, bias = self.weight.value, self.bias.value
        if not self.training:
            mean, var = self.running_mean.value, self.running_var.value
            return batch_norm(x, weight, bias, mean, var, self.epsilon)
        y, mean, var = batch_norm_train(x, weight, bias, self.epsilon)
        self._move(self.running_mean, mean)
        self._move(self.running_var, var)
        return y

    def _move(self, running: Param, batch: Tensor[Float]) -> None:
        old = running.value
        running.assign(old + (batch.detach() - old) * self.momentum)


class LayerNormConfig(Config):
    """Settings of ``LayerNorm``.

    Attributes:
        d_model: size of the last axis.
        epsilon: added to the variance.
        bias: whether a bias is added.
    """

    d_model: int
    epsilon: float = 1e-5
    bias: bool = True

    def init(self, device: Backend | str | None = None) -> LayerNorm:
        """Return the layer with lazy parameters on ``device``."""
        shape = (self.d_model,)
        return LayerNorm.from_fields(
            weight=init.Ones().param(shape, device),
            bias=init.Zeros().param(shape, device) if self.bias else None,
            epsilon=self.epsilon,
        )


class LayerNorm(Module):
    """Normalization of each row over the last axis. Ba et al., 2016.

    weight: (d_model,); bias: (d_model,) or None.
    """

    config = LayerNormConfig
    weight: Param
    bias: Param | None
    epsilon: float

    def forward(self, x: Tensor[Float]) -> Tensor[Float]:
        """Map (…, d_model) to the same shape."""
        bias = None if self.bias is None else self.bias.value
        return layer_norm(x, self.weight.value, bias, self.epsilon)


class DropoutConfig(Config):
    """Settings of ``Dropout``: the probability that a value is set to 0."""

    prob: float = 0.5

    def init(self, device: Backend | str | None = None) -> Dropout:
        """Return the layer; without a device the module it becomes part of decides if it trains.

        Raises:
            ArgumentError: when ``prob`` is not in [0, 1).
        """
        if not 0.0 <= self.prob < 1.0:
            raise ArgumentError(
                "dropout", "not a probability", got=self.prob, expected="0 <= p < 1"
            )
        training = None if device is None else as_device(device).records
        return Dropout.from_fields(prob=self.prob, training=training)


class Dropout(Module):
    """Sets values to 0 at random in training and scales the rest by 1 / (1 - prob).

    ``training`` is None until the layer is part of a module with parameters; alone it does not
    drop. Srivastava et al., 2014.
    """

    config = DropoutConfig
    prob: float
    training: bool | None

    def forward(self, x: Tensor[Float]) -> Tensor[Float]:
        """Map a tensor to the same shape."""
        if not self.training or self.prob == 0.0:
            return x
        device = x.device
        keep = bernoulli(x.shape, 1.0 - self.prob, device=device)
        return where(keep, x * (1.0 / (1.0 - self.prob)), 0.0)
