"""Axes, channels and pixels in another order: layers without parameters."""

from __future__ import annotations

from phlox_tensor import (
    Float,
    Tensor,
    channel_shuffle,
    flatten,
    pixel_shuffle,
    pixel_unshuffle,
    unflatten,
)

from ..module.layer import Stateless


class ChannelShuffle(Stateless):
    """Channels dealt out over groups, the first of each first.

    Zhang et al., 2017, https://arxiv.org/abs/1707.01083

    Args:
        groups: over how many groups the channels are dealt out.
    """

    groups: int

    def forward(self, x: Tensor[Float]) -> Tensor[Float]:
        """Map (N, C, …) to the same shape."""
        return channel_shuffle(x, self.groups)


class Flatten(Stateless):
    """Several axes as one; by default all but the first, which counts examples.

    Args:
        start_axis: the first axis that becomes part of the one.
        end_axis: the last.
    """

    start_axis: int = 1
    end_axis: int = -1

    def forward(self, x: Tensor[Float]) -> Tensor[Float]:
        """Map (N, *axes) to (N, their product)."""
        return flatten(x, self.start_axis, self.end_axis)


class Unflatten(Stateless):
    """One axis as several: what ``Flatten`` takes back.

    Args:
        axis: the axis that becomes several.
        sizes: their sizes; one of them may be -1.
    """

    axis: int
    sizes: tuple[int, ...]

    def forward(self, x: Tensor[Float]) -> Tensor[Float]:
        """Map (…, n, …) to (…, *sizes, …)."""
        return unflatten(x, self.axis, self.sizes)


class PixelShuffle(Stateless):
    """Channels as pixels: (…, C · r², H, W) to (…, C, H · r, W · r).

    Shi et al., 2016, https://arxiv.org/abs/1609.05158

    Args:
        factor: how many times as high and wide images become.
    """

    factor: int

    def _check(self) -> None:
        self.require("factor", self.factor > 0, "at least 1")

    def forward(self, x: Tensor[Float]) -> Tensor[Float]:
        """Map (…, C · r², H, W) to (…, C, H · r, W · r)."""
        return pixel_shuffle(x, self.factor)


class PixelUnshuffle(Stateless):
    """Pixels as channels: what ``PixelShuffle`` takes back.

    Args:
        factor: how many times as low and narrow images become.
    """

    factor: int

    def _check(self) -> None:
        self.require("factor", self.factor > 0, "at least 1")

    def forward(self, x: Tensor[Float]) -> Tensor[Float]:
        """Map (…, C, H · r, W · r) to (…, C · r², H, W)."""
        return pixel_unshuffle(x, self.factor)
