"""A tagger of words."""

from __future__ import annotations

from phlox_tensor import Backend, Float, Int, Tensor

from ..layers.embedding import Embedding
from ..layers.linear import Linear, LinearConfig
from ..layers.recurrent import Lstm, LstmConfig
from ..module.module import Module
from ._parts import ModelConfig


class TaggerConfig(ModelConfig):
    """Settings of ``Tagger``.

    Attributes:
        words: number of words.
        tags: number of tags.
        d_model: size of the vector of a word.
        d_hidden: size of the state.
        n_layers: number of recurrent layers.
        bidirectional: whether the text is read backward too.
    """

    words: int
    tags: int
    d_model: int = 64
    d_hidden: int = 64
    n_layers: int = 1
    bidirectional: bool = True

    def init(self, device: Backend | str | None = None) -> Tagger:
        """Return the tagger with lazy parameters."""
        lstm = LstmConfig(
            self.d_model, self.d_hidden, self.n_layers, bidirectional=self.bidirectional
        )
        wide = self.d_hidden * (2 if self.bidirectional else 1)
        return Tagger(
            word_embeddings=Embedding(self.words, self.d_model, device=device),
            lstm=lstm.init(device),
            hidden2tag=LinearConfig(wide, self.tags).init(device),
        )


class Tagger(Module):
    """A tag for each word, by those around it. Graves and Schmidhuber, 2005.

    Example:
        >>> from phlox_nn import models
        >>> models.TaggerConfig(9, 3, 6, 6, bidirectional=False).init().num_params()
        411
    """

    word_embeddings: Embedding
    lstm: Lstm
    hidden2tag: Linear

    def forward(self, words: Tensor[Int], lengths: Tensor[Int] | None = None) -> Tensor[Float]:
        """Map words (N, length) to logits (N, length, tags).

        Args:
            words: indices.
            lengths: (N,), words that count; None for all.
        """
        states, _ = self.lstm(self.word_embeddings(words), lengths=lengths)
        return self.hidden2tag(states)
