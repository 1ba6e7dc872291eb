"""Transformer decoders beside a memory, whole or a few positions at a time."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

from phlox_tensor import Backend, Bool, Float, Tensor

from .. import _signatures as takes
from ..module.layer import Layer
from .affine import Norm
from .attention import KeyValues, MultiHeadAttention, check_caches
from .dropout import Dropout
from .norm import LayerNorm, RmsNorm
from .position import RotaryEncodingConfig
from .transformer import BlockConfig, FeedForward, StackConfig, inside_of, to_itself


class TransformerDecoderLayerConfig(BlockConfig["TransformerDecoderLayer"]):
    """Settings of ``TransformerDecoderLayer``.

    Attributes:
        d_memory: size of the memory; None for ``d_model``.
    """

    d_memory: int | None = None
    n_heads_kv: int | None = None
    rotary: RotaryEncodingConfig | None = None
    norm: Norm = "layer"
    gated: bool = False

    def parts(self, device: Backend | str | None) -> dict[str, Any]:
        """Return attentions, maps, norms and dropout."""
        attention, maps, norm = inside_of(self)
        return {
            "self_attention": to_itself(self, attention).init(device),
            "norm1": norm.init(device),
            "cross_attention": attention.replace(d_key=self.d_memory).init(device),
            "norm2": norm.init(device),
            "feed_forward": maps.init(device),
            "norm3": norm.init(device),
            "dropout": Dropout(self.dropout, device=device),
        }


class DecoderCache(NamedTuple):
    """What a decoder layer has seen.

    Attributes:
        memory: keys and values of the memory.
        seen: those of the positions so far; None before the first.
    """

    memory: KeyValues
    seen: KeyValues | None = None


class _Memory(NamedTuple):
    """What attention to a memory is given, by the names that it has there."""

    seen: KeyValues
    mask: Tensor[Bool] | None
    padding: Tensor[Bool] | None
    bias: Tensor[Float] | None
    is_causal: bool


class TransformerDecoderLayer(
    takes.TransformerDecoderLayer, Layer[TransformerDecoderLayerConfig], init=False
):
    """Attention to the sequence itself, then to a memory, then a map of each row.

    Vaswani et al., 2017 (https://arxiv.org/abs/1706.03762); with ``norm_first`` Xiong et al., 2020.
    """

    names_in_pytorch: ClassVar = {
        "cross_attention": "multihead_attn",
        "feed_forward.linear1": "linear1",
        "feed_forward.linear2": "linear2",
        "self_attention": "self_attn",
    }

    self_attention: MultiHeadAttention
    norm1: LayerNorm | RmsNorm
    cross_attention: MultiHeadAttention
    norm2: LayerNorm | RmsNorm
    feed_forward: FeedForward
    norm3: LayerNorm | RmsNorm
    dropout: Dropout

    def forward(  # noqa: PLR0913 - masks of the sequence and of the memory
        self,
        x: Tensor[Float],
        memory: Tensor[Float],
        *,
        mask: Tensor[Bool] | None = None,
        padding: Tensor[Bool] | None = None,
        memory_mask: Tensor[Bool] | None = None,
        memory_padding: Tensor[Bool] | None = None,
        bias: Tensor[Float] | None = None,
        memory_bias: Tensor[Float] | None = None,
        is_causal: bool = False,
        memory_is_causal: bool = False,
    ) -> Tensor[Float]:
        """Map (…, length, d_model) beside a memory (…, K, d_memory) to the same shape.

        Masks and biases as in ``MultiHeadAttention``: of the sequence itself, and of the memory.
        """
        inside = self.norm1(x) if self.settings.norm_first else x
        found = self.self_attention(
            inside, mask=mask, padding=padding, bias=bias, is_causal=is_causal
        )
        seen = self.cross_attention.keys_values(memory)
        kept = _Memory(seen, memory_mask, memory_padding, memory_bias, memory_is_causal)
        return self._rest(x, found, kept)

    def start(self, memory: Tensor[Float]) -> DecoderCache:
        """Return the cache before the first position."""
        return DecoderCache(self.cross_attention.keys_values(memory))

    def extend(
        self,
        x: Tensor[Float],
        cache: DecoderCache,
        *,
        mask: Tensor[Bool] | None = None,
        padding: Tensor[Bool] | None = None,
        memory_mask: Tensor[Bool] | None = None,
        memory_padding: Tensor[Bool] | None = None,
        bias: Tensor[Float] | None = None,
        memory_bias: Tensor[Float] | None = None,
    ) -> tuple[Tensor[Float], DecoderCache]:
        """Map the next positions, which see all so far; return the cache with them too.

        Masks as in ``forward``: of the next positions as queries and all so far as keys.
        """
        inside = self.norm1(x) if self.settings.norm_first else x
        found, seen = self.self_attention.extend(
            inside, cache.seen, mask=mask, padding=padding, bias=bias
        )
        kept = _Memory(cache.memory, memory_mask, memory_padding, memory_bias, False)
        y = self._rest(x, found, kept)
        return y, DecoderCache(cache.memory, seen)

    def _rest(self, x: Tensor[Float], found: Tensor[Float], memory: _Memory) -> Tensor[Float]:
        """All that follows attention to the sequence itself."""
        first, drop = self.settings.norm_first, self.dropout
        x = x + drop(found)
        x = x if first else self.norm1(x)
        asked = self.norm2(x) if first else x
        x = x + drop(self.cross_attention.attend(asked, **memory._asdict()))
        x = x if first else self.norm2(x)
        x = x + drop(self.feed_forward(self.norm3(x) if first else x))
        return x if first else self.norm3(x)


class TransformerDecoderConfig(StackConfig["TransformerDecoder", TransformerDecoderLayerConfig]):
    """Settings of ``TransformerDecoder``."""


class TransformerDecoder(Layer[TransformerDecoderConfig]):
    """Decoder layers one after the other, all beside one memory."""

    layers: tuple[TransformerDecoderLayer, ...]
    norm: LayerNorm | RmsNorm | None

    # The constructor, generated by tools/gen.py from TransformerDecoderConfig; do not edit.
    if TYPE_CHECKING:

        def __init__(
            self,
            layer: TransformerDecoderLayerConfig,
            n_layers: int,
            final_norm: bool = False,
            *,
            device: Backend | str | None = None,
        ) -> None: ...

    def forward(  # noqa: PLR0913 - masks of the sequence and of the memory
        self,
        x: Tensor[Float],
        memory: Tensor[Float],
        *,
        mask: Tensor[Bool] | None = None,
        padding: Tensor[Bool] | None = None,
        memory_mask: Tensor[Bool] | None = None,
        memory_padding: Tensor[Bool] | None = None,
        bias: Tensor[Float] | None = None,
        memory_bias: Tensor[Float] | None = None,
        is_causal: bool = False,
        memory_is_causal: bool = False,
    ) -> Tensor[Float]:
        """Map (…, length, d_model) beside a memory (…, K, d_memory) to the same shape.

        Masks and biases as in ``MultiHeadAttention``: of the sequence itself, and of the memory.
        """
        for layer in self.layers:
            x = layer(
                x,
                memory,
                mask=mask,
                padding=padding,
                memory_mask=memory_mask,
                memory_padding=memory_padding,
                bias=bias,
                memory_bias=memory_bias,
                is_causal=is_causal,
                memory_is_causal=memory_is_causal,
            )
        return x if self.norm is None else self.norm(x)

    def start(self, memory: Tensor[Float]) -> tuple[DecoderCache, ...]:
        """Return the caches of all layers before the first position."""
        return tuple(layer.start(memory) for layer in self.layers)

    def extend(
        self,
        x: Tensor[Float],
        cache: tuple[DecoderCache, ...],
        *,
        mask: Tensor[Bool] | None = None,
        padding: Tensor[Bool] | None = None,
        memory_mask: Tensor[Bool] | None = None,
        memory_padding: Tensor[Bool] | None = None,
        bias: Tensor[Float] | None = None,
        memory_bias: Tensor[Float] | None = None,
    ) -> tuple[Tensor[Float], tuple[DecoderCache, ...]]:
        """Map the next positions, which see all so far; return the caches of all layers.

        Masks as in ``forward``: of the next positions as queries and all so far as keys.
        """
        check_caches(self, cache, DecoderCache, "decoder.start(memory)")
        kept: list[DecoderCache] = []
        for layer, known in zip(self.layers, cache, strict=True):
            x, after = layer.extend(
                x,
                known,
                mask=mask,
                padding=padding,
                memory_mask=memory_mask,
                memory_padding=memory_padding,
                bias=bias,
                memory_bias=memory_bias,
            )
            kept.append(after)
        return (x if self.norm is None else self.norm(x)), tuple(kept)
