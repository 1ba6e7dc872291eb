"""Initializers: configs that make the first values of parameters."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from math import prod, sqrt
from typing import Final, NamedTuple

from phlox_tensor import ArgumentError, Backend, Float, Tensor, as_device, diagonal, full, where
from phlox_tensor.capture import drawing_once
from phlox_tensor.linalg import qr
from phlox_tensor.public import publish
from phlox_tensor.random import (
    Generator,
    generator,
    normal,
    truncated_normal,
    uniform,
    use_generator,
)

from ._elsewhere import INITIALIZERS
from .ids import id_of
from .param.leaf import Role
from .param.param import Param
from .settings.config import Config
from .settings.elsewhere import MADE, squeezed

# Of linear and convolution layers, as PyTorch has it: uniform in ±1 / √fan_in.
USUAL_GAIN: Final = 1 / sqrt(3)


class Fans(NamedTuple):
    """How many inputs feed one output, and how many outputs one input feeds."""

    input: int
    output: int


class Initializer(Config):
    """Base of initializers."""

    @abstractmethod
    def values(self, shape: tuple[int, ...], fans: Fans, device: Backend) -> Tensor[Float]:
        """Return the first values."""

    def param(
        self,
        shape: tuple[int, ...],
        device: Backend | str | None = None,
        fans: Fans | None = None,
        *,
        trainable: bool = True,
        role: Role = "weight",
    ) -> Param:
        """Return a lazy parameter; its random numbers are reserved now, so order of use is free.

        Raises:
            ArgumentError: for a negative size.
        """
        if any(n < 0 for n in shape):
            raise ArgumentError("param", "negative size", got=shape)
        target = as_device(device)
        given = fans or Fans(prod(shape[:-1]), prod(shape[1:]))
        given = Fans(max(given.input, 1), max(given.output, 1))
        # At most two words a value are drawn, four make a block.
        key, counter = generator().draw(prod(shape) // 2 + 1)

        def make() -> Tensor[Float]:
            with use_generator(Generator(key, counter)), drawing_once():
                return self.values(shape, given, target)

        return Param.lazy(
            make,
            shape,
            target.default_float,
            target,
            id=id_of(key, counter),
            trainable=trainable,
            role=role,
        )


class Constant(Initializer):
    """Every value the same."""

    value: float

    def values(self, shape: tuple[int, ...], fans: Fans, device: Backend) -> Tensor[Float]:
        """Return the constant."""
        return full(shape, float(self.value), device=device)


class Zeros(Initializer):
    """Zeros."""

    def values(self, shape: tuple[int, ...], fans: Fans, device: Backend) -> Tensor[Float]:
        """Return zeros."""
        return full(shape, 0.0, device=device)


class Ones(Initializer):
    """Ones."""

    def values(self, shape: tuple[int, ...], fans: Fans, device: Backend) -> Tensor[Float]:
        """Return ones."""
        return full(shape, 1.0, device=device)


class Uniform(Initializer):
    """Uniform in [min, max)."""

    min: float
    max: float

    def values(self, shape: tuple[int, ...], fans: Fans, device: Backend) -> Tensor[Float]:
        """Return uniform values."""
        return uniform(shape, self.min, self.max, device=device)

    def validate(self) -> None:
        """Raise ConfigError for a setting that makes no sense."""
        self.require("max", self.min <= self.max, "at least min")


class Normal(Initializer):
    """Normal with a mean and a standard deviation."""

    mean: float = 0.0
    std: float = 1.0

    def values(self, shape: tuple[int, ...], fans: Fans, device: Backend) -> Tensor[Float]:
        """Return normal values."""
        return normal(shape, self.mean, self.std, device=device)

    def validate(self) -> None:
        """Raise ConfigError for a setting that makes no sense."""
        self.require("std", self.std >= 0, ">= 0")


class TruncatedNormal(Initializer):
    """Normal between two bounds; the standard deviation is that of the whole normal.

    The bounds are values, as PyTorch has them, and no multiples of the standard deviation.
    """

    mean: float = 0.0
    std: float = 1.0
    min: float = -2.0
    max: float = 2.0

    def values(self, shape: tuple[int, ...], fans: Fans, device: Backend) -> Tensor[Float]:
        """Return normal values between the bounds."""
        return truncated_normal(shape, self.min, self.max, self.mean, self.std, device=device)

    def validate(self) -> None:
        """Raise ConfigError for a setting that makes no sense."""
        self.require("std", self.std > 0, "> 0")
        self.require("max", self.min < self.max, "above min")


class KaimingUniform(Initializer):
    """Uniform in ±gain·√(3 / fan), by default for what a ReLU follows. He et al., 2015.

    Linear and convolution layers have a gain of 1 / √3 by default: ±1 / √fan_in.
    """

    gain: float = sqrt(2)
    fan_out_only: bool = False

    def values(self, shape: tuple[int, ...], fans: Fans, device: Backend) -> Tensor[Float]:
        """Return uniform values."""
        bound = self.gain * sqrt(3.0 / (fans.output if self.fan_out_only else fans.input))
        return uniform(shape, -bound, bound, device=device)


class KaimingNormal(Initializer):
    """Normal with standard deviation gain / √fan, by default for what a ReLU follows.

    He et al., 2015.
    """

    gain: float = sqrt(2)
    fan_out_only: bool = False

    def values(self, shape: tuple[int, ...], fans: Fans, device: Backend) -> Tensor[Float]:
        """Return normal values."""
        std = self.gain / sqrt(fans.output if self.fan_out_only else fans.input)
        return normal(shape, 0.0, std, device=device)


class XavierUniform(Initializer):
    """Uniform in ±gain·√(6 / (fan_in + fan_out)). Glorot and Bengio, 2010."""

    gain: float = 1.0

    def values(self, shape: tuple[int, ...], fans: Fans, device: Backend) -> Tensor[Float]:
        """Return uniform values."""
        bound = self.gain * sqrt(6.0 / (fans.input + fans.output))
        return uniform(shape, -bound, bound, device=device)


class XavierNormal(Initializer):
    """Normal with standard deviation gain·√(2 / (fan_in + fan_out)). Glorot and Bengio, 2010."""

    gain: float = 1.0

    def values(self, shape: tuple[int, ...], fans: Fans, device: Backend) -> Tensor[Float]:
        """Return normal values."""
        std = self.gain * sqrt(2.0 / (fans.input + fans.output))
        return normal(shape, 0.0, std, device=device)


class Orthogonal(Initializer):
    """Rows at right angles, each of length ``gain``, or columns where these are fewer.

    Axes behind the first count as one. A vector, such as a bias, becomes 0. Saxe et al., 2013,
    https://arxiv.org/abs/1312.6120
    """

    gain: float = 1.0

    def values(self, shape: tuple[int, ...], fans: Fans, device: Backend) -> Tensor[Float]:
        """Return values that no direction is preferred by."""
        if len(shape) < 2 or 0 in shape:
            return full(shape, 0.0, device=device)
        rows, columns = shape[0], prod(shape[1:])
        drawn = normal((min(rows, columns), max(rows, columns)), device=device)
        found = _orthonormal(drawn.mT)
        return ((found.mT if rows <= columns else found) * self.gain).reshape(shape)


def _orthonormal(columns: Tensor[Float]) -> Tensor[Float]:
    """Columns at right angles, of which none is likelier than another. Mezzadri, 2007."""
    q, r = qr(columns)
    return q * where(diagonal(r) < 0, -1.0, 1.0)


def _elsewhere(name: str) -> Mapping[str, str]:
    made = MADE.get(squeezed(name))
    return {name: made, **INITIALIZERS} if made else INITIALIZERS


publish(__name__, _elsewhere, owner="nn.initializers")
