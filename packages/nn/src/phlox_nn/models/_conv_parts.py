"""What networks of convolutions have in common: parts in a row, a convolution with its norm."""

from __future__ import annotations

from math import sqrt
from typing import Any

from phlox_tensor import Backend

from .. import initializers as init
from ..layers.activation import ActivationConfig, Name
from ..layers.conv import Conv2dConfig
from ..layers.norm import BatchNormConfig

# He et al., 2015, by the outputs: what networks of images are usually started with.
FAN_OUT = init.KaimingNormal(gain=sqrt(2.0), fan_out_only=True)


def run(parts: Any, x: Any) -> Any:
    """Return what the last of nested parts in a row gives."""
    if isinstance(parts, tuple):
        for part in parts:
            x = run(part, x)
        return x
    return parts(x)


def even(channels: float) -> int:
    """The nearest multiple of 8 that is no more than a tenth below."""
    near = max(8, int(channels + 4) // 8 * 8)
    return near if near >= 0.9 * channels else near + 8


def conv(
    channels_in: int,
    channels_out: int,
    kernel: int,
    device: Backend | str | None,
    *,
    stride: int = 1,
    groups: int = 1,
    same: bool = False,
) -> Any:
    """A convolution without bias whose window stands on each of its places.

    ``same``: as TensorFlow pads, which differs with a stride.
    """
    config = Conv2dConfig(
        channels_in,
        channels_out,
        kernel,
        stride,
        groups=groups,
        padding="same" if same else kernel // 2,
        bias=False,
        initializer=FAN_OUT,
    )
    return config.init(device)


def conv_norm(
    channels_in: int,
    channels_out: int,
    kernel: int,
    device: Backend | str | None,
    *,
    stride: int = 1,
    groups: int = 1,
    activation: Name | None = None,
) -> tuple[Any, ...]:
    """The same, batch norm, and an activation if one is named."""
    made = conv(channels_in, channels_out, kernel, device, stride=stride, groups=groups)
    after = () if activation is None else (ActivationConfig(activation).init(device),)
    return (made, BatchNormConfig(channels_out).init(device), *after)
