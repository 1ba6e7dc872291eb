"""Activations with weights or random slopes, and gates."""

from __future__ import annotations

from typing import Any

from phlox_tensor import Backend, Float, Tensor, glu, leaky_relu, prelu, swiglu, where
from phlox_tensor.random import uniform

from .. import _signatures as takes
from .. import initializers as init
from ..module.layer import Layer, LayerConfig, Stateless
from ..param.param import Param
from .dropout import Noisy
from .inputs import check_dtype
from .linear import Linear, LinearConfig


class Glu(Stateless):
    """One half of the values, let through by the other: ``a · sigmoid(b)``.

    Dauphin et al., 2016, https://arxiv.org/abs/1612.08083

    Args:
        axis: the axis that is halved.
    """

    axis: int = -1

    def forward(self, x: Tensor[Float]) -> Tensor[Float]:
        """Map a tensor to one of half the size along the axis."""
        return glu(x, axis=self.axis)


class SwiGluConfig(LayerConfig["SwiGlu"]):
    """Settings of ``SwiGlu``.

    Attributes:
        d_input: size of the last axis of the input.
        d_output: size of that of the output.
        bias: whether the linear maps have one.
    """

    d_input: int
    d_output: int
    bias: bool = False

    def parts(self, device: Backend | str | None) -> dict[str, Any]:
        """Return the two linear maps."""
        linear = LinearConfig(self.d_input, self.d_output, self.bias)
        return {"gate": linear.init(device), "value": linear.init(device)}


class SwiGlu(takes.SwiGlu, Layer[SwiGluConfig], init=False):
    """A linear map, let through by another: ``silu(gate(x)) · value(x)``.

    Shazeer, 2020, https://arxiv.org/abs/2002.05202
    """

    gate: Linear
    value: Linear

    def forward(self, x: Tensor[Float]) -> Tensor[Float]:
        """Map (…, d_input) to (…, d_output)."""
        return swiglu(self.gate(x), self.value(x))


class PReluConfig(LayerConfig["PRelu"]):
    """Settings of ``PRelu``.

    Attributes:
        num_parameters: one for all, or the number of channels.
        initial: the first slope.
    """

    num_parameters: int = 1
    initial: float = 0.25

    def parts(self, device: Backend | str | None) -> dict[str, Any]:
        """Return the weight."""
        return {"weight": init.Constant(self.initial).param((self.num_parameters,), device)}


class PRelu(takes.PRelu, Layer[PReluConfig], init=False):
    """The positive part, and a learned slope below 0: ``max(x, 0) + weight · min(x, 0)``.

    weight: (num_parameters,).
    He et al., 2015, https://arxiv.org/abs/1502.01852
    """

    weight: Param

    def forward(self, x: Tensor[Float]) -> Tensor[Float]:
        """Map (N, C, …) to the same shape."""
        check_dtype(self, x, self.weight)
        return prelu(x, self.weight.value)


class RRelu(Noisy):
    """The positive part, and below 0 a slope that is random in training, else the middle one.

    Xu et al., 2015, https://arxiv.org/abs/1505.00853

    Args:
        low: the smallest slope.
        high: the largest.
    """

    low: float = 1 / 8
    high: float = 1 / 3

    def _check(self) -> None:
        self.require("low", self.low <= self.high, f"at most high, {self.high}")

    def forward(self, x: Tensor[Float]) -> Tensor[Float]:
        """Map a tensor to the same shape."""
        s = self.settings
        if not self.training:
            return leaky_relu(x, (s.low + s.high) / 2)
        slopes = uniform(x.shape, s.low, s.high, device=x.device).astype(x.dtype)
        return where(x >= 0, x, x * slopes)
