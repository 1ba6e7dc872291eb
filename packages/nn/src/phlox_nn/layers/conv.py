"""Convolutions of lines, images and volumes, transposed ones, and those whose windows are bent."""

from __future__ import annotations

from dataclasses import KW_ONLY
from math import prod
from typing import Any, ClassVar, Final, Generic, TypeVar

from phlox_tensor import Backend, Float, ShapeError, Tensor, deform_conv2d

from .. import _signatures as takes
from .. import initializers as init
from ..module.layer import C, L, Layer, LayerConfig
from ..param.param import Param
from .inputs import check_dtype, value_of
from .window import Padding, Padding1d, Padding3d, Pair, Single, Triple, as_sizes, margins, ops_of

Size = TypeVar("Size")
Pads = TypeVar("Pads")

_OPS: Final = ops_of("conv{}d")
_TRANSPOSED: Final = ops_of("conv_transpose{}d")


class _Settings(LayerConfig[L]):
    _axes: ClassVar[int]
    _transposed: ClassVar[bool] = False

    channels_in: int
    channels_out: int

    def validate(self) -> None:
        """Raise ConfigError unless the groups divide the channels."""
        s: Any = self
        ins, outs = s.channels_in, s.channels_out
        divided = s.groups > 0 and not (ins % s.groups or outs % s.groups)
        self.require("groups", divided, f"groups that divide the channels {ins} and {outs}")

    def parts(self, device: Backend | str | None) -> dict[str, Any]:
        """Return weight and bias; a transposed one has its inputs first, as in PyTorch."""
        s: Any = self
        kernel = as_sizes(s.kernel_size, self._axes)
        sizes = (s.channels_out, s.channels_in)
        first, second = sizes[::-1] if self._transposed else sizes
        second //= s.groups
        area = prod(kernel)
        fans = init.Fans(second * area, first // s.groups * area)
        bias = s.initializer.param((s.channels_out,), device, fans) if s.bias else None
        return {"weight": s.initializer.param((first, second, *kernel), device, fans), "bias": bias}


class _ConvSettings(_Settings[L], Generic[L, Size, Pads]):
    """Settings of a convolution.

    Attributes:
        channels_in: channels of the input.
        channels_out: channels of the output.
        kernel_size: size of the window, for all axes or each.
        stride: steps of the window.
        padding: ``"valid"``, ``"same"``, or sizes: one, one for each axis, or (before, after).
        dilation: distance between the window's elements.
        groups: groups of channels that do not mix.
        bias: whether a bias per channel is added.
        initializer: first values of weight and bias.
    """

    kernel_size: Size
    stride: Size = 1  # type: ignore[assignment]  # of each
    padding: Pads = "valid"  # type: ignore[assignment]  # a word of each
    dilation: Size = 1  # type: ignore[assignment]  # of each
    groups: int = 1
    bias: bool = True
    _: KW_ONLY
    initializer: init.Initializer = init.KaimingUniform(init.USUAL_GAIN)


class _Conv(Layer[C]):
    weight: Param
    bias: Param | None

    def forward(self, x: Tensor[Float]) -> Tensor[Float]:
        """Map (N, channels_in, …) to (N, channels_out, …).

        Raises:
            DTypeError: for input of another type than the weights.
            ShapeError: for other channels or axes.
        """
        check_dtype(self, x, self.weight)
        s: Any = self.settings
        weight, bias = self.weight.value, value_of(self.bias)
        if s._transposed:
            sizes, op = (s.stride, s.padding, s.padding_out), _TRANSPOSED[s._axes]
            return op(x, weight, bias, *sizes, dilation=s.dilation, groups=s.groups)
        padding = margins(s.padding, x.shape, s._axes, s.kernel_size, s.stride, s.dilation)
        return _OPS[s._axes](x, weight, bias, s.stride, padding, s.dilation, s.groups)


class Conv1dConfig(_ConvSettings["Conv1d", Single, Padding1d]):
    """Settings of ``Conv1d``."""

    _axes = 1


class Conv1d(takes.Conv1d, _Conv[Conv1dConfig], init=False):
    """Cross-correlation of lines with learned windows.

    weight: (channels_out, channels_in / groups, k); bias: (channels_out,) or None.
    """


class Conv2dConfig(_ConvSettings["Conv2d", Pair, Padding]):
    """Settings of ``Conv2d``."""

    _axes = 2


class Conv2d(takes.Conv2d, _Conv[Conv2dConfig], init=False):
    """Cross-correlation: ``y[o, i, j] = Σ x[c, i + h, j + w] · weight[o, c, h, w] + bias[o]``.

    weight: (channels_out, channels_in / groups, height, width); bias: (channels_out,) or None.
    """


class Conv3dConfig(_ConvSettings["Conv3d", Triple, Padding3d]):
    """Settings of ``Conv3d``."""

    _axes = 3


class Conv3d(takes.Conv3d, _Conv[Conv3dConfig], init=False):
    """Cross-correlation of volumes with learned windows.

    weight: (channels_out, channels_in / groups, kd, kh, kw); bias: (channels_out,) or None.
    """


class _TransposedSettings(_Settings[L], Generic[L, Size]):
    """Settings of a transposed convolution.

    Attributes:
        channels_in: channels of the input.
        channels_out: channels of the output.
        kernel_size: size of the window, for all axes or each.
        stride: distance between neighbors of the input in the output.
        padding: what is cut off at each side.
        padding_out: what is added at the end of each axis.
        groups: groups of channels that do not mix.
        bias: whether a bias per channel is added.
        dilation: distance between the window's elements.
        initializer: first values of weight and bias.
    """

    _transposed = True

    kernel_size: Size
    stride: Size = 1  # type: ignore[assignment]  # of each
    padding: Size = 0  # type: ignore[assignment]  # of each
    padding_out: Size = 0  # type: ignore[assignment]  # of each
    groups: int = 1
    bias: bool = True
    dilation: Size = 1  # type: ignore[assignment]  # of each
    _: KW_ONLY
    initializer: init.Initializer = init.KaimingUniform(init.USUAL_GAIN)


class ConvTranspose1dConfig(_TransposedSettings["ConvTranspose1d", Single]):
    """Settings of ``ConvTranspose1d``."""

    _axes = 1


class ConvTranspose1d(takes.ConvTranspose1d, _Conv[ConvTranspose1dConfig], init=False):
    """Transposed convolution of lines: each element adds its window to the output.

    weight: (channels_in, channels_out / groups, k); bias: (channels_out,) or None.
    """


class ConvTranspose2dConfig(_TransposedSettings["ConvTranspose2d", Pair]):
    """Settings of ``ConvTranspose2d``."""

    _axes = 2


class ConvTranspose2d(takes.ConvTranspose2d, _Conv[ConvTranspose2dConfig], init=False):
    """Transposed convolution of images: each element adds its window to the output.

    weight: (channels_in, channels_out / groups, kh, kw); bias: (channels_out,) or None.
    """


class ConvTranspose3dConfig(_TransposedSettings["ConvTranspose3d", Triple]):
    """Settings of ``ConvTranspose3d``."""

    _axes = 3


class ConvTranspose3d(takes.ConvTranspose3d, _Conv[ConvTranspose3dConfig], init=False):
    """Transposed convolution of volumes: each element adds its window to the output.

    weight: (channels_in, channels_out / groups, kd, kh, kw); bias: (channels_out,) or None.
    """


class DeformConv2dConfig(_Settings["DeformConv2d"]):
    """Settings of ``DeformConv2d``.

    Attributes:
        channels_in: channels of the input.
        channels_out: channels of the output.
        kernel_size: height and width of the window.
        stride: steps of the window.
        padding: ``"valid"``, ``"same"``, or sizes.
        dilation: distance between the window's elements.
        groups: groups of channels that do not mix.
        bias: whether a bias per channel is added.
        offset_groups: groups of channels with offsets of their own.
        initializer: first values of weight and bias.
    """

    _axes = 2

    kernel_size: Pair
    stride: Pair = 1
    padding: Padding = "valid"
    dilation: Pair = 1
    groups: int = 1
    bias: bool = True
    _: KW_ONLY
    offset_groups: int = 1
    initializer: init.Initializer = init.KaimingUniform(init.USUAL_GAIN)

    def validate(self) -> None:
        """Raise ConfigError unless the groups divide the channels."""
        super().validate()
        divided = self.offset_groups > 0 and not self.channels_in % self.offset_groups
        self.require("offset_groups", divided, f"a divisor of the channels {self.channels_in}")


class DeformConv2d(takes.DeformConv2d, Layer[DeformConv2dConfig], init=False):
    """Cross-correlation of images whose windows read each place at an offset of its own.

    Offsets and masks are given with the images: another layer makes them. weight: (channels_out,
    channels_in / groups, height, width); bias: (channels_out,) or None. Dai et al., 2017
    (https://arxiv.org/abs/1703.06211); with a mask Zhu et al., 2018.
    """

    weight: Param
    bias: Param | None

    def forward(
        self, x: Tensor[Float], offset: Tensor[Float], mask: Tensor[Float] | None = None
    ) -> Tensor[Float]:
        """Map (N, channels_in, H, W) to (N, channels_out, H', W').

        Args:
            x: images.
            offset: (N, 2 · offset_groups · height · width, H', W'), rows before columns.
            mask: (N, offset_groups · height · width, H', W'), factors of what is read.

        Raises:
            ShapeError: when the offsets are of another number of groups.
        """
        check_dtype(self, x, self.weight)
        s = self.settings
        height, width = as_sizes(s.kernel_size, 2)
        channels = 2 * s.offset_groups * height * width
        if offset.ndim != 4 or offset.shape[1] != channels:
            expected = f"(N, {channels}, H', W')"
            raise ShapeError("DeformConv2d", "no such offsets", got=offset.shape, expected=expected)
        padding = margins(s.padding, x.shape, 2, s.kernel_size, s.stride, s.dilation)
        bias = value_of(self.bias)
        weight = self.weight.value
        return deform_conv2d(x, offset, weight, mask, bias, s.stride, padding, s.dilation, s.groups)
