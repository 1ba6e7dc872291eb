"""Convolution layers and pools over images (N, C, H, W)."""

from __future__ import annotations

from typing import Literal

from phlox_tensor import (
    ArgumentError,
    Backend,
    Float,
    Tensor,
    avg_pool2d,
    conv2d,
    max_pool2d,
    pad,
)

from . import initializers as init
from ._config import Config
from ._module import Module
from ._param import Param

Pair = int | tuple[int, int]
Sides = tuple[tuple[int, int], tuple[int, int]]
Padding = Literal["same", "valid"] | int | tuple[int, int] | Sides


def as_pair(value: Pair) -> tuple[int, int]:
    """Return (height, width)."""
    return (value, value) if isinstance(value, int) else value


def sides(
    padding: Padding, size: tuple[int, int], kernel: Pair, stride: Pair, dilation: Pair
) -> Sides:
    """Return ((top, bottom), (left, right)) for images of this size.

    ``"same"`` gives ceil(size / stride) positions; the odd one goes to the end.

    Raises:
        ArgumentError: for an unknown word.
    """
    if isinstance(padding, str):
        if padding == "valid":
            return (0, 0), (0, 0)
        if padding != "same":
            raise ArgumentError(
                "conv2d", "unknown padding", got=repr(padding), expected="'same', 'valid' or sizes"
            )
        height, width = (
            _same(n, k, s, d)
            for n, k, s, d in zip(
                size, as_pair(kernel), as_pair(stride), as_pair(dilation), strict=True
            )
        )
        return height, width
    if isinstance(padding, int):
        return (padding, padding), (padding, padding)
    top, left = padding
    if isinstance(top, int):
        assert isinstance(left, int)
        return (top, top), (left, left)
    assert not isinstance(left, int)
    return top, left


def _same(n: int, kernel: int, stride: int, dilation: int) -> tuple[int, int]:
    positions = -(-n // stride)
    total = max(0, (positions - 1) * stride + dilation * (kernel - 1) + 1 - n)
    return total // 2, total - total // 2


class Conv2dConfig(Config):
    """Settings of ``Conv2d``.

    Attributes:
        channels_in: channels of the input.
        channels_out: channels of the output.
        kernel_size: height and width of the window.
        stride: steps of the window.
        dilation: distance between the window's elements.
        groups: groups of channels that do not mix.
        padding: ``"valid"``, ``"same"``, or sizes.
        bias: whether a bias per channel is added.
        initializer: first values of weight and bias.
    """

    channels_in: int
    channels_out: int
    kernel_size: Pair
    stride: Pair = 1
    dilation: Pair = 1
    groups: int = 1
    padding: Padding = "valid"
    bias: bool = True
    initializer: init.AnyInitializer = init.KaimingUniform()

    def init(self, device: Backend | str | None = None) -> Conv2d:
        """Return the layer with lazy parameters on ``device``.

        Raises:
            ArgumentError: when groups do not divide the channels.
        """
        if self.groups < 1 or self.channels_in % self.groups or self.channels_out % self.groups:
            raise ArgumentError(
                "conv2d",
                "groups do not divide the channels",
                got=f"{self.channels_in} -> {self.channels_out}, groups {self.groups}",
            )
        height, width = as_pair(self.kernel_size)
        inputs = self.channels_in // self.groups
        area = height * width
        fans = init.Fans(inputs * area, self.channels_out // self.groups * area)
        shape = (self.channels_out, inputs, height, width)
        bias = self.initializer.param((self.channels_out,), device, fans) if self.bias else None
        return Conv2d.from_fields(
            weight=self.initializer.param(shape, device, fans),
            bias=bias,
            stride=self.stride,
            dilation=self.dilation,
            groups=self.groups,
            padding=self.padding,
        )


class Conv2d(Module):
    """Cross-correlation of images with learned kernels.

    weight: (channels_out, channels_in / groups, height, width); bias: (channels_out,) or None.
    """

    config = Conv2dConfig
    weight: Param
    bias: Param | None
    stride: Pair
    dilation: Pair
    groups: int
    padding: Padding

    def forward(self, x: Tensor[Float]) -> Tensor[Float]:
        """Map (N, channels_in, H, W) to (N, channels_out, H', W')."""
        kernel = (self.weight.shape[2], self.weight.shape[3])
        size = (x.shape[-2], x.shape[-1]) if x.ndim > 1 else (1, 1)
        return conv2d(
            x,
            self.weight.value,
            None if self.bias is None else self.bias.value,
            self.stride,
            sides(self.padding, size, kernel, self.stride, self.dilation),
            self.dilation,
            self.groups,
        )


class MaxPool2dConfig(Config):
    """Settings of ``MaxPool2d``; the stride is the kernel by default."""

    kernel_size: Pair
    stride: Pair | None = None
    padding: Padding = "valid"
    dilation: Pair = 1
    ceil_mode: bool = False

    def init(self, device: Backend | str | None = None) -> MaxPool2d:
        """Return the layer; it has no parameters."""
        del device
        return MaxPool2d.from_fields(settings=self)


class MaxPool2d(Module):
    """Largest element of each window of (N, C, H, W)."""

    config = MaxPool2dConfig
    settings: MaxPool2dConfig

    def forward(self, x: Tensor[Float]) -> Tensor[Float]:
        """Map (N, C, H, W) to (N, C, H', W')."""
        s = self.settings
        x, margins = _room(x, s.padding, s.kernel_size, s.stride, s.dilation, float("-inf"))
        return max_pool2d(x, s.kernel_size, s.stride, margins, s.dilation, s.ceil_mode)


class AvgPool2dConfig(Config):
    """Settings of ``AvgPool2d``; the stride is the kernel by default."""

    kernel_size: Pair
    stride: Pair | None = None
    padding: Padding = "valid"
    ceil_mode: bool = False
    count_include_pad: bool = True

    def init(self, device: Backend | str | None = None) -> AvgPool2d:
        """Return the layer; it has no parameters."""
        del device
        return AvgPool2d.from_fields(settings=self)


class AvgPool2d(Module):
    """Mean of each window of (N, C, H, W)."""

    config = AvgPool2dConfig
    settings: AvgPool2dConfig

    def forward(self, x: Tensor[Float]) -> Tensor[Float]:
        """Map (N, C, H, W) to (N, C, H', W')."""
        s = self.settings
        size = (x.shape[-2], x.shape[-1])
        margins = sides(s.padding, size, s.kernel_size, s.stride or s.kernel_size, 1)
        return avg_pool2d(x, s.kernel_size, s.stride, margins, s.ceil_mode, s.count_include_pad)


def _room(
    x: Tensor[Float],
    padding: Padding,
    kernel: Pair,
    stride: Pair | None,
    dilation: Pair,
    value: float,
) -> tuple[Tensor[Float], Sides]:
    """Margins for the op, which takes at most half the kernel; larger ones are filled here."""
    size = (x.shape[-2], x.shape[-1])
    margins = sides(padding, size, kernel, stride or kernel, dilation)
    if all(max(m) <= k // 2 for m, k in zip(margins, as_pair(kernel), strict=True)):
        return x, margins
    return pad(x, margins, value), ((0, 0), (0, 0))
