"""Weights on a coarse grid, as a mapper over parameters."""

from __future__ import annotations

from phlox_tensor import ArgumentError, Float, Tensor

from ..settings.config import Config
from .param import Param


def on_grid(parts: Tensor[Float], bits: int, axis: int) -> tuple[Tensor[Float], Tensor[Float]]:
    """Return groups along an axis as integers, in floats, and their scales, sizes of 1 there."""
    top = 2 ** (bits - 1) - 1
    scales = parts.abs().max(axis=axis, keepdims=True) * (1.0 / top)
    return (parts / (scales == 0).where(1.0, scales)).round().clip(-top, top), scales


class WeightQuantizer(Config):
    """A mapper that moves weights to the nearest point of a symmetric grid of integers.

    ``model.map(nn.WeightQuantizer(bits=4, group=32))`` shows what a model loses on such a grid:
    values stay in their type. Vectors, such as biases and norms, stay as they are. Groups lie along
    the last axis of each weight; those of ``quantize_weights`` lie along the inputs of a layer, and
    what they lose shows ``dequantize_weights(quantize_weights(model))``.

    Attributes:
        bits: of the integers; 8 has the points -127 to 127.
        group: how many neighbors on the last axis share a scale; None for the whole axis.

    Example:
        >>> import phlox_nn as nn
        >>> nn.Linear(8, 8).map(nn.WeightQuantizer(bits=8)).num_params()
        72
    """

    bits: int = 8
    group: int | None = None

    def validate(self) -> None:
        """Raise ConfigError for a setting that makes no sense."""
        self.require("bits", 2 <= self.bits <= 16, "2 to 16")
        self.require("group", self.group is None or self.group > 0, "at least 1, or None")

    def __call__(self, path: str, param: Param) -> Param:
        """Return the parameter with its values on the grid.

        Raises:
            ArgumentError: when groups do not divide the last axis.
        """
        if param.role == "state" or len(param.shape) < 2 or param.dtype.kind != "Float":
            return param
        return param.with_value(self.dequantized(*self.quantized(param.value.detach(), path)))

    def quantized(
        self, value: Tensor[Float], path: str = "the tensor"
    ) -> tuple[Tensor[Float], Tensor[Float]]:
        """Return integers (…, groups, group), as floats, and scales (…, groups, 1).

        Raises:
            ArgumentError: when groups do not divide the last axis.
        """
        width = value.shape[-1] if value.shape else 0
        group = width if self.group is None else self.group
        if not width or width % group:
            raise ArgumentError(
                "WeightQuantizer",
                f"groups do not divide the last axis of {path}",
                got=f"{width} values in groups of {group}",
                expected="a divisor",
            )
        return on_grid(value.reshape(*value.shape[:-1], width // group, group), self.bits, -1)

    def dequantized(self, integers: Tensor[Float], scales: Tensor[Float]) -> Tensor[Float]:
        """Return the values that integers and scales stand for, (…, width)."""
        values = integers * scales
        return values.reshape(*values.shape[:-2], values.shape[-2] * values.shape[-1])
