"""Small layers: nothing, and products of pairs."""

from __future__ import annotations

from typing import Any

from phlox_tensor import Backend, Float, Tensor

from .. import _signatures as takes
from .. import initializers as init
from ..module.layer import Layer, LayerConfig, Stateless
from ..param.param import Param
from .inputs import check_dtype


class Identity(Stateless):
    """Gives what it is given."""

    def forward(self, x: Tensor[Any]) -> Tensor[Any]:
        """Return x."""
        return x


class BilinearConfig(LayerConfig["Bilinear"]):
    """Settings of ``Bilinear``.

    Attributes:
        d_first: size of the last axis of the first input.
        d_second: size of that of the second.
        d_output: size of that of the output.
        bias: whether a bias is added.
        initializer: first values of weight and bias.
    """

    d_first: int
    d_second: int
    d_output: int
    bias: bool = True
    initializer: init.Initializer = init.KaimingUniform(init.USUAL_GAIN)

    def parts(self, device: Backend | str | None) -> dict[str, Any]:
        """Return weight and bias."""
        shape = (self.d_output, self.d_first, self.d_second)
        fans = init.Fans(self.d_first, self.d_output)  # by the first alone, as in PyTorch
        bias = self.initializer.param((self.d_output,), device, fans) if self.bias else None
        return {"weight": self.initializer.param(shape, device, fans), "bias": bias}


class Bilinear(takes.Bilinear, Layer[BilinearConfig], init=False):
    """A number for each output from all products of two rows: ``xᵀ · weight[i] · y + bias[i]``.

    weight: (d_output, d_first, d_second); bias: (d_output,) or None.
    """

    weight: Param
    bias: Param | None

    def forward(self, x: Tensor[Float], y: Tensor[Float]) -> Tensor[Float]:
        """Map (…, d_first) and (…, d_second) to (…, d_output)."""
        check_dtype(self, x, self.weight)
        s = self.settings
        table = self.weight.value.reshape(s.d_output, s.d_first * s.d_second)
        pairs = x[..., :, None] * y[..., None, :]
        found = pairs.reshape(*pairs.shape[:-2], s.d_first * s.d_second) @ table.T
        return found if self.bias is None else found + self.bias.value
