"""Normalization over groups of channels, over single ones, and over neighbors."""

from __future__ import annotations

from typing import Any

from phlox_tensor import Backend, Float, ShapeError, Tensor, layer_norm, pad

from .. import _signatures as takes
from ..module.layer import Layer, LayerConfig, Stateless
from ..param.param import Param
from .affine import affine
from .inputs import check_dtype, check_several


def _by_groups(layer: Any, x: Tensor[Float], groups: int, channels: int) -> Tensor[Float]:
    """Each group of channels as one row."""
    if x.ndim < 2 or x.shape[1] != channels:
        raise ShapeError(
            type(layer).__name__, "no such channels", got=x.shape, expected=f"(N, {channels}, …)"
        )
    check_dtype(layer, x, layer.weight)
    rows = x.reshape(x.shape[0], groups, x.size // max(x.shape[0] * groups, 1))
    y = layer_norm(rows, None, None, layer.settings.epsilon).reshape(x.shape)
    if layer.weight is None:
        return y
    shape = (channels, *(1,) * (x.ndim - 2))
    y = y * layer.weight.value.reshape(shape)
    return y if layer.bias is None else y + layer.bias.value.reshape(shape)


class GroupNormConfig(LayerConfig["GroupNorm"]):
    """Settings of ``GroupNorm``.

    Attributes:
        num_groups: number of groups, a divisor of the channels.
        num_channels: number of channels.
        epsilon: added to the variance.
        affine: whether there are factor and shift per channel.
        bias: whether there is a shift, where ``affine``.
    """

    num_groups: int
    num_channels: int
    epsilon: float = 1e-5
    affine: bool = True
    bias: bool = True

    def validate(self) -> None:
        """Raise ConfigError unless the groups divide the channels."""
        divides = self.num_groups > 0 and self.num_channels % self.num_groups == 0
        self.require("num_groups", divides, f"a divisor of {self.num_channels} channels")

    def parts(self, device: Backend | str | None) -> dict[str, Any]:
        """Return weight and bias."""
        return affine((self.num_channels,), self.affine, self.bias, device)


class GroupNorm(takes.GroupNorm, Layer[GroupNormConfig], init=False):
    """``(x - mean) / √(var + epsilon) · weight + bias`` of groups of channels of each example.

    weight, bias: (num_channels,), or None.
    Wu and He, 2018, https://arxiv.org/abs/1803.08494
    """

    weight: Param | None
    bias: Param | None

    def forward(self, x: Tensor[Float]) -> Tensor[Float]:
        """Map (N, num_channels, …) to the same shape; a group of one value becomes 0.

        Raises:
            ShapeError: for other channels.
        """
        return _by_groups(self, x, self.settings.num_groups, self.settings.num_channels)


class InstanceNormConfig(LayerConfig["InstanceNorm"]):
    """Settings of ``InstanceNorm``.

    Attributes:
        num_channels: number of channels.
        epsilon: added to the variance.
        affine: whether there are factor and shift per channel.
        bias: whether there is a shift, where ``affine``.
    """

    num_channels: int
    epsilon: float = 1e-5
    affine: bool = False
    bias: bool = True

    def parts(self, device: Backend | str | None) -> dict[str, Any]:
        """Return weight and bias."""
        return affine((self.num_channels,), self.affine, self.bias, device)


class InstanceNorm(takes.InstanceNorm, Layer[InstanceNormConfig], init=False):
    """``(x - mean) / √(var + epsilon) · weight + bias`` of each channel of each example.

    weight, bias: (num_channels,), or None.
    Ulyanov et al., 2016, https://arxiv.org/abs/1607.08022
    """

    weight: Param | None
    bias: Param | None

    def forward(self, x: Tensor[Float]) -> Tensor[Float]:
        """Map (N, num_channels, …) to the same shape.

        Raises:
            ShapeError: for other channels, and for one value of each.
        """
        check_several(self, x, 1)
        return _by_groups(self, x, self.settings.num_channels, self.settings.num_channels)


class LocalResponseNorm(Stateless):
    """Division by ``(k + alpha · mean of squares of neighbors)^beta``.

    Krizhevsky et al., 2012, https://doi.org/10.1145/3065386

    Args:
        size: number of neighboring channels, the channel itself in the middle.
        alpha: factor of the mean of their squares.
        beta: the power.
        k: what is added.
    """

    size: int
    alpha: float = 1e-4
    beta: float = 0.75
    k: float = 1.0

    def _check(self) -> None:
        self.require("size", self.size > 0, "at least 1")

    def forward(self, x: Tensor[Float]) -> Tensor[Float]:
        """Map (N, C, …) to the same shape.

        Raises:
            ShapeError: for fewer than two axes.
        """
        if x.ndim < 2:
            raise ShapeError(type(self).__name__, "no channels", got=x.shape, expected="(N, C, …)")
        s, channels = self.settings, x.shape[1]
        margins = ((s.size // 2, (s.size - 1) // 2), *((0, 0),) * (x.ndim - 2))
        wide = x.to_full_precision()
        squares = pad(wide.square(), margins)
        total = squares[:, :channels]
        for i in range(1, s.size):
            total = total + squares[:, i : i + channels]
        return (wide / (total * (s.alpha / s.size) + s.k) ** s.beta).astype(x.dtype)
