"""U-Net."""

from __future__ import annotations

from typing import Any

from phlox_tensor import Backend, Float, Tensor, concat, max_pool2d, pad

from ..layers.conv import Conv2d, ConvTranspose2d
from ..module.module import Module
from ._conv_parts import conv_norm, run
from ._parts import ModelConfig


class UNetConfig(ModelConfig):
    """Settings of ``UNet``.

    Attributes:
        channels_in: channels of the images.
        classes: number of classes of a pixel.
        width: channels at full size; each of the four levels below has twice as many.
    """

    channels_in: int = 3
    classes: int = 2
    width: int = 64

    def init(self, device: Backend | str | None = None) -> UNet:
        """Return the network with lazy parameters."""
        widths = [self.width * 2**i for i in range(5)]

        def double(before: int, after: int) -> Double:
            first = conv_norm(before, after, 3, device, activation="relu")
            return Double((*first, *conv_norm(after, after, 3, device, activation="relu")))

        def up(level: int) -> Up:
            before, after = widths[level], widths[level - 1]
            return Up(
                ConvTranspose2d(before, after, 2, stride=2, device=device), double(before, after)
            )

        return UNet(
            inc=double(self.channels_in, widths[0]),
            down1=Down(double(widths[0], widths[1])),
            down2=Down(double(widths[1], widths[2])),
            down3=Down(double(widths[2], widths[3])),
            down4=Down(double(widths[3], widths[4])),
            up1=up(4),
            up2=up(3),
            up3=up(2),
            up4=up(1),
            outc=Out(Conv2d(widths[0], self.classes, 1, device=device)),
        )


class Double(Module):
    """Two convolutions, each with norm and relu."""

    double_conv: tuple[Any, ...]

    def forward(self, x: Tensor[Float]) -> Tensor[Float]:
        """Map (N, C, H, W) to (N, C', H, W)."""
        return run(self.double_conv, x)


class Down(Module):
    """Half the size, and two convolutions."""

    conv: Double

    def forward(self, x: Tensor[Float]) -> Tensor[Float]:
        """Map (N, C, H, W) to (N, 2C, H / 2, W / 2)."""
        return self.conv(max_pool2d(x, 2))


class Up(Module):
    """Twice the size, beside what the way down had there, and two convolutions."""

    up: ConvTranspose2d
    conv: Double

    def forward(self, x: Tensor[Float], beside: Tensor[Float]) -> Tensor[Float]:
        """Map (N, 2C, H, W) and (N, C, H', W') to (N, C, H', W')."""
        y = self.up(x)
        rows, columns = (a - b for a, b in zip(beside.shape[2:], y.shape[2:], strict=True))
        if rows or columns:  # halves of odd sizes
            sides = ((rows // 2, rows - rows // 2), (columns // 2, columns - columns // 2))
            y = pad(y, sides)
        return self.conv(concat((beside, y), axis=1))


class Out(Module):
    """A map of the channels of each pixel."""

    conv: Conv2d

    def forward(self, x: Tensor[Float]) -> Tensor[Float]:
        """Map (N, C, H, W) to (N, classes, H, W)."""
        return self.conv(x)


class UNet(Module):
    """A class for each pixel: down four levels, and up again beside them. Ronneberger et al., 2015.

    Images of any size of at least 16 x 16 keep it: convolutions are padded.

    Example:
        >>> from phlox_nn import models
        >>> models.UNetConfig(3, 2).init().num_params()
        31037698
    """

    inc: Double
    down1: Down
    down2: Down
    down3: Down
    down4: Down
    up1: Up
    up2: Up
    up3: Up
    up4: Up
    outc: Out

    def forward(self, images: Tensor[Float]) -> Tensor[Float]:
        """Map (N, channels, H, W) to logits (N, classes, H, W)."""
        x1 = self.inc(images)
        x2 = self.down1(x1)
        x3 = self.down2(x2)
        x4 = self.down3(x3)
        x = self.up1(self.down4(x4), x4)
        x = self.up2(x, x3)
        x = self.up3(x, x2)
        return self.outc(self.up4(x, x1))
