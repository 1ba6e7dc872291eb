"""ConvNeXt."""

from __future__ import annotations

from phlox_tensor import Backend, Float, Tensor

from .. import initializers as init
from ..layers.conv import Conv2d, Conv2dConfig
from ..layers.linear import Linear
from ..layers.norm import LayerNorm, LayerNormConfig
from ..module.module import Module
from ..param.param import Param
from ._parts import ModelConfig, small_linear

_SMALL = init.TruncatedNormal(std=0.02)
_EPSILON = 1e-6


class ConvNextConfig(ModelConfig):
    """Settings of ``ConvNext``; the defaults are those of ConvNeXt-T.

    Attributes:
        channels_in: channels of the images.
        patch: height and width of a patch, each of which becomes a place.
        widths: channels of each stage.
        depths: blocks of each stage.
        classes: number of classes.
        scale: first factor of what a block adds; 0 for none.
        epsilon: of the last norm.
    """

    channels_in: int = 3
    patch: int = 4
    widths: tuple[int, ...] = (96, 192, 384, 768)
    depths: tuple[int, ...] = (3, 3, 9, 3)
    classes: int = 1000
    scale: float = 1e-6
    epsilon: float = 1e-12

    def validate(self) -> None:
        """Raise ConfigError unless each stage has a width and a depth."""
        fits = len(self.widths) == len(self.depths) > 0 and min(self.widths) > 0
        self.require("depths", fits and min(self.depths) > 0, f"one for each of {self.widths}")

    def init(self, device: Backend | str | None = None) -> ConvNext:
        """Return the network with lazy parameters."""
        first, last = self.widths[0], self.widths[-1]
        before = (first, *self.widths)
        stages = tuple(self._stage(i, before[i], device) for i in range(len(self.widths)))
        body = ConvNextBody(
            embeddings=ConvNextPatches(
                patch_embeddings=_conv(self.channels_in, first, self.patch, device),
                layernorm=LayerNormConfig(first, _EPSILON).init(device),
            ),
            encoder=ConvNextStages(stages),
            layernorm=LayerNormConfig(last, self.epsilon).init(device),
        )
        return ConvNext(body, small_linear(last, self.classes, device, _SMALL), self)

    def _stage(self, place: int, before: int, device: Backend | str | None) -> ConvNextStage:
        width, halves = self.widths[place], place > 0
        norm, conv = LayerNormConfig(before, _EPSILON), _conv(before, width, 2, device)
        blocks = tuple(self._block(width, device) for _ in range(self.depths[place]))
        return ConvNextStage((norm.init(device), conv) if halves else (), blocks)

    def _block(self, width: int, device: Backend | str | None) -> ConvNextBlock:
        deep = Conv2dConfig(width, width, 7, padding=3, groups=width, initializer=_SMALL)
        scale = init.Constant(self.scale).param((width,), device) if self.scale else None
        return ConvNextBlock(
            dwconv=deep.init(device),
            layernorm=LayerNormConfig(width, _EPSILON).init(device),
            pwconv1=small_linear(width, 4 * width, device, _SMALL),
            pwconv2=small_linear(4 * width, width, device, _SMALL),
            layer_scale_parameter=scale,
        )


def _conv(channels_in: int, channels_out: int, size: int, device: Backend | str | None) -> Conv2d:
    """A convolution whose windows lie beside each other."""
    return Conv2dConfig(channels_in, channels_out, size, size, initializer=_SMALL).init(device)


def _behind(x: Tensor[Float]) -> Tensor[Float]:
    """Put channels behind the places."""
    return x.permute_dims((0, 2, 3, 1))


def _in_front(x: Tensor[Float]) -> Tensor[Float]:
    """Put channels in front of them."""
    return x.permute_dims((0, 3, 1, 2))


class ConvNextPatches(Module):
    """A vector for each patch of an image, and a norm."""

    patch_embeddings: Conv2d
    layernorm: LayerNorm

    def forward(self, images: Tensor[Float]) -> Tensor[Float]:
        """Map (N, channels, H, W) to (N, C, H / patch, W / patch)."""
        return _in_front(self.layernorm(_behind(self.patch_embeddings(images))))


class ConvNextBlock(Module):
    """A wide window for each channel alone, then two maps of all channels; added to its input."""

    dwconv: Conv2d
    layernorm: LayerNorm
    pwconv1: Linear
    pwconv2: Linear
    layer_scale_parameter: Param | None

    def forward(self, x: Tensor[Float]) -> Tensor[Float]:
        """Map (N, C, H, W) to the same shape."""
        y = self.layernorm(_behind(self.dwconv(x)))
        y = self.pwconv2(self.pwconv1(y).gelu())
        if self.layer_scale_parameter is not None:
            y = y * self.layer_scale_parameter.value
        return x + _in_front(y)


class ConvNextStage(Module):
    """Blocks, in front of which all but the first stage halve height and width."""

    downsampling_layer: tuple[LayerNorm, Conv2d] | tuple[()]
    layers: tuple[ConvNextBlock, ...]

    def forward(self, x: Tensor[Float]) -> Tensor[Float]:
        """Map (N, C, H, W) to (N, C', H', W')."""
        if self.downsampling_layer:
            norm, conv = self.downsampling_layer
            x = conv(_in_front(norm(_behind(x))))
        for layer in self.layers:
            x = layer(x)
        return x


class ConvNextStages(Module):
    """Stages in a row."""

    stages: tuple[ConvNextStage, ...]

    def forward(self, x: Tensor[Float]) -> Tensor[Float]:
        """Map (N, C, H, W) to (N, C', H', W')."""
        for stage in self.stages:
            x = stage(x)
        return x


class ConvNextBody(Module):
    """All but the last map."""

    embeddings: ConvNextPatches
    encoder: ConvNextStages
    layernorm: LayerNorm

    def forward(self, images: Tensor[Float]) -> Tensor[Float]:
        """Map (N, channels, H, W) to vectors (N, C)."""
        return self.layernorm(self.encoder(self.embeddings(images)).mean(axis=(2, 3)))


class ConvNext(Module):
    """A convolutional network in the shape of transformers. Liu et al., 2022 (arXiv 2201.03545).

    Parameters have the names of the published files. In training no block is left out by chance,
    which the paper does.

    Example:
        >>> from phlox_nn import models
        >>> models.ConvNextConfig().init().num_params()
        28589128
    """

    convnext: ConvNextBody
    classifier: Linear
    settings: ConvNextConfig

    def forward(self, images: Tensor[Float]) -> Tensor[Float]:
        """Map (N, channels, H, W) to logits (N, classes)."""
        return self.classifier(self.convnext(images))
