"""Linear layers and embeddings."""

from __future__ import annotations

from typing import Any

from phlox_tensor import Backend, Float, Int, Tensor, linear, take

from . import initializers as init
from ._config import Config
from ._module import Module
from ._param import Param


class LinearConfig(Config):
    """Settings of ``Linear``.

    Attributes:
        d_input: size of the last axis of the input.
        d_output: size of the last axis of the output.
        bias: whether a bias is added.
        initializer: first values of weight and bias.
    """

    d_input: int
    d_output: int
    bias: bool = True
    initializer: init.AnyInitializer = init.KaimingUniform()

    def init(self, device: Backend | str | None = None) -> Linear:
        """Return the layer with lazy parameters on ``device``."""
        fans = init.Fans(self.d_input, self.d_output)
        weight = self.initializer.param((self.d_input, self.d_output), device, fans)
        bias = self.initializer.param((self.d_output,), device, fans) if self.bias else None
        return Linear.from_fields(weight=weight, bias=bias)


class Linear(Module):
    """Affine map of the last axis: ``x @ weight + bias``.

    weight: (d_input, d_output); bias: (d_output,) or None.
    """

    config = LinearConfig
    weight: Param
    bias: Param | None

    def forward(self, x: Tensor[Float]) -> Tensor[Float]:
        """Map (…, d_input) to (…, d_output)."""
        bias = None if self.bias is None else self.bias.value
        return linear(x, self.weight.value, bias)


class EmbeddingConfig(Config):
    """Settings of ``Embedding``.

    Attributes:
        n_embedding: number of rows, one per index.
        d_model: length of a row.
        initializer: first values of the rows.
    """

    n_embedding: int
    d_model: int
    initializer: init.AnyInitializer = init.Normal()

    def init(self, device: Backend | str | None = None) -> Embedding:
        """Return the layer with a lazy weight on ``device``."""
        weight = self.initializer.param((self.n_embedding, self.d_model), device)
        return Embedding.from_fields(weight=weight)


class Embedding(Module):
    """Rows of a table by index.

    weight: (n_embedding, d_model).
    """

    config = EmbeddingConfig
    weight: Param

    def forward(self, indices: Tensor[Int]) -> Tensor[Any]:
        """Map indices (…) to rows (…, d_model).

        Raises:
            IndexOutOfRangeError: when an index has no row.
        """
        return take(self.weight.value, indices, axis=0)
