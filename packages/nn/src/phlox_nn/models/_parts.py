"""What models have in common: heads, parts in a row, a convolution with its norm."""

from __future__ import annotations

from math import sqrt
from typing import Any

from phlox_tensor import Backend, Float, Tensor

from .. import initializers as init
from ..layers.activation import ActivationConfig, Name
from ..layers.conv import Conv2dConfig
from ..layers.norm import BatchNormConfig
from ..settings.config import Config
from ..settings.fields import check_sizes

# He et al., 2015, by the outputs: what networks of images are usually started with.
FAN_OUT = init.KaimingNormal(gain=sqrt(2.0), fan_out_only=True)


class ModelConfig(Config):
    """Base of configs of models, whose sizes mean the same in each."""

    def __post_init__(self) -> None:
        """Check sizes, then all else.

        Raises:
            ConfigError: naming the field.
        """
        check_sizes(self)
        super().__post_init__()


def require_heads(config: Any) -> None:
    """Raise ConfigError unless the heads divide the vector."""
    fits = config.n_heads > 0 and not config.d_model % config.n_heads
    config.require("n_heads", fits, f"a divisor of d_model {config.d_model}")


def heads_of(x: Tensor[Float], heads: int) -> Tensor[Float]:
    """(N, length, d) as (N, heads, length, d / heads)."""
    n, length, d = x.shape
    return x.reshape(n, length, heads, d // heads).swapaxes(1, 2)


def heads_of_one_map(x: Tensor[Float], heads: int) -> tuple[Tensor[Float], ...]:
    """Queries, keys and values (N, heads, length, d / heads), which stand beside each other."""
    n, length, d = x.shape
    parts = x.reshape(n, length, 3, heads, d // (3 * heads))
    return tuple(parts[:, :, i].swapaxes(1, 2) for i in range(3))


def without_heads(x: Tensor[Float]) -> Tensor[Float]:
    """(N, heads, length, size) as (N, length, heads · size)."""
    n, heads, length, size = x.shape
    return x.swapaxes(1, 2).reshape(n, length, heads * size)


def run(parts: Any, x: Any) -> Any:
    """Return what the last of nested parts in a row gives."""
    if isinstance(parts, tuple):
        for part in parts:
            x = run(part, x)
        return x
    return parts(x)


def conv(
    channels_in: int,
    channels_out: int,
    kernel: int,
    device: Backend | str | None,
    *,
    stride: int = 1,
    groups: int = 1,
) -> Any:
    """A convolution without bias whose window stands on each of its places."""
    config = Conv2dConfig(
        channels_in,
        channels_out,
        kernel,
        stride,
        groups=groups,
        padding=kernel // 2,
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
