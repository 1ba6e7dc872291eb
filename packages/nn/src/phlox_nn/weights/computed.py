"""Weights that are computed from other parameters at each use (parametrizations)."""

from __future__ import annotations

from abc import abstractmethod

from phlox_tensor import Backend, DType, Float, Int, Tensor, linear, take

from ..module.module import Module
from ..param.param import Param


class ComputedWeight(Module):
    """A weight computed from other parameters at each use, where a layer has a parameter.

    PyTorch calls it a parametrization. A kind of its own says what ``source``, ``value`` and
    ``into_param`` are; its parameters are fields, found, trained and saved as those of any module.
    Where the value has another shape or element type than the source, so have ``shape`` and
    ``dtype``.

    Example:
        >>> import phlox_nn as nn
        >>> class Positive(nn.ComputedWeight):
        ...     logarithm: nn.Param
        ...
        ...     @property
        ...     def source(self):
        ...         return self.logarithm
        ...
        ...     @property
        ...     def value(self):
        ...         return self.logarithm.value.exp()
        ...
        ...     def into_param(self):
        ...         return nn.Param(self.value.detach(), id=self.id)
        >>> layer = nn.Linear(3, 2)
        >>> list(layer.replace(weight=Positive(layer.weight)).params())
        ['weight.logarithm', 'bias']
    """

    @property
    @abstractmethod
    def source(self) -> Param:
        """The parameter whose identity the weight has."""

    @property
    @abstractmethod
    def value(self) -> Tensor[Float]:
        """The weight."""

    @abstractmethod
    def into_param(self) -> Param:
        """Return a parameter of the same identity with the value, to be trained again."""

    @property
    def id(self) -> str:
        """The identity."""
        return self.source.id

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of ``value``."""
        return self.source.shape

    @property
    def dtype(self) -> DType:
        """The element type of ``value``."""
        return self.source.dtype

    @property
    def device(self) -> Backend:
        """Where it is."""
        return self.source.device

    @property
    def trainable(self) -> bool:
        """Whether gradients reach it."""
        return self.source.trainable

    def rows(self, indices: Tensor[Int]) -> Tensor[Float]:
        """Return rows of a matrix by index."""
        return take(self.value, indices, axis=0)

    def linear(self, x: Tensor[Float], bias: Tensor[Float] | None) -> Tensor[Float]:
        """Return ``x @ value + bias``."""
        return linear(x, self.value, bias)

    def transposed_linear(self, x: Tensor[Float]) -> Tensor[Float]:
        """Return ``x @ value.mT``, as of a table of tokens that is the last map too."""
        return x @ self.value.mT
