"""EfficientNet-lite."""

from __future__ import annotations

from math import ceil
from typing import Any, Final

from phlox_tensor import Backend, Float, Tensor

from .. import initializers as init
from ..layers.conv import Conv2d
from ..layers.dropout import Dropout
from ..layers.linear import Linear, LinearConfig
from ..layers.norm import BatchNorm, BatchNormConfig
from ..module.module import Module
from ._conv_parts import conv, even
from ._parts import ModelConfig

# Table 1 of the paper: kernel, stride of the first block, how much wider a block is inside,
# channels, blocks.
_STAGES: Final = (
    (3, 1, 1, 16, 1),
    (3, 2, 6, 24, 2),
    (5, 2, 6, 40, 2),
    (3, 2, 6, 80, 3),
    (5, 1, 6, 112, 3),
    (5, 2, 6, 192, 4),
    (3, 1, 6, 320, 1),
)
_FIRST, _LAST = 32, 1280  # channels that no factor changes in the lite ones


class EfficientNetLiteConfig(ModelConfig):
    """Settings of ``EfficientNetLite``; the defaults are those of the smallest, lite0.

    ``width`` and ``depth`` are 1 and 1.1 for lite1, 1.1 and 1.2 for lite2, 1.2 and 1.4 for lite3,
    1.4 and 1.8 for lite4.

    Attributes:
        width: factor of channels; they stay multiples of 8.
        depth: factor of blocks.
        classes: number of classes.
        dropout: probability that a feature is dropped in training.
        like_tensorflow: whether margins and norms are those of the weights that TensorFlow trained,
            timm's ``tf_efficientnet_lite0`` and its siblings.
    """

    width: float = 1.0
    depth: float = 1.0
    classes: int = 1000
    dropout: float = 0.2
    like_tensorflow: bool = False

    def init(self, device: Backend | str | None = None) -> EfficientNetLite:
        """Return the network with lazy parameters."""
        same = self.like_tensorflow
        before, stages = _FIRST, list[tuple[LiteBlock, ...]]()
        for place, (kernel, stride, wider, channels, count) in enumerate(_STAGES):
            after, blocks = even(channels * self.width), list[LiteBlock]()
            inner = place not in (0, len(_STAGES) - 1)
            for i in range(ceil(count * self.depth) if inner else count):
                sizes = (before, after, kernel, stride if not i else 1, wider)
                blocks.append(self._block(*sizes, device))
                before = after
            stages.append(tuple(blocks))
        return EfficientNetLite(
            conv_stem=conv(3, _FIRST, 3, device, stride=2, same=same),
            bn1=self._norm(_FIRST, device),
            blocks=tuple(stages),
            conv_head=conv(before, _LAST, 1, device, same=same),
            bn2=self._norm(_LAST, device),
            dropout=Dropout(self.dropout, device=device),
            classifier=LinearConfig(_LAST, self.classes, initializer=init.Normal(std=0.01)).init(
                device
            ),
            settings=self,
        )

    def _block(
        self, before: int, after: int, kernel: int, stride: int, wider: int, device: Any
    ) -> LiteBlock:
        inner, same = before * wider, self.like_tensorflow
        deep = conv(inner, inner, kernel, device, stride=stride, groups=inner, same=same)
        last = conv(inner, after, 1, device, same=same)
        adds = stride == 1 and before == after
        norms = [self._norm(channels, device) for channels in (inner, inner, after)]
        if wider == 1:  # of which the first map is none, so that names count from the second
            return LiteBlock(deep, last, norms[1], norms[2], adds=adds)
        first = conv(before, inner, 1, device, same=same)
        return LiteBlock(deep, first, norms[0], norms[1], last, norms[2], adds=adds)

    def _norm(self, channels: int, device: Backend | str | None) -> BatchNorm:
        if self.like_tensorflow:
            return BatchNormConfig(channels, 1e-3, 0.01).init(device)
        return BatchNormConfig(channels).init(device)


class LiteBlock(Module):
    """Wide inside, where each channel is convolved alone; added to its input where it fits.

    Attributes:
        conv_dw: of each channel alone.
        conv_pw: what makes it wide; in the first stage, which is not, the map after it.
        bn1: behind the first convolution.
        bn2: behind the second.
        conv_pwl: the map after it; None in the first stage.
        bn3: behind it.
        adds: whether the input is added.
    """

    conv_dw: Conv2d
    conv_pw: Conv2d
    bn1: BatchNorm
    bn2: BatchNorm
    conv_pwl: Conv2d | None = None
    bn3: BatchNorm | None = None
    adds: bool = False

    def forward(self, x: Tensor[Float]) -> Tensor[Float]:
        """Map (N, C, H, W) to (N, C', H', W')."""
        if self.conv_pwl is None or self.bn3 is None:
            y = self.bn2(self.conv_pw(self.bn1(self.conv_dw(x)).relu6()))
        else:
            y = self.bn1(self.conv_pw(x)).relu6()
            y = self.bn3(self.conv_pwl(self.bn2(self.conv_dw(y)).relu6()))
        return x + y if self.adds else y


class EfficientNetLite(Module):
    """A small network of images without gates, for phones. Tan and Le, 2019 (arXiv 1905.11946).

    Parameters have the names of timm's ``efficientnet_lite0``. In training no block is left out by
    chance, which the paper does.

    Example:
        >>> from phlox_nn import models
        >>> models.EfficientNetLiteConfig().init().num_params()
        4652008
    """

    conv_stem: Conv2d
    bn1: BatchNorm
    blocks: tuple[tuple[LiteBlock, ...], ...]
    conv_head: Conv2d
    bn2: BatchNorm
    dropout: Dropout
    classifier: Linear
    settings: EfficientNetLiteConfig

    def forward(self, images: Tensor[Float]) -> Tensor[Float]:
        """Map (N, 3, H, W) to logits (N, classes)."""
        x = self.bn1(self.conv_stem(images)).relu6()
        for stage in self.blocks:
            for block in stage:
                x = block(x)
        x = self.bn2(self.conv_head(x)).relu6()
        return self.classifier(self.dropout(x.mean(axis=(2, 3))))
