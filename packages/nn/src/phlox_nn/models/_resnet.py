"""Residual networks."""

from __future__ import annotations

from typing import Any

from phlox_tensor import Backend, Float, Tensor, max_pool2d

from ..layers.conv import Conv2d
from ..layers.linear import Linear, LinearConfig
from ..layers.norm import BatchNorm, BatchNormConfig
from ..module.module import Module
from ._conv_parts import FAN_OUT, conv_norm, run
from ._parts import ModelConfig

_WIDER = 4  # how much wider what leaves a bottleneck is than its inside


class ResNetConfig(ModelConfig):
    """Settings of ``ResNet``; the defaults are those of ResNet-18.

    Attributes:
        blocks: how many blocks each of the stages has.
        bottleneck: whether a block is narrow inside.
        classes: number of classes.
        channels_in: channels of the images.
        width: channels of the first stage.
    """

    blocks: tuple[int, ...] = (2, 2, 2, 2)
    bottleneck: bool = False
    classes: int = 1000
    channels_in: int = 3
    width: int = 64

    def validate(self) -> None:
        """Raise ConfigError unless there are four stages."""
        self.require("blocks", len(self.blocks) == 4 and min(self.blocks) > 0, "four counts")

    def init(self, device: Backend | str | None = None) -> ResNet:
        """Return the network with lazy parameters."""
        width, stages, channels = self.width, [], self.width
        for i, count in enumerate(self.blocks):
            inner = width * 2**i
            blocks: list[BasicBlock | Bottleneck] = []
            for j in range(count):
                stride = 2 if i and not j else 1
                make = _bottleneck if self.bottleneck else _basic
                blocks.append(make(channels, inner, stride, device))
                channels = inner * (_WIDER if self.bottleneck else 1)
            stages.append(tuple(blocks))
        return ResNet(
            conv1=Conv2d(
                self.channels_in, width, 7, 2, padding=3, bias=False, initializer=FAN_OUT,
                device=device,
            ),
            bn1=BatchNormConfig(width).init(device),
            layer1=stages[0],
            layer2=stages[1],
            layer3=stages[2],
            layer4=stages[3],
            fc=LinearConfig(channels, self.classes).init(device),
        )  # fmt: skip


def _shortcut(before: int, after: int, stride: int, device: Any) -> tuple[Any, ...] | None:
    if before == after and stride == 1:
        return None
    return conv_norm(before, after, 1, device, stride=stride)


def _basic(before: int, inner: int, stride: int, device: Any) -> BasicBlock:
    conv1, bn1 = conv_norm(before, inner, 3, device, stride=stride)
    conv2, bn2 = conv_norm(inner, inner, 3, device)
    return BasicBlock(conv1, bn1, conv2, bn2, _shortcut(before, inner, stride, device))


def _bottleneck(before: int, inner: int, stride: int, device: Any) -> Bottleneck:
    after = inner * _WIDER
    conv1, bn1 = conv_norm(before, inner, 1, device)
    conv2, bn2 = conv_norm(inner, inner, 3, device, stride=stride)
    conv3, bn3 = conv_norm(inner, after, 1, device)
    downsample = _shortcut(before, after, stride, device)
    return Bottleneck(conv1, bn1, conv2, bn2, conv3, bn3, downsample)


class BasicBlock(Module):
    """Two convolutions, whose result is added to what they are given."""

    conv1: Conv2d
    bn1: BatchNorm
    conv2: Conv2d
    bn2: BatchNorm
    downsample: tuple[Any, ...] | None

    def forward(self, x: Tensor[Float]) -> Tensor[Float]:
        """Map (N, C, H, W) to (N, C', H', W')."""
        y = self.bn1(self.conv1(x)).relu()
        y = self.bn2(self.conv2(y))
        return (y + run(self.downsample or (), x)).relu()


class Bottleneck(Module):
    """A convolution between two of 1 x 1, which make it narrow; the middle one has the stride."""

    conv1: Conv2d
    bn1: BatchNorm
    conv2: Conv2d
    bn2: BatchNorm
    conv3: Conv2d
    bn3: BatchNorm
    downsample: tuple[Any, ...] | None

    def forward(self, x: Tensor[Float]) -> Tensor[Float]:
        """Map (N, C, H, W) to (N, C', H', W')."""
        y = self.bn1(self.conv1(x)).relu()
        y = self.bn2(self.conv2(y)).relu()
        y = self.bn3(self.conv3(y))
        return (y + run(self.downsample or (), x)).relu()


class ResNet(Module):
    """Convolutions in blocks that are added to their input. He et al., 2015.

    Parameters have the names of torchvision's.

    Example:
        >>> from phlox_nn import models
        >>> models.ResNetConfig().init().num_params()
        11689512
    """

    conv1: Conv2d
    bn1: BatchNorm
    layer1: tuple[Any, ...]
    layer2: tuple[Any, ...]
    layer3: tuple[Any, ...]
    layer4: tuple[Any, ...]
    fc: Linear

    def forward(self, images: Tensor[Float]) -> Tensor[Float]:
        """Map (N, channels, H, W) to logits (N, classes)."""
        x = self.bn1(self.conv1(images)).relu()
        x = max_pool2d(x, 3, 2, 1)
        x = run((self.layer1, self.layer2, self.layer3, self.layer4), x)
        return self.fc(x.mean(axis=(2, 3)))


def resnet18(classes: int = 1000, *, device: Backend | str | None = None) -> ResNet:
    """Return ResNet-18: 11.7 million parameters with 1000 classes."""
    return ResNetConfig(classes=classes).init(device)


def resnet50(classes: int = 1000, *, device: Backend | str | None = None) -> ResNet:
    """Return ResNet-50: 25.6 million parameters with 1000 classes."""
    return ResNetConfig((3, 4, 6, 3), True, classes).init(device)
