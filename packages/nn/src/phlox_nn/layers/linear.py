"""Linear layers."""

from __future__ import annotations

from typing import Any

from phlox_tensor import Backend, Float, Tensor, linear

from .. import _signatures as takes
from .. import initializers as init
from ..module.layer import Layer, LayerConfig
from ..param.param import Param
from .inputs import check_dtype, value_of


class LinearConfig(LayerConfig["Linear"]):
    """Settings of ``Linear``.

    Attributes:
        d_input: size of the last axis of the input.
        d_output: size of the last axis of the output.
        bias: whether a bias is added.
        initializer: first values of weight and bias.
    """

    d_input: int
    d_output: int
    bias: bool = True
    initializer: init.Initializer = init.KaimingUniform(init.USUAL_GAIN)

    def parts(self, device: Backend | str | None) -> dict[str, Any]:
        """Return weight and bias."""
        fans = init.Fans(self.d_input, self.d_output)
        weight = self.initializer.param((self.d_input, self.d_output), device, fans)
        bias = self.initializer.param((self.d_output,), device, fans) if self.bias else None
        return {"weight": weight, "bias": bias}


class Linear(takes.Linear, Layer[LinearConfig], init=False):
    """Affine map of the last axis: ``x @ weight + bias``.

    weight: (d_input, d_output); bias: (d_output,) or None.
    """

    transposed_in_pytorch = ("weight",)

    weight: Param
    bias: Param | None

    def forward(self, x: Tensor[Float]) -> Tensor[Float]:
        """Map (…, d_input) to (…, d_output).

        Raises:
            DTypeError: for input of another type than the weights.
            ShapeError: for another last axis.
        """
        weight: Any = self.weight
        check_dtype(self, x, weight)
        bias = value_of(self.bias)
        if type(weight) is not Param:  # made of something else
            return weight.linear(x, bias)
        return linear(x, weight.value, bias)
