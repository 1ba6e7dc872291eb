"""Whisper: an encoder of speech, and a decoder that writes what it hears."""

from __future__ import annotations

from dataclasses import field
from math import log

from phlox_tensor import Backend, Float, Int, ShapeError, Tensor, arange, concat, fft

from .. import initializers as init
from ..layers.attention import KeyValues
from ..layers.conv import Conv1d, Conv1dConfig
from ..layers.dropout import Dropout
from ..layers.embedding import Embedding
from ..layers.linear import Linear
from ..layers.norm import LayerNorm, LayerNormConfig
from ..module.module import Module
from ._causal import Caches
from ._parts import SMALL, ModelConfig, ProjectedAttention, require_heads, small_linear

RATE = 16000  # samples in a second, of all published models
HOP = 160  # from one frame to the next
_PIECE = 400
_LOUDEST = 8.0  # tenfolds that the quietest value is below the loudest


def log_mel(audio: Tensor[Float], mels: int = 80) -> Tensor[Float]:
    """Map samples (…, length), 16,000 a second, to frames (…, mels, length // 160).

    Logarithms of energies by mels, at most eight tenfolds below the loudest, as a number from
    about -1 to 1. Section 2.2 of the paper; equal to the feature extractor of ``transformers``.

    Args:
        audio: from -1 to 1.
        mels: 80, or 128 for the third large model.

    Raises:
        ShapeError: for fewer samples than a piece has.

    Example:
        >>> import phlox as px
        >>> from phlox_nn import models
        >>> models.log_mel(px.zeros(16000)).shape
        (80, 100)
    """
    filters = fft.mel_filters(
        mels, _PIECE, RATE, scale="slaney", area=True, dtype=audio.dtype, device=audio.device
    )
    found = fft.mel_spectrogram(audio, filters, _PIECE, hop_length=HOP)[..., :-1]
    tenfolds = found.maximum(1e-10).log10()
    least = tenfolds.max(axis=(-2, -1), keepdims=True) - _LOUDEST
    return (tenfolds.maximum(least) + 4.0) / 4.0


class WhisperConfig(ModelConfig):
    """Settings of ``Whisper``; the defaults are those of the smallest, for many languages.

    Attributes:
        words: number of tokens.
        positions: the longest text of a window.
        mels: numbers of a frame of sound.
        frames: of a window after the encoder, which halves them: 1,500 are 30 seconds.
        d_model: size of a vector.
        n_layers: layers of the encoder.
        n_layers_decoder: layers of the decoder.
        n_heads: heads of attention.
        d_ff: size between the linear maps.
        dropout: probability that a value is dropped in training: of the sums of embeddings, and
            of what attention and the two maps give.
    """

    words: int = 51865
    positions: int = 448
    mels: int = 80
    frames: int = 1500
    d_model: int = 384
    n_layers: int = 4
    n_layers_decoder: int = 4
    n_heads: int = 6
    d_ff: int = 1536
    dropout: float = 0.0

    def validate(self) -> None:
        """Raise ConfigError unless the heads divide the vector, which has waves in pairs."""
        require_heads(self)
        self.require("d_model", self.d_model % 2 == 0 and self.d_model > 2, "an even number > 2")

    def init(self, device: Backend | str | None = None) -> Whisper:
        """Return the network with lazy parameters."""
        d = self.d_model

        def table(rows: int, initializer: init.Initializer) -> Embedding:
            return Embedding(rows, d, initializer=initializer, device=device)

        def conv(channels: int, stride: int) -> Conv1d:
            return Conv1dConfig(channels, d, 3, stride, padding=1).init(device)

        encoder = WhisperEncoder(
            conv1=conv(self.mels, 1),
            conv2=conv(d, 2),
            embed_positions=table(self.frames, Waves()).freeze(),
            layers=tuple(self._layer(device) for _ in range(self.n_layers)),
            layer_norm=LayerNormConfig(d).init(device),
            dropout=Dropout(self.dropout, device=device),
        )
        decoder = WhisperDecoder(
            embed_tokens=table(self.words, SMALL),
            embed_positions=table(self.positions, SMALL),
            layers=tuple(self._layer(device, hears=True) for _ in range(self.n_layers_decoder)),
            layer_norm=LayerNormConfig(d).init(device),
            dropout=Dropout(self.dropout, device=device),
        )
        return Whisper(encoder, decoder, self)

    def _attention(self, device: Backend | str | None) -> ProjectedAttention:
        d = self.d_model
        query, value, out = (small_linear(d, d, device) for _ in range(3))
        key = small_linear(d, d, device, bias=False)
        return ProjectedAttention(key, value, query, out, self.n_heads)

    def _layer(self, device: Backend | str | None, *, hears: bool = False) -> WhisperLayer:
        d = self.d_model

        def norm() -> LayerNorm:
            return LayerNormConfig(d).init(device)

        return WhisperLayer(
            self_attn=self._attention(device),
            self_attn_layer_norm=norm(),
            encoder_attn=self._attention(device) if hears else None,
            encoder_attn_layer_norm=norm() if hears else None,
            fc1=small_linear(d, self.d_ff, device),
            fc2=small_linear(self.d_ff, d, device),
            final_layer_norm=norm(),
            dropout=Dropout(self.dropout, device=device),
        )


