"""Activations as functions and as layers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

from phlox_tensor import (
    Backend,
    Float,
    Tensor,
    elu,
    gelu,
    gelu_tanh,
    leaky_relu,
    log_sigmoid,
    log_softmax,
    relu,
    sigmoid,
    silu,
    softmax,
    softplus,
    tanh,
)

from ._config import Config
from ._module import Module

__all__ = [
    "Activation",
    "ActivationConfig",
    "elu",
    "gelu",
    "gelu_tanh",
    "leaky_relu",
    "log_sigmoid",
    "log_softmax",
    "relu",
    "sigmoid",
    "silu",
    "softmax",
    "softplus",
    "tanh",
]

Name = Literal[
    "elu", "gelu", "gelu_tanh", "leaky_relu", "log_sigmoid", "relu", "sigmoid", "silu",
    "softplus", "tanh",
]  # fmt: skip
_FUNCTIONS: dict[str, Callable[[Tensor[Float]], Tensor[Float]]] = {
    "elu": elu,
    "gelu": gelu,
    "gelu_tanh": gelu_tanh,
    "leaky_relu": leaky_relu,
    "log_sigmoid": log_sigmoid,
    "relu": relu,
    "sigmoid": sigmoid,
    "silu": silu,
    "softplus": softplus,
    "tanh": tanh,
}


class ActivationConfig(Config):
    """Settings of ``Activation``: the name of the function."""

    name: Name = "relu"

    def init(self, device: Backend | str | None = None) -> Activation:
        """Return the layer; it has no parameters."""
        del device
        return Activation.from_fields(name=self.name)


class Activation(Module):
    """An activation as a layer, for lists of layers."""

    config = ActivationConfig
    name: Name

    def forward(self, x: Tensor[Float]) -> Tensor[Float]:
        """Map a tensor to the same shape."""
        return _FUNCTIONS[self.name](x)
