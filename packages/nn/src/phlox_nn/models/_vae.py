"""A variational autoencoder."""

from __future__ import annotations

from typing import NamedTuple

from phlox_tensor import Backend, Float, Tensor, random

from ..layers.linear import Linear, LinearConfig
from ..module.module import Module
from ._parts import ModelConfig


class VaeConfig(ModelConfig):
    """Settings of ``Vae``; the defaults are for digits of 28 x 28 pixels.

    Attributes:
        d_input: number of values of an example, each between 0 and 1.
        d_hidden: size between.
        d_code: size of what an example becomes.
    """

    d_input: int = 784
    d_hidden: int = 400
    d_code: int = 20

    def init(self, device: Backend | str | None = None) -> Vae:
        """Return the autoencoder with lazy parameters."""
        return Vae(
            fc1=LinearConfig(self.d_input, self.d_hidden).init(device),
            fc21=LinearConfig(self.d_hidden, self.d_code).init(device),
            fc22=LinearConfig(self.d_hidden, self.d_code).init(device),
            fc3=LinearConfig(self.d_code, self.d_hidden).init(device),
            fc4=LinearConfig(self.d_hidden, self.d_input).init(device),
        )


class VaeResult(NamedTuple):
    """What the autoencoder makes of examples.

    Attributes:
        logits: (N, d_input), of the values.
        mean: (N, d_code), of the code.
        log_variance: the same, the logarithm of its variance.
    """

    logits: Tensor[Float]
    mean: Tensor[Float]
    log_variance: Tensor[Float]

    def loss(self, x: Tensor[Float]) -> Tensor[Float]:
        """Return the bound of the negative log-likelihood, a mean over the examples x."""
        logits, mean, log_variance = self
        shares = logits.softplus() - logits * x
        spread = (mean.square() + log_variance.exp() - log_variance - 1.0) * 0.5
        total = shares.to_full_precision().sum() + spread.to_full_precision().sum()
        return (total / x.shape[0]).astype(logits.dtype)


class Vae(Module):
    """Examples to a few numbers, with noise, and back. Kingma and Welling, 2013.

    Parameters have the names of PyTorch's example.

    Example:
        >>> from phlox_nn import models
        >>> models.VaeConfig().init().num_params()
        652824
    """

    fc1: Linear
    fc21: Linear
    fc22: Linear
    fc3: Linear
    fc4: Linear

    def encode(self, x: Tensor[Float]) -> tuple[Tensor[Float], Tensor[Float]]:
        """Map (N, d_input) to mean and logarithm of the variance of codes, (N, d_code)."""
        inner = self.fc1(x).relu()
        return self.fc21(inner), self.fc22(inner)

    def decode(self, codes: Tensor[Float]) -> Tensor[Float]:
        """Map (N, d_code) to logits (N, d_input)."""
        return self.fc4(self.fc3(codes).relu())

    def forward(self, x: Tensor[Float]) -> VaeResult:
        """Map (N, d_input) to what a code drawn for each example becomes, and to its mean."""
        mean, log_variance = self.encode(x)
        noise = random.normal(mean.shape, device=mean.device).astype(mean.dtype)
        codes = mean + noise * (log_variance * 0.5).exp()
        return VaeResult(self.decode(codes), mean, log_variance)