class Waves(init.Initializer):
    """Sines of positions, then cosines, of waves from 2π to 20,000π frames."""

    def values(self, shape: tuple[int, ...], fans: init.Fans, device: Backend) -> Tensor[Float]:
        """Return the first values (positions, d)."""
        half = shape[1] // 2
        places = arange(half, dtype=device.default_float, device=device)
        rates = (places * (-log(1e4) / (half - 1))).exp()
        angles = arange(shape[0], dtype=rates.dtype, device=device)[:, None] * rates
        return concat((angles.sin(), angles.cos()), axis=-1)


class WhisperLayer(Module):
    """Attention and maps, each after a norm and added to its input; a decoder looks at sound too.

    Attributes:
        encoder_attn: over what the encoder gives; None in the encoder.
    """

    self_attn: ProjectedAttention
    self_attn_layer_norm: LayerNorm
    encoder_attn: ProjectedAttention | None
    encoder_attn_layer_norm: LayerNorm | None
    fc1: Linear
    fc2: Linear
    final_layer_norm: LayerNorm
    dropout: Dropout

    def forward(
        self, x: Tensor[Float], cache: KeyValues | None = None, heard: KeyValues | None = None
    ) -> tuple[Tensor[Float], KeyValues]:
        """Map (N, length, d) to the same shape, and to keys and values of all so far.

        Args:
            x: vectors.
            cache: keys and values of those before.
            heard: keys and values of the sound; None in the encoder, where each sees all.
        """
        y = self.self_attn_layer_norm(x)
        new = self.self_attn.keys(y)
        seen = new if cache is None else cache.extended(new)
        x = x + self.dropout(self.self_attn(y, seen, is_causal=heard is not None))
        if heard is not None and self.encoder_attn and self.encoder_attn_layer_norm:
            y = self.encoder_attn_layer_norm(x)
            x = x + self.dropout(self.encoder_attn(y, heard))
        y = self.fc2(self.fc1(self.final_layer_norm(x)).gelu())
        return x + self.dropout(y), seen


class WhisperEncoder(Module):
    """Two convolutions, of which the second halves the frames, and layers."""

    conv1: Conv1d
    conv2: Conv1d
    embed_positions: Embedding
    layers: tuple[WhisperLayer, ...]
    layer_norm: LayerNorm
    dropout: Dropout

    def forward(self, frames: Tensor[Float]) -> Tensor[Float]:
        """Map (N, mels, 2 · frames) to vectors (N, frames, d).

        Raises:
            ShapeError: for a window of another length.
        """
        places = self.embed_positions.weight.value
        if frames.ndim != 3 or frames.shape[-1] != 2 * places.shape[0]:
            raise ShapeError(
                "Whisper",
                "no windows of sound",
                got=frames.shape,
                expected=f"(N, mels, {2 * places.shape[0]})",
                hint="nn.models.log_mel(px.pad(audio, ...))[None]",
            )
        x = self.conv2(self.conv1(frames).gelu()).gelu()
        x = self.dropout(x.mT + places)
        for layer in self.layers:
            x, _ = layer(x)
        return self.layer_norm(x)


