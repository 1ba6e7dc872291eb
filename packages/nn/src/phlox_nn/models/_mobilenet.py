"""MobileNet V2."""

from __future__ import annotations

from typing import Any

from phlox_tensor import Backend, Float, Tensor

from .. import initializers as init
from ..layers.dropout import Dropout
from ..layers.linear import LinearConfig
from ..layers.norm import BatchNormConfig
from ..module.module import Module
from ._conv_parts import conv, conv_norm, even, run
from ._parts import ModelConfig

# Table 2 of the paper: how much wider a block is inside, channels, blocks, stride of the first.
_STAGES = (
    (1, 16, 1, 1),
    (6, 24, 2, 2),
    (6, 32, 3, 2),
    (6, 64, 4, 2),
    (6, 96, 3, 1),
    (6, 160, 3, 2),
    (6, 320, 1, 1),
)


class MobileNetV2Config(ModelConfig):
    """Settings of ``MobileNetV2``.

    Attributes:
        classes: number of classes.
        width: factor of all channels; they stay multiples of 8.
        dropout: probability that a feature is dropped in training.
    """

    classes: int = 1000
    width: float = 1.0
    dropout: float = 0.2

    def init(self, device: Backend | str | None = None) -> MobileNetV2:
        """Return the network with lazy parameters."""
        channels, last = even(32 * self.width), even(1280 * max(1.0, self.width))
        parts: list[Any] = [conv_norm(3, channels, 3, device, stride=2, activation="relu6")]
        for wider, wanted, count, stride in _STAGES:
            after = even(wanted * self.width)
            for i in range(count):
                parts.append(_block(channels, after, stride if not i else 1, wider, device))
                channels = after
        parts.append(conv_norm(channels, last, 1, device, activation="relu6"))
        linear = LinearConfig(last, self.classes, initializer=init.Normal(std=0.01)).init(device)
        return MobileNetV2(tuple(parts), (Dropout(self.dropout, device=device), linear))


def _block(before: int, after: int, stride: int, wider: int, device: Any) -> InvertedResidual:
    inner = before * wider
    parts: list[Any] = []
    if wider != 1:
        parts.append(conv_norm(before, inner, 1, device, activation="relu6"))
    parts.append(
        conv_norm(inner, inner, 3, device, stride=stride, groups=inner, activation="relu6")
    )
    parts += [conv(inner, after, 1, device), BatchNormConfig(after).init(device)]
    return InvertedResidual(tuple(parts), stride == 1 and before == after)


class InvertedResidual(Module):
    """Wide inside, where each channel is convolved alone; added to its input where it fits."""

    conv: tuple[Any, ...]
    adds: bool

    def forward(self, x: Tensor[Float]) -> Tensor[Float]:
        """Map (N, C, H, W) to (N, C', H', W')."""
        y: Tensor[Float] = run(self.conv, x)
        return x + y if self.adds else y


class MobileNetV2(Module):
    """A small network of images. Sandler et al., 2018. Parameters have the names of torchvision's.

    Example:
        >>> from phlox_nn import models
        >>> models.MobileNetV2Config().init().num_params()
        3504872
    """

    features: tuple[Any, ...]
    classifier: tuple[Any, ...]

    def forward(self, images: Tensor[Float]) -> Tensor[Float]:
        """Map (N, 3, H, W) to logits (N, classes)."""
        x: Tensor[Float] = run(self.features, images)
        return run(self.classifier, x.mean(axis=(2, 3)))
