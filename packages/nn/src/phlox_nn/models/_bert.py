"""The encoder of BERT."""

from __future__ import annotations

from phlox_tensor import Backend, Bool, Float, Int, ShapeError, Tensor, arange, attention

from ..layers.dropout import Dropout
from ..layers.embedding import Embedding
from ..layers.inputs import check_hidden
from ..layers.linear import Linear, LinearConfig
from ..layers.norm import LayerNorm, LayerNormConfig
from ..module.module import Module
from ._parts import SMALL, ModelConfig, heads_of, require_heads, without_heads


class BertConfig(ModelConfig):
    """Settings of ``Bert``; the defaults are those of BERT-base.

    Attributes:
        words: number of tokens.
        positions: the longest text.
        kinds: number of parts that a text may have.
        d_model: size of a vector.
        n_layers: number of layers.
        n_heads: heads of attention.
        d_ff: size between the linear maps.
        dropout: probability that a value is dropped in training: of the sum of embeddings, and of
            what attention and the two maps give. Weights of attention are not dropped, other than
            in the paper, so that attention stays one op.
        epsilon: of the norms.
        pooler: whether a map of the first vector follows.
    """

    words: int = 30522
    positions: int = 512
    kinds: int = 2
    d_model: int = 768
    n_layers: int = 12
    n_heads: int = 12
    d_ff: int = 3072
    dropout: float = 0.1
    epsilon: float = 1e-12
    pooler: bool = True

    def validate(self) -> None:
        """Raise ConfigError unless the heads divide the vector."""
        require_heads(self)

    def init(self, device: Backend | str | None = None) -> Bert:
        """Return the encoder with lazy parameters."""
        d = self.d_model

        def table(rows: int) -> Embedding:
            return Embedding(rows, d, initializer=SMALL, device=device)

        return Bert(
            embeddings=Embeddings(
                word_embeddings=table(self.words),
                position_embeddings=table(self.positions),
                token_type_embeddings=table(self.kinds),
                LayerNorm=LayerNormConfig(d, self.epsilon).init(device),
                dropout=Dropout(self.dropout, device=device),
            ),
            encoder=Layers(tuple(self._layer(device) for _ in range(self.n_layers))),
            pooler=Dense(self._linear(d, d, device)) if self.pooler else None,
        )

    def _linear(self, d_input: int, d_output: int, device: Backend | str | None) -> Linear:
        return LinearConfig(d_input, d_output, initializer=SMALL).init(device)

    def _layer(self, device: Backend | str | None) -> BertLayer:
        d, wide = self.d_model, self.d_ff

        def added(d_input: int) -> Added:
            norm = LayerNormConfig(d, self.epsilon).init(device)
            dropout = Dropout(self.dropout, device=device)
            return Added(self._linear(d_input, d, device), norm, dropout)

        query, key, value = (self._linear(d, d, device) for _ in range(3))
        return BertLayer(
            attention={"self": SelfAttention(query, key, value, self.n_heads), "output": added(d)},
            intermediate=Dense(self._linear(d, wide, device)),
            output=added(wide),
        )


class Dense(Module):
    """A linear map by the name that files have for it."""

    dense: Linear

    def forward(self, x: Tensor[Float]) -> Tensor[Float]:
        """Map (…, d) to (…, d')."""
        return self.dense(x)


class Added(Module):
    """A linear map, added to what came before, and a norm."""

    dense: Linear
    LayerNorm: LayerNorm
    dropout: Dropout

    def forward(self, x: Tensor[Float], before: Tensor[Float]) -> Tensor[Float]:
        """Map (…, d') and (…, d) to (…, d)."""
        return self.LayerNorm(self.dropout(self.dense(x)) + before)


class SelfAttention(Module):
    """Heads that look at the whole text."""

    query: Linear
    key: Linear
    value: Linear
    heads: int

    def forward(self, x: Tensor[Float], hidden: Tensor[Bool] | None) -> Tensor[Float]:
        """Map (N, length, d) to the same shape."""
        maps = self.query, self.key, self.value
        query, key, value = (heads_of(each(x), self.heads) for each in maps)
        return without_heads(attention(query, key, value, hidden))


class BertLayer(Module):
    """Attention, then two maps with gelu between."""

    attention: dict[str, Module]
    intermediate: Dense
    output: Added

    def forward(self, x: Tensor[Float], hidden: Tensor[Bool] | None) -> Tensor[Float]:
        """Map (N, length, d) to the same shape."""
        x = self.attention["output"](self.attention["self"](x, hidden), x)
        return self.output(self.intermediate(x).gelu(), x)


class Layers(Module):
    """Layers in a row."""

    layer: tuple[BertLayer, ...]

    def forward(self, x: Tensor[Float], hidden: Tensor[Bool] | None) -> Tensor[Float]:
        """Map (N, length, d) to the same shape."""
        for layer in self.layer:
            x = layer(x, hidden)
        return x


class Embeddings(Module):
    """A vector for each token, by what it is, where it is, and in which part."""

    word_embeddings: Embedding
    position_embeddings: Embedding
    token_type_embeddings: Embedding
    LayerNorm: LayerNorm
    dropout: Dropout

    def forward(self, tokens: Tensor[Int], kinds: Tensor[Int] | None) -> Tensor[Float]:
        """Map (N, length) to (N, length, d).

        Raises:
            ShapeError: for a text longer than the positions.
        """
        length, most = tokens.shape[-1], self.position_embeddings.settings.n_embedding
        if length > most:
            raise ShapeError("Bert", "too long", got=f"{length} tokens", expected=f"at most {most}")
        places = arange(length, device=tokens.device)
        kinds = places * 0 if kinds is None else kinds
        x = self.word_embeddings(tokens) + self.position_embeddings(places)
        return self.dropout(self.LayerNorm(x + self.token_type_embeddings(kinds)))


class Bert(Module):
    """A transformer that reads a text both ways. Devlin et al., 2018.

    Parameters have the names of the published files.

    Example:
        >>> from phlox_nn import models
        >>> models.BertConfig().init().num_params()
        109482240
    """

    embeddings: Embeddings
    encoder: Layers
    pooler: Dense | None

    def forward(
        self,
        tokens: Tensor[Int],
        padding: Tensor[Bool] | None = None,
        kinds: Tensor[Int] | None = None,
    ) -> Tensor[Float]:
        """Map tokens (N, length) to vectors (N, length, d_model).

        Args:
            tokens: indices of words.
            padding: (N, length), True for what is no token: ``attention_mask == 0`` of a tokenizer.
            kinds: (N, length), the part of the text; None for the first.

        Raises:
            KindError: for a mask of numbers.
        """
        check_hidden("Bert", "padding", padding)
        hidden = None if padding is None else padding[:, None, None, :]
        return self.encoder(self.embeddings(tokens, kinds), hidden)

    def pooled(self, vectors: Tensor[Float]) -> Tensor[Float]:
        """Map vectors (N, length, d_model) to one for the text, (N, d_model).

        Raises:
            ShapeError: when the model was made without a pooler.
        """
        if self.pooler is None:
            raise ShapeError("Bert", "no pooler", hint="BertConfig(pooler=True)")
        return self.pooler(vectors[:, 0]).tanh()