class WhisperDecoder(Module):
    """Vectors of tokens at their places, layers, and a norm."""

    embed_tokens: Embedding
    embed_positions: Embedding
    layers: tuple[WhisperLayer, ...]
    layer_norm: LayerNorm
    dropout: Dropout

    def forward(
        self, tokens: Tensor[Int], heard: Caches, cache: Caches | None
    ) -> tuple[Tensor[Float], Caches]:
        """Map tokens (N, length) to vectors (N, length, d), and to what is kept."""
        if tokens.ndim != 2 or tokens.shape[0] != heard[0].keys.shape[0]:
            raise ShapeError(
                "Whisper",
                "tokens are not those of the windows",
                got=tokens.shape,
                expected=f"({heard[0].keys.shape[0]}, length)",
                hint="tokens[None]" if tokens.ndim == 1 else None,
            )
        known = cache[0].length if cache else 0
        end, most = known + tokens.shape[-1], self.embed_positions.settings.n_embedding
        if end > most:
            raise ShapeError("Whisper", "too long", got=f"{end} tokens", expected=f"at most {most}")
        places = self.embed_positions.weight.value[known:end]
        x, kept = self.dropout(self.embed_tokens(tokens) + places), []
        for i, layer in enumerate(self.layers):
            x, seen = layer(x, cache[i] if cache else None, heard[i])
            kept.append(seen)
        return self.layer_norm(x), tuple(kept)


class Whisper(Module):
    """A transformer that writes down speech. Radford et al., 2022 (arXiv 2212.04356).

    Parameters have the names of the published files, without the ``model.`` in front; the table of
    tokens serves as the last map too. ``nn.models.transcribe`` makes text of sound.

    Example:
        >>> from phlox_nn import models
        >>> models.WhisperConfig().init().num_params()
        37760640

    Attributes:
        source: where ``nn.models.load`` read it; None for a model that was not loaded so.
    """

    encoder: WhisperEncoder
    decoder: WhisperDecoder
    settings: WhisperConfig
    source: str | None = field(default=None, kw_only=True)

    def hear(self, frames: Tensor[Float]) -> Caches:
        """Map a window (N, mels, 2 · frames) to keys and values for each layer of the decoder."""
        vectors = self.encoder(frames)
        attentions = (layer.encoder_attn for layer in self.decoder.layers)
        return tuple(each.keys(vectors) for each in attentions if each is not None)

    def extend(
        self,
        tokens: Tensor[Int],
        heard: Caches,
        cache: Caches | None = None,
        *,
        last: bool = False,
    ) -> tuple[Tensor[Float], Caches]:
        """Map the next tokens (N, length) to logits, and to what the layers have to keep.

        Args:
            tokens: what follows what the cache has.
            heard: what ``hear`` gave.
            cache: what the call before gave; None at the start.
            last: whether to give the logits of the last token alone, (N, 1, words).

        Raises:
            ShapeError: for a text longer than the positions, or of other windows.
        """
        x, kept = self.decoder(tokens, heard, cache)
        x = x[:, -1:] if last else x
        return x @ self.decoder.embed_tokens.weight.value.mT, kept

    def forward(self, frames: Tensor[Float], tokens: Tensor[Int]) -> Tensor[Float]:
        """Map windows (N, mels, 2 · frames) and tokens (N, length) to logits (N, length, words)."""
        return self.extend(tokens, self.hear(frames))[0]
