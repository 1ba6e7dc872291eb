"""Weights that are made of something else whenever they are asked for."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

from phlox_tensor import Backend, DType, Float, Int, Tensor, linear, take

from ._module import Module
from ._param import Param


class MadeWeight(Module):
    """A weight that stands where a layer has a parameter, and is made of others."""

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
        found: Tensor[Any] = take(self.value, indices, axis=0)
        return found

    def linear(self, x: Tensor[Float], bias: Tensor[Float] | None) -> Tensor[Float]:
        """Return ``x @ value + bias``."""
        return linear(x, self.value, bias)
