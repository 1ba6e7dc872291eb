"""Embeddings: rows of a table by index."""

from __future__ import annotations

from dataclasses import KW_ONLY
from typing import Any, Literal

from phlox_tensor import (
    ArgumentError,
    Backend,
    Float,
    Int,
    Tensor,
    embedding_bag,
    logical_or,
    take,
    where,
)

from .. import _signatures as takes
from .. import initializers as init
from ..module.layer import Layer, LayerConfig
from ..param.param import Param


class EmbeddingConfig(LayerConfig["Embedding"]):
    """Settings of ``Embedding``.

    Attributes:
        n_embedding: number of rows, one per index.
        d_model: length of a row.
        padding_idx: a row that starts as zeros and is not trained, that of what fills sequences
            up; a negative one counts from the end.
        initializer: first values of the rows.
    """

    n_embedding: int
    d_model: int
    padding_idx: int | None = None
    _: KW_ONLY
    initializer: init.Initializer = init.Normal()

    def validate(self) -> None:
        """Raise ConfigError unless ``padding_idx`` is a row."""
        rows, place = self.n_embedding, self.padding_idx
        fits = place is None or -rows <= place < rows
        self.require("padding_idx", fits, f"a row: {-rows} <= padding_idx < {rows}")

    def parts(self, device: Backend | str | None) -> dict[str, Any]:
        """Return the weight."""
        weight = self.initializer.param((self.n_embedding, self.d_model), device)
        if (row := self.padding_idx) is not None:
            weight = weight.moved(lambda rows: rows.at[row].set(0.0), weight.device)
        return {"weight": weight}


class Embedding(takes.Embedding, Layer[EmbeddingConfig], init=False):
    """Rows of a table by index.

    weight: (n_embedding, d_model).
    """

    weight: Param

    def forward(self, indices: Tensor[Int]) -> Tensor[Float]:
        """Map indices (…) to rows (…, d_model).

        Negative ones count from the end, as in ``px.take``.

        Raises:
            IndexOutOfRangeError: when an index has no row.
        """
        weight: Any = self.weight
        plain = type(weight) is Param  # and not made of something else
        rows: Any = take(weight.value, indices, axis=0) if plain else weight.rows(indices)
        filler = self.settings.padding_idx
        if filler is not None:
            count = self.settings.n_embedding
            filled = logical_or(indices == filler % count, indices == filler % count - count)
            rows = where(filled[..., None], rows.detach(), rows)
        return rows


class EmbeddingBagConfig(LayerConfig["EmbeddingBag"]):
    """Settings of ``EmbeddingBag``.

    Attributes:
        n_embedding: number of rows, one per index.
        d_model: length of a row.
        mode: what becomes of the rows of a bag.
        initializer: first values of the rows.
    """

    n_embedding: int
    d_model: int
    mode: Literal["mean", "sum", "max"] = "mean"
    initializer: init.Initializer = init.Normal()

    def parts(self, device: Backend | str | None) -> dict[str, Any]:
        """Return the weight."""
        return {"weight": self.initializer.param((self.n_embedding, self.d_model), device)}


class EmbeddingBag(takes.EmbeddingBag, Layer[EmbeddingBagConfig], init=False):
    """Mean, sum or largest of the rows of a table by bags of indices.

    weight: (n_embedding, d_model). Bags of other lengths are filled up, with shares of 0 for what
    fills them.
    """

    weight: Param

    def forward(self, indices: Tensor[Int], shares: Tensor[Float] | None = None) -> Tensor[Float]:
        """Map indices (bags, length) to rows (bags, d_model).

        Args:
            indices: which rows are in a bag.
            shares: (bags, length), by which rows are multiplied; with mode "sum" alone.

        Raises:
            IndexOutOfRangeError: when an index has no row.
            ArgumentError: for shares with another mode, where they would be no shares.
        """
        mode = self.settings.mode
        if shares is not None and mode != "sum":
            raise ArgumentError(
                "EmbeddingBag",
                "shares are of a sum",
                got=f"mode {mode!r}",
                expected='mode "sum"',
                hint=f"nn.EmbeddingBag({self.settings.n_embedding}, "
                f'{self.settings.d_model}, "sum")',
            )
        return embedding_bag(self.weight.value, indices, shares, mode)
