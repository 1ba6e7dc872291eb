"""A decoder in the manner of GPT-2."""

from __future__ import annotations

from math import sqrt
from typing import ClassVar

from phlox_tensor import (
    Backend,
    Bool,
    Float,
    Int,
    Tensor,
    arange,
    attention,
    count_nonzero,
    logical_or,
    maximum,
)
from phlox_tensor.arguments import explain

from .. import initializers as init
from ..layers.attention import KeyValues
from ..layers.dropout import Dropout
from ..layers.embedding import Embedding
from ..layers.linear import Linear, LinearConfig
from ..layers.norm import LayerNorm, LayerNormConfig
from ..module.module import Module
from ._causal import Caches, CausalModel, check_length
from ._parts import ModelConfig, by_table, heads_of_one_map, require_heads, without_heads


class GptConfig(ModelConfig):
    """Settings of ``Gpt``; the defaults are those of the smallest GPT-2.

    Attributes:
        words: number of tokens.
        positions: the longest text.
        d_model: size of a vector.
        n_layers: number of blocks.
        n_heads: heads of attention.
        dropout: probability that a value is dropped in training: of the sum of embeddings, and of
            what attention and the two maps give; weights of attention are not dropped.
        epsilon: of the norms.
    """

    words: int = 50257
    positions: int = 1024
    d_model: int = 768
    n_layers: int = 12
    n_heads: int = 12
    dropout: float = 0.1
    epsilon: float = 1e-5

    def validate(self) -> None:
        """Raise ConfigError unless the heads divide the vector."""
        require_heads(self)

    def init(self, device: Backend | str | None = None) -> Gpt:
        """Return the decoder with lazy parameters."""
        d, small = self.d_model, init.Normal(std=0.02)
        return Gpt(
            wte=Embedding(self.words, d, initializer=small, device=device),
            wpe=Embedding(self.positions, d, initializer=small, device=device),
            drop=Dropout(self.dropout, device=device),
            h=tuple(self._block(device) for _ in range(self.n_layers)),
            ln_f=LayerNormConfig(d, self.epsilon).init(device),
        )

    def _block(self, device: Backend | str | None) -> GptBlock:
        d, small = self.d_model, init.Normal(std=0.02)
        last = init.Normal(std=0.02 / sqrt(2 * self.n_layers))  # as many parts are added up

        def linear(d_input: int, d_output: int, first: init.Normal) -> Linear:
            made = LinearConfig(d_input, d_output, initializer=first).init(device)
            return made.replace(bias=init.Zeros().param((d_output,), device))

        dropout = Dropout(self.dropout, device=device)
        return GptBlock(
            ln_1=LayerNormConfig(d, self.epsilon).init(device),
            attn=GptAttention(linear(d, 3 * d, small), linear(d, d, last), dropout, self.n_heads),
            ln_2=LayerNormConfig(d, self.epsilon).init(device),
            mlp=GptMlp(linear(d, 4 * d, small), linear(4 * d, d, last), dropout),
        )


class GptAttention(Module):
    """Heads that look at what came before, from one linear map."""

    c_attn: Linear
    c_proj: Linear
    dropout: Dropout
    heads: int

    def forward(
        self, x: Tensor[Float], cache: KeyValues | None, mask: Tensor[Bool] | None, is_causal: bool
    ) -> tuple[Tensor[Float], KeyValues]:
        """Map (N, length, d) to the same shape, and to keys and values of all so far."""
        query, key, value = heads_of_one_map(self.c_attn(x), self.heads)
        new = KeyValues(key, value)
        seen = new if cache is None else cache.extended(new)
        found = attention(query, seen.keys, seen.values, mask, is_causal=is_causal)
        return self.dropout(self.c_proj(without_heads(found))), seen


class GptMlp(Module):
    """Two linear maps with gelu between."""

    c_fc: Linear
    c_proj: Linear
    dropout: Dropout

    def forward(self, x: Tensor[Float]) -> Tensor[Float]:
        """Map (…, d) to the same shape."""
        return self.dropout(self.c_proj(self.c_fc(x).gelu_tanh()))


class GptBlock(Module):
    """Attention and maps, each after a norm and added to its input."""

    ln_1: LayerNorm
    attn: GptAttention
    ln_2: LayerNorm
    mlp: GptMlp

    def forward(
        self, x: Tensor[Float], cache: KeyValues | None, mask: Tensor[Bool] | None, is_causal: bool
    ) -> tuple[Tensor[Float], KeyValues]:
        """Map (N, length, d) to the same shape, and to keys and values of all so far."""
        found, seen = self.attn(self.ln_1(x), cache, mask, is_causal)
        x = x + found
        return x + self.mlp(self.ln_2(x)), seen


class Gpt(CausalModel):
    """A transformer that goes on with a text. Radford et al., 2019.

    Parameters have the names and layout of the published files, in which linear maps are stored as
    here; the table of tokens serves as the last map too. In training values are dropped, weights of
    attention are not, which the published model drops too.

    Example:
        >>> from phlox_nn import models
        >>> models.GptConfig().init().num_params()
        124439808
    """

    _around: ClassVar = "transformer."  # what names have before theirs, in a model with a head

    wte: Embedding
    wpe: Embedding
    drop: Dropout
    h: tuple[GptBlock, ...]
    ln_f: LayerNorm

    @property
    def context(self) -> int:
        """The most tokens that a text may have."""
        return self.wpe.settings.n_embedding

    @property
    def words(self) -> int:
        """The number of tokens."""
        return self.wte.settings.n_embedding

    def extend(
        self,
        tokens: Tensor[Int],
        cache: Caches | None = None,
        *,
        padding: Tensor[Bool] | None = None,
        positions: Tensor[Int] | None = None,
        last: bool = False,
    ) -> tuple[Tensor[Float], Caches]:
        """Map the next tokens to logits, as ``CausalModel.extend``.

        Raises:
            ShapeError: for a text longer than the positions.
        """
        known = cache[0].length if cache else 0
        if positions is None:
            check_length(self, known + tokens.shape[-1])
            places = arange(known, known + tokens.shape[-1], device=tokens.device)
        else:
            places = positions
        mask = None
        if positions is not None:
            slots = arange(known, dtype=positions.dtype, device=tokens.device)
            mask = slots > positions[:, None]
        if padding is not None:
            hidden = padding[:, None, None]
            mask = hidden if mask is None else logical_or(mask, hidden)
            before = count_nonzero(padding, axis=-1, keepdims=True)
            places = maximum(places - before, 0)
        x = self.drop(self.wte(tokens) + self.wpe(places))
        kept = []
        for i, block in enumerate(self.h):
            x, seen = block(x, cache[i] if cache else None, mask, positions is None)
            kept.append(seen)
        x = x[:, -1:] if last else x
        return by_table(self.ln_f(x), self.wte), tuple(kept)


explain(Gpt)
