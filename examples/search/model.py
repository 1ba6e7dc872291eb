"""MiniLM, a small BERT that turns sentences into vectors, built from layers of phlox.

Devlin et al., 2018 (BERT); Wang et al., 2020 (MiniLM); Reimers and Gurevych, 2019 (mean pooling).
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

import phlox as px
from phlox import Backend, Tensor, nn
from phlox.record import SafetensorsRecorder

LONGEST = 256
"""Tokens of a sentence that count; the rest is cut off."""

# The names of the file in those of the layers below.
NAMES = {
    r"^embeddings\.position_ids$": None,
    r"^pooler\.": None,
    r"^embeddings\.LayerNorm": "norm",
    r"^embeddings\.(\w+)_embeddings": r"\1",
    r"^encoder\.layer\.(\d+)\.": r"layers.\1.",
    r"attention\.self\.": "self_attention.",
    r"attention\.output\.dense": "self_attention.output",
    r"attention\.output\.LayerNorm": "norm1",
    r"intermediate\.dense": "feed_forward.linear1",
    r"(\d)\.output\.dense": r"\1.feed_forward.linear2",
    r"output\.LayerNorm": "norm2",
}


class MiniLMConfig(nn.Config):
    """Sizes of a BERT; the defaults are those of all-MiniLM-L6-v2.

    Attributes:
        words: number of tokens.
        positions: the longest sentence.
        d_model: size of a vector.
        d_ff: size between the linear maps.
        n_heads: heads of attention.
        n_layers: number of layers.
    """

    words: int = 30522
    positions: int = 512
    d_model: int = 384
    d_ff: int = 1536
    n_heads: int = 12
    n_layers: int = 6

    def init(self, device: Backend | str | None = None) -> "MiniLM":
        """Return the model with lazy parameters."""
        layer = nn.TransformerEncoderLayerConfig(
            self.d_model, self.n_heads, self.d_ff, 0.1, "gelu", epsilon=1e-12
        )
        return MiniLM(
            word=nn.Embedding(self.words, self.d_model, device=device),
            position=nn.Embedding(self.positions, self.d_model, device=device),
            token_type=nn.Embedding(2, self.d_model, device=device),
            norm=nn.LayerNorm(self.d_model, 1e-12, device=device),
            layers=[layer.init(device) for _ in range(self.n_layers)],
        )


class MiniLM(nn.Module):
    """An encoder of tokens, and the mean of what it gives as the vector of a sentence."""

    word: nn.Embedding
    position: nn.Embedding
    token_type: nn.Embedding
    norm: nn.LayerNorm
    layers: list[nn.TransformerEncoderLayer]

    def forward(self, tokens: Tensor[Any], mask: Tensor[Any]) -> Tensor[Any]:
        """Map tokens (n, length) to unit vectors (n, d_model).

        Args:
            tokens: indices of words.
            mask: the same shape, True where a token counts.
        """
        length = tokens.shape[1]
        places = px.arange(length, device=tokens.device)
        kinds = px.zeros_like(places)
        x = self.norm(self.word(tokens) + self.position(places) + self.token_type(kinds))
        for layer in self.layers:
            x = layer(x, padding=~mask)
        weights = mask.astype(x.dtype)[..., None]
        mean = (x * weights).sum(axis=1) / weights.sum(axis=1)
        return mean / (mean * mean).sum(axis=-1, keepdims=True).sqrt()


def load(folder: Path, device: Backend | str | None = None) -> MiniLM:
    """Return the model with the weights of ``folder/model.safetensors``.

    Raises:
        RecordError: when the file is another model's.
    """
    record = SafetensorsRecorder().open(folder / "model.safetensors")
    model = MiniLMConfig().init(device)
    return model.load_record(record, device, remap=NAMES, layout="pytorch").with_training(False)


class Encoder:
    """Sentences to vectors: the tokenizer beside the weights, and the model."""

    def __init__(self, folder: Path, device: Backend | str | None = None) -> None:
        """Load both."""
        # The model alone does without.
        from tokenizers import Tokenizer  # noqa: PLC0415 # pyright: ignore[reportMissingImports]

        self._tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
        self._tokenizer.enable_truncation(LONGEST)
        self._tokenizer.enable_padding()
        self._model = load(folder, device)
        self._device = device

    def __call__(self, sentences: Sequence[str], batch: int = 32) -> np.ndarray[Any, Any]:
        """Return unit vectors (n, 384); their products are the likeness of sentences."""
        found = []
        for start in range(0, len(sentences), batch):
            rows = self._tokenizer.encode_batch(list(sentences[start : start + batch]))
            tokens = px.asarray(np.array([row.ids for row in rows]), device=self._device)
            mask = px.asarray(
                np.array([row.attention_mask for row in rows], dtype=bool), device=self._device
            )
            found.append(self._model(tokens, mask).numpy())
        return np.concatenate(found)
